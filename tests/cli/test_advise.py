"""``evenkeel advise``: answers, reasons, code and reports."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import typer
from pyarrow import csv, fs
from typer.testing import CliRunner

from evenkeel.cli.advise import advise
from evenkeel.control import Controller, Saved
from evenkeel.errors import EvenkeelError
from evenkeel.planning import make_planner
from evenkeel.routing import RoutingTable
from evenkeel.state import Checkpoint
from evenkeel.state.manifest import EMPTY_TIP, Manifest

app = typer.Typer()
app.command()(advise)


@pytest.fixture
def visits(tmp_path, monkeypatch):
    """Half of all visits are Ann's."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    people = np.where(rng.random(8000) < 0.5, "ann", rng.integers(0, 300, 8000).astype(str))
    csv.write_csv(pa.table({"at": np.arange(8000) / 100, "who": people}), "visits.csv")
    return "visits.csv"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_both_kinds_of_operators_are_answered(visits):
    said = run(visits, "--key", "who", "--channels", "4", "--strategies", "keel,pkg")
    assert "ann" in said
    assert "If keys must stay whole: " in said
    assert "If partial states merge: " in said
    assert "cannot be divided" in said
    assert 'ek.stream(events, key="who")' in said


def test_json_has_the_figures(visits):
    told = json.loads(run(visits, "--key", "who", "--channels", "8", "--not-mergeable", "--json"))
    assert told["profile"]["hot"][0]["key"] == "ann"
    assert told["profile"]["hottest_share"] == pytest.approx(0.5, abs=0.03)
    (answer,) = told["answers"]
    assert (answer["mergeable"], answer["channels"]) == (False, 2)
    assert answer["gain"] == answer["plain"]["makespan"] / answer["chosen"]["makespan"]
    assert {each["name"] for each in answer["tried"]} >= {"key_grouping", "keel"}


def test_only_what_is_asked_for_is_tried(visits):
    asked = (visits, "--key", "who", "--mergeable", "--channels", "4", "--strategies", "pkg,lptf", "--json")
    (answer,) = json.loads(run(*asked))["answers"]
    assert [each["name"] for each in answer["tried"]] == ["key_grouping", "pkg", "lptf"]


def test_a_rate_says_how_many_channels_keep_up(visits):
    asked = (visits, "--key", "who", "--not-mergeable", "--strategies", "keel", "--channels", "4", "--json")
    (answer,) = json.loads(run(*asked, "--rate", "80", "--time", "at"))["answers"]
    assert (answer["keeps_up"], answer["channels"]) == (True, 2)  # 100 a second, half of them Ann's
    told = json.loads(run(*asked, "--rate", "80"))
    assert told["answers"][0]["keeps_up"] is None
    assert any("--time" in note for note in told["notes"])


def test_a_report_is_written(visits, tmp_path):
    run(visits, "--key", "who", "--channels", "4", "--strategies", "keel", "--report", "advice.html")
    page = (tmp_path / "advice.html").read_text()
    for part in ("If keys must stay whole", "If partial states merge", "ek.stream", "<svg", "Hottest keys"):
        assert part in page


def checkpoint_of(path, batches: int = 3) -> None:
    """Write what a query with two channels would leave: one hot key, and two slots with cold ones."""
    checkpoint = Checkpoint.open(fs.LocalFileSystem(), str(path), job="evenkeel", run="first")
    table = RoutingTable.even(2)
    hot = (5 << 40) + 2  # in slot 2, hence on channel 0

    def stored(name: str, content: pa.Table) -> list:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, content.schema) as writer:
            writer.write_table(content)
        return checkpoint.files.write(f"tables/{name}", sink.getvalue()).to_json()

    saved: Saved = Controller(make_planner("keel")).snapshot()
    files = {"table": stored("table", table.to_arrow()), "next": stored("next", table.to_arrow())}
    facts = {"files": files | {"controller": stored("controller", saved.to_arrow())}, "router": None}
    for batch in range(batches):
        refs = []
        for channel, loads in enumerate(
            [
                {"slots": [2], "slot_counts": [900], "keys": [hot], "key_counts": [800], "key_bytes": [50]},
                {"slots": [3], "slot_counts": [100], "keys": [], "key_counts": [], "key_bytes": []},
            ]
        ):
            held = {"held_slots": loads["slots"], "held_bytes": [500], "held_keys": [10]}
            rows = sum(loads["slot_counts"])
            report = {"rows": rows, "tuples": rows, "busy_ms": rows / 100, "loads": loads | held}
            manifest = Manifest("stage0", channel, batch, "a", EMPTY_TIP, (), report)
            refs.append(manifest.write(checkpoint.files, f"stages/stage0/{batch}-{channel}.manifest.json"))
        checkpoint.commit(batch, refs, metadata={"stages": {"stage0": facts}})


def test_a_running_query_is_advised_on_by_its_checkpoint(tmp_path):
    checkpoint_of(tmp_path / "checkpoint")
    told = json.loads(run(str(tmp_path / "checkpoint"), "--not-mergeable", "--channels", "4", "--json"))
    assert told["profile"]["tuples"] == 3000
    assert told["profile"]["folded"]
    assert told["profile"]["hottest_share"] == pytest.approx(0.8)
    (answer,) = told["answers"]
    assert answer["channels"] == 1  # four fifths of the load are one key: a second channel is not worth it
    assert answer["chosen"]["state_bytes"] == 1000
    assert "runs on 2 channels by a routing table, holds state of 20 keys" in told["notes"][0]
    done = CliRunner().invoke(app, [str(tmp_path / "checkpoint"), "--stage", "stage7"])
    assert "Known: stage0" in str(done.exception)


def test_a_checkpoint_without_a_batch_is_told(tmp_path):
    Checkpoint.open(fs.LocalFileSystem(), str(tmp_path / "new"), job="evenkeel", run="first")
    done = CliRunner().invoke(app, [str(tmp_path / "new")])
    assert isinstance(done.exception, EvenkeelError)
    assert "No batch is committed" in str(done.exception)
