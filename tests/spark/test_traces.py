"""Traces prepared on Spark are the traces that the simulator reads; and the advisor's lines run."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from pyarrow import csv
from typer.testing import CliRunner

from evenkeel.cli.advise import advise as advise_command
from evenkeel.cli.simulate import simulate
from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.operators import Count
from evenkeel.sim import Histograms, Trace
from evenkeel.sim.advice import CANDIDATES, FOLDED, advise, observe_checkpoint
from evenkeel.spark.traces import count_keys, find_keys, read_trace, survey

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def clicks() -> pa.Table:
    rng = np.random.default_rng(0)
    users = (400 * rng.random(3000) ** 3).astype(np.int64)
    began = datetime(2024, 5, 1, tzinfo=timezone.utc)
    at = [began + timedelta(seconds=second) for second in np.sort(rng.random(3000) * 60).tolist()]
    return pa.table({"user": users, "page": [f"/{n % 7}" for n in users.tolist()], "at": at})


def same(table: pa.Table, trace: Trace) -> bool:
    ours, theirs = Histograms(table).table, Histograms.of(trace).table
    columns = ["window", "hash", "count"]
    order = [(column, "ascending") for column in columns]
    return ours.select(columns).sort_by(order) == theirs.select(columns).sort_by(order)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_windows_by_time_hold_what_a_trace_holds(spark, tmp_path, clicks, form):
    path = tmp_path / f"clicks.{form}"
    pq.write_table(clicks, path) if form == "parquet" else csv.write_csv(clicks, path)
    rows = read_trace(spark, str(path), form)
    made = count_keys(rows, ["user", "page"], time="at", window_seconds=7.5)
    assert same(made, Trace(path, ("user", "page"), time="at", window_seconds=7.5))
    assert made["window"].to_numpy().max() == 7
    tuples, first, last = survey(rows, "at")
    assert (tuples, round(last - first)) == (3000, 60)


@pytest.mark.parametrize(("form", "key"), [("lines", "line"), ("words", "word"), ("edges", "dst")])
def test_windows_of_text_by_number_of_tuples(spark, tmp_path, form, key):
    path = tmp_path / "text.txt"
    rng = np.random.default_rng(1)
    path.write_text("# a list\n" + "".join(f"{a} {b}\n" for a, b in rng.integers(0, 40, (500, 2)).tolist()))
    made = count_keys(read_trace(spark, str(path), form), [key], window_tuples=120)
    assert same(made, Trace(path, key, window_tuples=120, format=form))


def test_cold_keys_are_counted_together_in_their_slots(spark, tmp_path, clicks):
    pq.write_table(clicks, tmp_path / "clicks.parquet")
    rows = read_trace(spark, str(tmp_path / "clicks.parquet"), "parquet")
    whole = count_keys(rows, ["user"], window_tuples=1000, by_source=True)
    folded = count_keys(rows, ["user"], window_tuples=1000, max_keys=20)
    hashes, counts = folded["hash"].to_numpy(), folded["count"].to_numpy()
    named = (hashes < 0) | (hashes >= FOLDED)
    assert len(np.unique(hashes[named])) == 20
    for slots in (64, 4096):
        every = np.bincount(whole["hash"].to_numpy() % slots, whole["count"].to_numpy(), slots)
        assert np.bincount(hashes % slots, counts, slots).tolist() == every.tolist()
    hottest = int(hashes[named][counts[named].argmax()])
    user = int(find_keys(rows, ["user"], [hottest])[hottest])
    assert clicks["user"].to_pylist().count(user) == counts[hashes == hottest].sum()


def test_the_commands_say_the_same_with_spark_and_without(spark, tmp_path, clicks, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(clicks, "clicks.parquet")
    simulated, advised = typer.Typer(), typer.Typer()
    simulated.command()(simulate)
    advised.command()(advise_command)
    asked = ["clicks.parquet", "--key", "user", "--time", "at", "--json", "--strategies", "keel", "--channels", "4"]
    for app in (simulated, advised):
        here, there = (CliRunner().invoke(app, [*asked, *more], catch_exceptions=False) for more in ([], ["--spark"]))
        told, same_told = (json.loads(done.stdout) for done in (here, there))
        if app is advised:
            told, same_told = told["profile"], same_told["profile"]
            assert same_told["hot"][0]["key"] == "0"
        else:
            told, same_told = ([row | {"plan_ms": None} for row in rows] for rows in (told, same_told))
        assert same_told == told


def test_mistakes_are_told(spark, clicks):
    rows = spark.createDataFrame(clicks.slice(0, 5))
    with pytest.raises(UnknownNameError, match="Did you mean 'user'"):
        count_keys(rows, ["usr"], window_tuples=10)
    with pytest.raises(InvalidArgumentError, match="no times"):
        survey(rows, "page")
    with pytest.raises(InvalidArgumentError, match="either by"):
        count_keys(rows, ["user"])


def test_the_advised_lines_run_and_their_checkpoint_can_be_advised_on(spark, tmp_path, clicks, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short = next(each for each in CANDIDATES if each.batches is not None)
    names = {"events": spark.createDataFrame(clicks), "operator": Count()}
    exec(short.code(["user", "page"], 3), names)
    assert names["query"].table.channels == 3

    seen = observe_checkpoint("checkpoints/user-page")
    counted = clicks.group_by(["user", "page"]).aggregate([([], "count_all")])
    assert (seen.channels, seen.keys_held) == (3, counted.num_rows)
    reports = names["query"].history[-1]["reports"][0]
    held = sum(sum(report["loads"]["held_bytes"]) for report in reports)
    window = next(seen.workload.windows())
    assert window.size == sum(report["rows"] for report in reports)
    assert window.histogram().state_bytes.sum() == held
    advice = advise(seen.workload, key=["user", "page"], mergeable=False, channels=4)
    assert any("repeated" in note for note in advice.notes)
