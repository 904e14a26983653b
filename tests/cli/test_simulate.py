"""``evenkeel simulate``: what it prints and writes, and how it takes mistakes."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from evenkeel.cli.simulate import simulate
from evenkeel.errors import EvenkeelError
from evenkeel.sim import Histograms, StateModel, Trace, replay

app = typer.Typer()
app.command()(simulate)


@pytest.fixture
def clicks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    users = (200 * rng.random(6000) ** 3).astype(np.int64)
    pq.write_table(pa.table({"user": users, "at": np.sort(rng.random(6000) * 120)}), "clicks.parquet")
    return "clicks.parquet"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_figures_are_those_of_a_replay(clicks):
    rows = json.loads(
        run(
            clicks, "--key", "user", "--window-tuples", "500", "--strategies", "pkg,keel", "--channels", "3,6", "--json"
        )
    )
    assert [(row["strategy"], row["channels"]) for row in rows] == [("pkg", 3), ("keel", 3), ("pkg", 6), ("keel", 6)]
    state = StateModel(100, "constant", windows=None)
    done = replay(Trace(clicks, "user", window_tuples=500), {"pkg": "pkg", "keel": "keel"}, channels=6, state=state)
    assert rows[3]["mean_skewness"] == done.column("keel", "skewness").mean()
    assert rows[3]["max_imbalance"] == done.column("keel", "imbalance").max()
    assert rows[2]["pairs"] == done.column("pkg", "pairs").max()
    assert rows[3]["table_bytes"] >= 4 * 4096


def test_a_table_is_printed_with_latency_where_there_are_times(clicks):
    timed = run(clicks, "--key", "user", "--time", "at", "--rate", "50", "--channels", "4")
    assert "p95 s" in timed
    assert "6,000 tuples in 24 windows" in timed
    untimed = run(clicks, "--key", "user", "--rate", "50", "--channels", "4")
    assert "p95 s" not in untimed
    assert "no latency" in untimed


def test_histograms_are_saved_and_taken_instead_of_the_trace(clicks):
    asked = ("--channels", "4", "--strategies", "key_grouping,readj", "--json")
    first = run(clicks, "--key", "user", "--time", "at", "--window-seconds", "10", "--save", "kept.parquet", *asked)
    again = run("kept.parquet", *asked)
    measured = ("tuples", "windows", "mean_skewness", "moved_bytes", "moves")
    assert [[row[name] for name in measured] for row in json.loads(again)] == [
        [row[name] for name in measured] for row in json.loads(first)
    ]
    wanted = Histograms.of(Trace(clicks, "user", time="at", window_seconds=10)).table
    assert pq.read_table("kept.parquet").equals(wanted)


@pytest.mark.parametrize("ending", ["html", "png", "svg"])
def test_a_report_is_written(clicks, tmp_path, ending):
    run(clicks, "--key", "user", "--channels", "4,8", "--strategies", "keel", "--report", f"out.{ending}")
    written = (tmp_path / f"out.{ending}").read_bytes()
    assert {"html": b"Strategies on clicks", "png": b"\x89PNG", "svg": b"<svg"}[ending] in written


def test_the_controller_moves_less_than_an_obeyed_planner(clicks):
    asked = (clicks, "--key", "user", "--strategies", "keel", "--channels", "4", "--json")
    obeyed, controlled = (json.loads(run(*asked, *more))[0] for more in ((), ("--controlled",)))
    assert 0 < controlled["moves"] < obeyed["moves"]
    assert controlled["plans"] < obeyed["plans"]


def test_text_needs_no_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("the keel the hull\nthe sail\n")
    asked = ("--format", "words", "--strategies", "key_grouping", "--json")
    (row,) = json.loads(run("text.txt", *asked))
    assert (row["tuples"], row["pairs"]) == (6, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.parquet", "--key", "user"], "no file or folder none.parquet"),
        (["clicks.parquet"], "Name it by --key; there are: user, at"),
        (["clicks.parquet", "--key", "usr"], "Did you mean 'user'"),
        (["clicks.parquet", "--key", "user", "--strategies", "pgk"], "Did you mean 'pkg'"),
        (["clicks.parquet", "--key", "user", "--strategies", "consistent_hash"], "router:consistent_hash"),
        (["clicks.parquet", "--key", "user", "--strategies", "bus:keel"], "router: or planner:"),
        (["clicks.parquet", "--key", "user", "--channels", "0"], "numbers from 1 on"),
        (["clicks.parquet", "--key", "user", "--report", "out.pdf"], "ending of out.pdf"),
        (["clicks.parquet", "--key", "user", "--window-seconds", "1"], "--time"),
        (["broken.parquet", "--key", "user"], "broken.parquet cannot be read"),
    ],
)
def test_a_mistake_is_one_clear_line(clicks, tmp_path, arguments, message):
    (tmp_path / "broken.parquet").write_text("no Parquet at all")
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, EvenkeelError)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
