"""What is set for a stream is set in a session of its own, and only as long as it does no harm."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evenkeel.operators import Count
from evenkeel.spark.api import stream
from spark.engine_helpers import file_stream, write_batches

pytestmark = pytest.mark.spark

LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
PARTITIONS = "spark.sql.shuffle.partitions"
NONE = str(2**31 - 1)


def _settings(spark) -> dict[str, str]:
    return {row["key"]: row["value"] for row in spark.sql("SET").collect()}


def _run(spark, path, sink) -> None:
    """Count the words below a path."""
    flow = stream(file_stream(spark, path / "in"), key="word").apply(Count(), channels=2)
    query = flow.start(sink, checkpoint=str(path / "checkpoint"), local_directory=str(path / "local"))
    query.process_all_available()
    query.stop()
    query.stop()  # does no harm


def test_limits_are_lifted_for_narrow_rows_only_and_the_users_session_stays_as_it_is(spark, tmp_path):
    narrow = pa.table({"word": [str(number) for number in range(400)]})
    wide = pa.table({"word": [f"{number:04000d}" for number in range(40)]})
    write_batches(tmp_path / "in", [narrow, narrow, wide, narrow, narrow])
    before, usual = _settings(spark), spark.conf.get(LIMIT)
    seen = []

    def sink(results, batch) -> None:
        own = results.sparkSession.conf
        seen.append((own.get("spark.sql.adaptive.enabled"), own.get(LIMIT), results.count()))

    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(Count(), channels=2)
        .start(sink, checkpoint=str(tmp_path / "checkpoint"), local_directory=str(tmp_path / "local"))
    )
    query.process_all_available()
    query.stop()
    limits = [usual, NONE, NONE, usual, NONE]  # going by the batch before
    assert seen == [("false", limit, rows) for limit, rows in zip(limits, [400, 400, 40, 400, 400], strict=True)]
    assert _settings(spark) == before


def test_a_limit_that_rows_come_near_stays(spark, tmp_path):
    table = pa.table({"word": [f"{number:030d}" for number in range(100)]})
    write_batches(tmp_path / "in", [table, table])
    seen = []

    def sink(results, batch) -> None:
        seen.append(results.sparkSession.conf.get(LIMIT))
        results.collect()

    usual = spark.conf.get(LIMIT)
    spark.conf.set(LIMIT, "1m")  # 10,000 rows of 100 bytes
    try:
        _run(spark, tmp_path, sink)
    finally:
        spark.conf.set(LIMIT, usual)
    assert seen == ["1m", "1m"]


@pytest.mark.parametrize("chosen", [None, "7"])
def test_exchanges_have_as_many_tasks_as_run_at_once_unless_the_user_chose_a_number(spark, tmp_path, chosen):
    users, seen = spark.newSession(), []
    users.conf.unset(PARTITIONS)
    if chosen is not None:
        users.conf.set(PARTITIONS, chosen)
    table = pa.table({"word": ["a", "b", "a"]})

    def sink(results, batch) -> None:
        seen.append(results.sparkSession.conf.get(PARTITIONS))
        results.collect()

    for start in range(2):  # a query that goes on has the number of its checkpoint from Spark at first
        write_batches(tmp_path / "in", [table] * (start + 1))
        _run(users, tmp_path, sink)
    assert seen == [chosen or str(spark.sparkContext.defaultParallelism)] * 2
    assert users.conf.get(PARTITIONS) == (chosen or "200")


@pytest.mark.parametrize("chosen", [None, "10000"])
def test_more_rows_go_at_once_where_they_are_narrow_unless_the_user_chose_a_number(spark, tmp_path, chosen):
    users, seen = spark.newSession(), []
    if chosen is not None:
        users.conf.set(AT_ONCE, chosen)
    narrow, wide = pa.table({"word": ["a", "b", "a"]}), pa.table({"word": [letter * 400 for letter in "abc"]})
    write_batches(tmp_path / "in", [narrow, narrow, wide, narrow, narrow])

    def sink(results, batch) -> None:
        seen.append(results.sparkSession.conf.get(AT_ONCE))
        results.collect()

    _run(users, tmp_path, sink)
    assert seen == ([chosen] * 5 if chosen else ["10000", "50000", "50000", "10000", "50000"])


def test_what_began_the_stream_is_known_in_each_batch_also_where_a_sink_collects(spark, tmp_path):
    write_batches(tmp_path / "in", [pa.table({"word": ["a", "b"]})] * 3)
    told = []

    def sink(results, batch) -> None:
        told.append(results.sparkSession.sparkContext.getLocalProperty("callSite.short"))
        results.collect()

    _run(spark, tmp_path, sink)
    assert [site is not None and site.startswith("start at") for site in told[1:]] == [True, True]
