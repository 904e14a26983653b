"""Combining before the shuffle: what Spark's own aggregation makes of tuples is what the operator's lift makes."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.operators import Count, Mergeable, Moment, Sum
from evenkeel.operators.mergeable import sql_of_lift
from evenkeel.operators.split import part_columns
from evenkeel.spark.api import stream
from evenkeel.spark.combine import TUPLES, Combining, Lift
from evenkeel.spark.sending import ORDER_SETTING
from evenkeel.spark.steps import Steps
from operators.harness import groups_of
from operators.samples import SAMPLES, Sample, near
from spark.engine_helpers import Forced, Remember, expected, file_stream, write_batches, zipf_words

pytestmark = pytest.mark.spark

LONG = np.iinfo(np.int64)
ROWS = pa.table(
    {
        "key": pa.array(["a", "a", "b", None, "b", "", "a", None, "c", "d", "d", "d"]),
        "value": pa.array([LONG.max, 5, -3, 4, None, LONG.min, 1, LONG.max, None, LONG.min, LONG.min, -1], pa.int64()),
        "price": [1.5, -0.0, None, math.nan, 2.5, math.inf, 0.0, -7.25, None, 1e308, 1e308, -math.inf],
        "word": ["x", None, "ß", "", "zebra", "y", "x", None, None, "a", "b", "B"],
        "time": pa.array([1, 2, 3, None, 5, 6, 7, 8, 9, 10, 11, None], pa.int64()),
    }
)
IN_SQL = [
    pytest.param(sample.operator, id=repr(sample.operator))
    for samples in SAMPLES.values()
    for sample in samples
    if isinstance(sample.operator, Mergeable)
    and sample.columns is Sample(Count()).columns
    and sql_of_lift(sample.operator, ROWS.schema) is not None
]


def test_the_plain_aggregates_are_among_those_in_sql():
    names = {param.values[0].name for param in IN_SQL}
    assert names >= {"count", "count_of", "sum", "min", "max", "mean", "variance", "aggregate"}


@pytest.mark.parametrize("operator", IN_SQL)
def test_spark_lifts_as_the_operator_does(spark, operator):
    combining = Combining(Lift(operator, ("key",), ROWS.schema, None, Moment(0, 0, 0)))
    combined = combining.states_in_sql(spark.createDataFrame(ROWS), Steps()).toArrow()
    assert combined.select(combining.form.rows.names).cast(combining.form.rows).num_rows == combined.num_rows
    groups = groups_of(ROWS)
    states = operator.lift(groups).cast(operator.state_schema(ROWS.schema))
    wanted = dict(zip(groups.keys["key"].to_pylist(), states.to_pylist(), strict=True))
    found = combined.select(part_columns(states.num_columns)).rename_columns(states.schema.names).to_pylist()
    assert near(dict(zip(combined["key"].to_pylist(), found, strict=True)), wanted)
    tuples = dict(zip(combined["key"].to_pylist(), combined[TUPLES].to_pylist(), strict=True))
    assert tuples == {"a": 3, "b": 2, None: 2, "": 1, "c": 1, "d": 3}


@dataclass(frozen=True)
class CountTwice(Count):
    """Has another lift than the SQL that it inherits."""

    def lift(self, groups):
        return pa.table({self.called: 2 * groups.counts})


def test_a_subclass_with_another_lift_is_not_taken_for_the_sql_of_its_parent():
    assert sql_of_lift(Count(), ROWS.schema) is not None
    assert sql_of_lift(CountTwice(), ROWS.schema) is None
    assert sql_of_lift(SAMPLES[type(Sum("value"))][0].operator, ROWS.schema) is not None


def test_float_keys_are_left_to_the_operator(spark):
    """Spark's groups take 0.0 and −0.0 for one key."""
    rows = pa.table({"key": [0.0, -0.0, 0.0]})
    combining = Combining(Lift(Count(), ("key",), rows.schema, None, Moment(0, 0, 0)))
    assert combining.states_in_sql(spark.createDataFrame(rows), Steps()) is None
    states, hashes = combining.lift(rows)
    assert states.schema == combining.form.rows
    assert sum(states[TUPLES].to_pylist()) == 3
    assert len(hashes) == states.num_rows


@pytest.mark.parametrize(
    "sink",
    [
        pytest.param(lambda _: None, id="reads nothing"),
        pytest.param(lambda results: results.limit(1).collect(), id="reads one row"),
        pytest.param(lambda results: [results.count(), results.count()], id="reads twice"),
        pytest.param(lambda results: ThreadPoolExecutor(1).submit(results.count).result(), id="has its own threads"),
        pytest.param(lambda results: results.rdd.foreach(lambda _: None), id="reads an RDD"),
    ],
)
def test_the_stage_runs_whatever_the_sink_reads(spark, tmp_path, sink):
    tables = [zipf_words(300, 40, seed) for seed in range(3)]
    write_batches(tmp_path / "in", tables)
    place = {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}
    flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(Count(), channels=3)
    query = flow.start(lambda results, _: sink(results), **place)
    query.process_all_available()
    query.stop()
    assert [sum(report["tuples"] for report in batch["reports"][0]) for batch in query.history] == [300] * 3
    assert all(len(batch["reports"][0]) == 3 for batch in query.history)
    write_batches(tmp_path / "in", [zipf_words(100, 40, 7)], start=3)
    seen = Remember()
    flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(Count(), channels=3)
    query = flow.start(seen, **place)
    query.process_all_available()
    query.stop()
    counts = expected([*tables, zipf_words(100, 40, 7)])[0]
    assert seen.latest("count").items() <= dict(counts).items()
    assert seen.latest("count").keys() == expected([zipf_words(100, 40, 7)])[0].keys()


@dataclass(frozen=True)
class SlowCount(Count):
    """Takes its time over each tuple, and notes how many it got at once."""

    log: str = ""
    hates: str = ""

    def lift(self, groups):
        time.sleep(0.0002 * groups.rows.num_rows)
        with Path(self.log).open("a") as log:
            print(groups.rows.num_rows, file=log)
        if self.hates in groups.keys["word"].to_pylist():
            raise ValueError("that word")
        return super().lift(groups)


@pytest.mark.parametrize("strategy", ["keel", "pkg"])
def test_a_slow_operator_begins_before_all_tuples_have_come(spark, tmp_path, strategy):
    """It learns from the first batch; loads are told in tuples, results are as ever, also when keys move."""
    tables = [zipf_words(60_000, 40, seed) for seed in range(3)]
    write_batches(tmp_path / "in", tables)
    place = {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}
    how = {"strategy": Forced([2, 3, 2]) if strategy == "keel" else strategy, "channels": 2, "combine": False}
    log, seen = tmp_path / "log", Remember()
    flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(SlowCount(log=str(log)), **how)
    query = flow.start(seen, **place)
    query.process_all_available()
    query.stop()
    assert seen.latest("count") == expected(tables)[0]
    at_once = list(map(int, log.read_text().split()))
    assert sum(at_once) == 180_000
    assert len([rows for rows in at_once if rows > 20_000]) == 2, "only in the first batch, each channel all at once"
    assert len(at_once) > 2 + 2 * 5
    for batch in query.history:
        reports = batch["reports"][0]
        assert sum(report["rows"] for report in reports) == sum(report["tuples"] for report in reports) == 60_000
        assert sum(sum(report["loads"]["slot_counts"]) for report in reports) == 60_000


def test_a_slow_operator_that_fails_on_the_way_says_where(spark, tmp_path):
    tables = [zipf_words(30_000, 40, seed) for seed in range(2)]
    tables[1] = tables[1].set_column(0, "word", pa.array([*tables[1]["word"].to_pylist()[:-1], "bad"]))
    write_batches(tmp_path / "in", tables)
    place = {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}
    operator = SlowCount(log=str(tmp_path / "log"), hates="bad")
    flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(operator, channels=2, combine=False)
    query = flow.start(Remember(), **place)
    with pytest.raises(Exception, match=r"failed on channel \d in batch 1, ValueError: that word"):
        query.process_all_available()
    query.stop()
    assert [batch["batch"] for batch in query.history] == [0]


@pytest.mark.parametrize("combine", [True, None])
def test_tuples_are_sent_as_the_table_of_their_batch_says_also_when_keys_move(spark, tmp_path, combine):
    """Combined or not: what sends them is planned once, before there is any batch."""
    tables = [zipf_words(4_000, 40, seed) for seed in range(5)]
    write_batches(tmp_path / "in", tables)
    place = {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}
    flow = stream(file_stream(spark, tmp_path / "in"), key="word")
    seen, before = Remember(), spark.conf.get(ORDER_SETTING, None)
    query = flow.apply(Count(), strategy=Forced([4, 7, 3, 5]), channels=4, combine=combine).start(seen, **place)
    query.process_all_available()
    query.stop()
    assert seen.latest("count") == expected(tables)[0]
    for batch in query.history:
        reports = batch["reports"][0]
        assert sum(report["tuples"] for report in reports) == 4_000
        assert (sum(report["rows"] for report in reports) < 400) is bool(combine)
    assert spark.conf.get(ORDER_SETTING, None) == before is None, "the user's session knows nothing of it"


def test_an_operator_that_fails_before_the_shuffle_says_where(spark, tmp_path):
    tables = [zipf_words(3_000, 40, seed) for seed in range(2)]
    tables[1] = tables[1].set_column(0, "word", pa.array([*tables[1]["word"].to_pylist()[:-1], "bad"]))
    write_batches(tmp_path / "in", tables)
    place = {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}
    operator = SlowCount(log=str(tmp_path / "log"), hates="bad")
    flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(operator, channels=2, combine=True)
    query = flow.start(Remember(), **place)
    with pytest.raises(Exception, match=r"'count' failed on tuples .* before the shuffle in batch 1, ValueError: that"):
        query.process_all_available()
    query.stop()
    assert [batch["batch"] for batch in query.history] == [0]


def test_an_rdd_that_is_read_in_a_thread_of_its_own_is_told_what_to_do_about_it(spark, tmp_path):
    write_batches(tmp_path / "in", [zipf_words(30, 4, 0)])
    place = {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}
    flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(Count(), channels=2)
    query = flow.start(lambda results, _: ThreadPoolExecutor(1).submit(results.rdd.count).result(), **place)
    with pytest.raises(Exception, match=r"Have it read the DataFrame, or .*InheritableThread"):
        query.process_all_available()
    query.stop()
    assert query.history == []
