"""What a query tells while it runs: Spark's progress with the numbers of the metrics, and log records without keys."""

from __future__ import annotations

import logging
import shutil
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

import evenkeel as ek
from evenkeel.dashboard import CheckpointReader, state_of
from evenkeel.dashboard.prometheus import METRICS, exposition
from evenkeel.operators import Count
from spark.engine_helpers import Forced, file_stream, write_batches, zipf_words

pytestmark = pytest.mark.spark

BATCHES = 3


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    """A query over some batches in which state moves, its checkpoint, and what was logged."""
    folder = tmp_path_factory.mktemp("progress")
    write_batches(folder / "in", [zipf_words(2000, 40, seed) for seed in range(BATCHES)])
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("evenkeel")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    rows = file_stream(spark, folder / "in").observe("mine", ek_count())
    query = (
        ek.stream(rows, key="word")
        .apply(Count(), strategy=Forced([3, 3, 4]), channels=3, slots=64)
        .start("memory", checkpoint=str(folder / "checkpoint"), trigger={"availableNow": True})
    )
    query.await_termination()
    query.stop()
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    return query, str(folder / "checkpoint"), records


def ek_count():
    from pyspark.sql import functions

    return functions.count("*").alias("rows")


def test_each_batch_of_spark_has_our_numbers_beside_those_that_the_user_observes(ran):
    query, _, _ = ran
    assert [entry["batchId"] for entry in query.progress] == list(range(BATCHES))
    for entry in query.progress:
        assert entry["durationMs"]["addBatch"] > 0  # Spark's own
        assert entry["observedMetrics"]["mine"] == {"rows": 2000}
        ours = entry["observedMetrics"]["evenkeel.stage0"]
        assert ours["evenkeel_tuples_total"] == 2000 * (1 + entry["batchId"])
        assert ours["evenkeel_batches_total"] == 1 + entry["batchId"]
    channels = [entry["observedMetrics"]["evenkeel.stage0"]["evenkeel_channels"] for entry in query.progress]
    assert channels == [3, 3, 4]


def test_names_and_numbers_are_those_of_the_metrics(ran):
    query, checkpoint, _ = ran
    reader = CheckpointReader(checkpoint)
    reader.look()
    served = {
        sample.name: sample.value
        for family in text_string_to_metric_families(exposition(state_of(reader, time.time())).decode())
        for sample in family.samples
    }
    last = query.progress[-1]["observedMetrics"]
    ours = {**last["evenkeel"], **last["evenkeel.stage0"]}
    assert set(ours) <= set(METRICS)
    assert len(ours) >= 15
    for name, value in ours.items():
        assert served[name] == pytest.approx(value), name
    assert ours["evenkeel_moved_state_bytes_total"] > 0


def test_the_history_keeps_loads_of_the_last_batches_only(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("evenkeel.spark.query._KEPT_LOADS", 2)
    write_batches(tmp_path / "in", [zipf_words(100, 10, seed) for seed in range(4)])
    source = spark.readStream.schema("word string, value long, position long").option("maxFilesPerTrigger", 1)
    query = (
        ek.stream(source.parquet(str(tmp_path / "in")), key="word")
        .apply(Count(), channels=2)
        .start("memory", checkpoint=str(tmp_path / "checkpoint"), trigger={"availableNow": True})
    )
    query.await_termination()
    query.stop()
    told = [[bool(report["loads"]) for report in batch["reports"][0]] for batch in query.history]
    assert told == [[False, False], [False, False], [True, True], [True, True]]
    assert [sum(report["rows"] for report in batch["reports"][0]) for batch in query.history] == [100] * 4


def test_static_rows_have_our_numbers_alone(spark, tmp_path):
    rows = spark.createDataFrame(zipf_words(100, 10, 0))
    query = ek.stream(rows, key="word").apply(Count(), channels=2).start("memory", checkpoint=str(tmp_path))
    (only,) = query.progress
    assert only["batchId"] == 0
    assert only["observedMetrics"]["evenkeel.stage0"]["evenkeel_tuples_total"] == 100


def test_a_record_for_each_batch_has_its_facts(ran):
    query, _, records = ran
    batches = [record for record in records if record.event == "batch"]
    assert [(record.batch, record.stage) for record in batches] == [(b, "stage0") for b in range(BATCHES)]
    for record, told in zip(batches, query.history, strict=True):
        rows = [report["rows"] for report in told["reports"][0]]
        assert record.rows == sum(rows)
        assert record.imbalance == pytest.approx(max(rows) * len(rows) / sum(rows), abs=1e-4)
        assert record.moved_bytes == sum(report["imported_bytes"] for report in told["reports"][0])
        assert f"batch {record.batch}, stage0: " in record.getMessage()
    assert batches[1].moved_bytes > 0
    assert batches[0].choice == "wait"


def test_no_record_names_a_key(ran):
    _, _, records = ran
    assert records
    for record in records:
        assert "word" not in str(vars(record)), record


def test_a_query_that_goes_on_says_from_where(ran, spark, tmp_path, caplog):
    _, checkpoint, _ = ran
    source = spark.readStream.schema("word string, value long, position long").parquet(str(tmp_path))
    with caplog.at_level(logging.INFO, "evenkeel"):
        query = (
            ek.stream(source, key="word")
            .apply(Count(), strategy=Forced([4]), channels=3, slots=64)
            .start("memory", checkpoint=checkpoint, trigger={"availableNow": True})
        )
        query.stop()
    (record,) = caplog.records
    assert (record.event, record.batch) == ("resume", BATCHES - 1)


def test_lost_state_is_told_as_a_rerun_and_a_recovery(spark, tmp_path, caplog):
    write_batches(tmp_path / "in", [zipf_words(200, 20, seed) for seed in range(3)])

    def lose(results, batch):
        results.collect()
        if batch == 1:
            for copy in (tmp_path / "local").rglob("c00001"):
                shutil.rmtree(copy)

    with caplog.at_level(logging.INFO, "evenkeel"):
        query = (
            ek.stream(file_stream(spark, tmp_path / "in"), key="word")
            .apply(Count(), strategy="key_grouping", channels=3, slots=64, replicas=1)
            .start(
                lose,
                checkpoint=str(tmp_path / "checkpoint"),
                local_directory=str(tmp_path / "local"),
                trigger={"availableNow": True},
            )
        )
        query.await_termination()
        query.stop()
    told = [(record.event, record.batch, getattr(record, "choice", None)) for record in caplog.records]
    third = told[told.index(("rerun", 2, None)) :]
    assert ("decision", 2, "recover") in third
    assert third.index(("decision", 2, "recover")) < next(
        place for place, (event, _, _) in enumerate(third) if event == "batch"
    )
    levels = {record.levelname for record in caplog.records if record.event == "rerun"}
    assert levels == {"WARNING"}
    numbers = [entry["observedMetrics"]["evenkeel"] for entry in query.progress]  # where the user observes nothing
    assert [found["evenkeel_last_batch"] for found in numbers] == [0, 1, 2]
