"""Event time on Spark: windows close by the watermark, wherever their keys have moved to."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators import Count
from evenkeel.operators.windows import Tumbling
from evenkeel.spark.api import stream
from spark.engine_helpers import Forced, file_stream, write_batches

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def place(tmp_path):
    return {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}


def events(batch: int, rows: int = 400) -> pa.Table:
    """A batch of one minute, some tuples up to half a minute late, one far too late."""
    rng = np.random.default_rng(batch)
    seconds = 60 * batch + rng.integers(-30, 60, rows)
    if batch == 4:
        seconds[0] = -3600
    times = [START + timedelta(seconds=int(second)) for second in seconds]
    words = [f"word{key}" for key in rng.integers(0, 40, rows)]
    return pa.table({"word": words, "ts": pa.array(times, pa.timestamp("us", "UTC"))})


def windows_of(tables) -> Counter:
    """Count by word and minute, those far too late left out."""
    rows = [row for table in tables for row in table.to_pylist() if row["ts"] > START - 30 * MINUTE]
    return Counter((row["word"], row["ts"].replace(second=0)) for row in rows)


def found_in(batches) -> dict:
    found: dict = {}
    for rows in batches.values():
        for row in rows.to_pylist():
            name = (row["word"], row["window_start"])
            assert name not in found, "a window came twice"
            found[name] = row["count"]
            assert row["window_end"] - row["window_start"] == MINUTE
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": Forced([3, 5, 2, 4]), "channels": 3},
        {"strategy": "pkg", "channels": 4},
        {"strategy": "keel", "channels": 3, "combine": True},
    ],
    ids=["moved in every batch", "split", "combined before the shuffle"],
)
def test_windows_close_once_and_are_whole(spark, tmp_path, place, options):
    tables = [events(batch) for batch in range(6)]
    write_batches(tmp_path / "in", tables[:4])
    history = []
    batches: dict = {}
    for upto in (4, 6):  # and the watermark survives a restart
        write_batches(tmp_path / "in", tables[upto - 2 : upto], upto - 2)
        query = (
            stream(file_stream(spark, tmp_path / "in"), key="word", event_time="ts", delay="30 seconds")
            .apply(Tumbling(Count(), "1 minute"), **options)
            .start("memory", **place)
        )
        query.process_all_available()
        query.stop()
        history += query.history
        batches |= query.sink.batches
    found = found_in(batches)
    # A window closes in the batch after the one that brought a tuple half a minute past its end.
    ends = [int(max(table["ts"].to_pylist()).timestamp()) - 30 for table in tables[:-1]]
    closed = {name: n for name, n in windows_of(tables).items() if (name[1] + MINUTE).timestamp() <= max(ends)}
    assert found == closed
    assert len(found) > 100
    late = [sum(report["late"] for stage in batch["reports"] for report in stage) for batch in history]
    assert late == [0, 0, 0, 0, 1, 0]


def test_static_rows_close_all_their_windows(spark, place):
    tables = [events(batch) for batch in range(3)]
    query = (
        stream(spark.createDataFrame(pa.concat_tables(tables)), key="word", event_time="ts")
        .apply(Tumbling(Count(), "1 minute"), channels=3)
        .key_by("count", event_time="window_start")
        .apply(Tumbling(Count("windows"), "1 hour"), channels=2)
        .start("memory", **place)
    )
    hours = Counter((n, start.replace(minute=0)) for (_, start), n in windows_of(tables).items())
    rows = query.sink.table().to_pylist()
    assert {(row["count"], row["window_start"]): row["windows"] for row in rows} == hours


def test_mistakes_are_told_at_once(spark, place):
    rows = spark.createDataFrame(events(0, 5))
    window = Tumbling(Count(), "1 minute")
    with pytest.raises(InvalidArgumentError, match="needs event times"):
        stream(rows, key="word").apply(window)
    with pytest.raises(InvalidArgumentError, match="no event-time column 'time'"):
        stream(rows, key="word", event_time="time").apply(window).start("memory", **place)
    with pytest.raises(InvalidArgumentError, match="must be a timestamp"):
        stream(rows, key="ts", event_time="word").apply(window).start("memory", **place)
    with pytest.raises(InvalidArgumentError, match="not a length of time"):
        stream(rows, key="word", event_time="ts", delay="soon")
    with pytest.raises(InvalidArgumentError, match="clock of its own"):
        stream(rows, key="word", event_time="ts").apply(window, strategy="pkg", aggregate_every=2)
