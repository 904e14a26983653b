"""Combining before the shuffle: what Spark's own aggregation makes of tuples is what the operator's lift makes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.operators import Count, Mergeable, Moment, Sum
from evenkeel.operators.mergeable import sql_of_lift
from evenkeel.operators.split import part_columns
from evenkeel.spark.api import stream
from evenkeel.spark.combine import TUPLES, Combining
from operators.harness import groups_of
from operators.samples import SAMPLES, Sample, near
from spark.engine_helpers import Remember, expected, file_stream, write_batches, zipf_words

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
    combining = Combining(operator, ("key",), ROWS.schema, None)
    combined, kept = combining.combine(spark.createDataFrame(ROWS), Moment(0, 0, 0))
    combined = combined.selectExpr(*kept).toArrow()
    assert combined.select(combining.form().rows.names).cast(combining.form().rows).num_rows == combined.num_rows
    groups = groups_of(ROWS)
    states = operator.lift(groups).cast(operator.state_schema(ROWS.schema))
    wanted = dict(zip(groups.keys["key"].to_pylist(), states.to_pylist(), strict=True))
    found = combined.select(part_columns(states.schema)).rename_columns(states.schema.names).to_pylist()
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


def test_float_keys_are_left_to_the_operator():
    """Spark's groups take 0.0 and −0.0 for one key."""
    rows = pa.schema([("key", pa.float64()), ("value", pa.int64())])
    assert Combining(Count(), ("key",), rows, None).form().rows.names == [
        "key",
        "__evenkeel_part",
        "__evenkeel_tuples",
        "__evenkeel_time",
        "__evenkeel_late",
    ]


@pytest.mark.parametrize(
    "sink",
    [
        pytest.param(lambda _: None, id="reads nothing"),
        pytest.param(lambda results: results.limit(1).collect(), id="reads one row"),
        pytest.param(lambda results: [results.count(), results.count()], id="reads twice"),
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
