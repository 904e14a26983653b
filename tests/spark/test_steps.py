"""Steps of a query, with arguments that are made once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evenkeel.spark.steps import Steps

pytestmark = pytest.mark.spark

ROWS = pa.table({"a word": ["b", "a", "b", None], "n": [1, 2, 3, 4]})


def doubled(batches):
    for batch in batches:
        yield pa.RecordBatch.from_arrays([batch.column(0), pc.multiply(batch.column("n"), 2)], names=["word", "n"])


def test_each_step_gives_what_sparks_own_method_gives(spark):
    steps, rows = Steps(), spark.createDataFrame(ROWS)
    chosen = ["`a word`", "n + 1 AS more"]
    assert steps.select(rows, *chosen).toArrow() == rows.selectExpr(*chosen).toArrow()
    totals = steps.aggregate(rows, ["`a word`"], "sum(n) AS total", "count(1) AS n", "upper(`a word`) AS loud")
    expected = [("a", 2, 1, "A"), ("b", 4, 2, "B"), (None, 4, 1, None)]
    assert sorted(map(tuple, totals.collect()), key=str) == sorted(expected, key=str)
    mapped = steps.map(rows, ["`a word`", "n"], doubled, "word string, n long")
    assert mapped.columns == ["word", "n"]
    assert sorted(row["n"] for row in mapped.collect()) == [2, 4, 6, 8]
    parts = steps.repartition(rows, 3, "n")
    where = "spark_partition_id() AS part"
    assert parts.selectExpr("n", where).toArrow() == rows.repartition(3, "n").selectExpr("n", where).toArrow()


def test_a_step_serves_any_rows_and_is_made_once(spark):
    steps, rows = Steps(), spark.createDataFrame(ROWS)
    for frame in (rows, rows.limit(2), rows.withColumn("other", rows["n"])):
        assert steps.select(frame, "n * 2 AS n").toArrow()["n"].to_pylist() == [2 * row["n"] for row in frame.collect()]
        assert len(steps._made) == 1


def test_few_of_very_many_steps_are_kept(spark):
    steps, rows = Steps(), spark.createDataFrame(ROWS)
    for number in range(600):
        steps.select(rows, f"{number} AS n")
    assert len(steps._made) <= 257


def test_a_step_that_cannot_be_says_what_spark_says(spark):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="no_such"):
        Steps().select(spark.createDataFrame(ROWS), "no_such")
