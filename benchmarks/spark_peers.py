"""Streams and peers for the benchmarks on Spark: what the same job costs in Spark's own ways."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenkeel.spark.jobs import WITHOUT_PROCESSES

if TYPE_CHECKING:
    from collections.abc import Mapping

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@contextmanager
def session(
    cores: int,
    partitions: int,
    memory: str = "6g",
    *,
    heap_at_once: bool = False,
    settings: Mapping[str, str] | None = None,
):
    """A local Spark session as a user would make it; state of Spark's own queries is in RocksDB.

    Java's heap grows as Java likes, or is all there from the start. Settings are further ones.

    Spark's log of a stream is written as to a cluster's file system: to a local disk, where nothing is set, it starts
    some thirty processes a batch, which take longer than a small batch, ours or Spark's.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", memory)
        .config("spark.sql.shuffle.partitions", str(partitions))
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.sql.streaming.checkpointFileManagerClass", WITHOUT_PROCESSES)
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", f"-Xms{memory} -XX:+AlwaysPreTouch" if heap_at_once else "")
        .config(map=dict(settings or {}))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


class Workplace:
    """A folder with a few files per micro-batch, one for each core by default, and room for checkpoints."""

    def __init__(self, files: int = 2, path: str | None = None) -> None:
        """Make one, or work in the folder of another."""
        self.path = Path(path or tempfile.mkdtemp(prefix="evenkeel-benchmark-"))
        self.files, self.batches = files, 0
        (self.path / "in").mkdir(exist_ok=True)

    def add(self, table: pa.Table) -> None:
        """Add the input of one more batch."""
        ends = np.linspace(0, table.num_rows, self.files + 1).astype(int).tolist()
        for number, (start, end) in enumerate(pairwise(ends)):
            name = f"{self.batches:05d}-{number:02d}"
            hidden = self.path / "in" / f".{name}"
            pq.write_table(table.slice(start, end - start), hidden)
            os.utime(hidden, (1_700_000_000 + self.batches, 1_700_000_000 + self.batches))
            hidden.rename(self.path / "in" / f"part-{name}.parquet")
        self.batches += 1

    def stream(self, spark):
        """Read it, batch by batch."""
        return (
            spark.readStream.schema(self.read(spark).schema)
            .option("maxFilesPerTrigger", self.files)
            .parquet(str(self.path / "in"))
        )

    def read(self, spark, batch: int | None = None):
        """Read all of it at once, or what one batch gets."""
        files = "" if batch is None else f"part-{batch:05d}-*.parquet"
        return spark.read.parquet(str(self.path / "in" / files))

    def fresh(self, name: str) -> str:
        """A folder that is not there yet."""
        return str(self.path / f"{name}-{time.time_ns()}")

    def remove(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.path, ignore_errors=True)


def zipf_rows(rows: int, keys: int, skew: float, rng: np.random.Generator) -> pa.Table:
    """Words by a Zipf law, and numbers."""
    shares = np.cumsum(1 / np.arange(1, keys + 1.0) ** skew)
    ranks = np.searchsorted(shares / shares[-1], rng.random(rows))
    return pa.table({"word": pa.array(ranks).cast(pa.string()), "value": rng.integers(0, 100, rows)})


def discard(results, batch) -> None:  # noqa: ARG001
    """A sink that looks at every result and keeps none."""
    results.write.format("noop").mode("overwrite").save()


discard.reads_once = True


def batch_ms(query) -> list[float]:
    """Milliseconds of each batch of a query of Spark's own that had rows."""
    return [p["durationMs"]["triggerExecution"] for p in query.recentProgress if p["numInputRows"] > 0]


def run_native(frame, checkpoint: str, mode: str = "update") -> list[float]:
    """Run one of Spark's own stateful queries over all input."""
    writer = frame.writeStream.outputMode(mode).foreachBatch(discard).option("checkpointLocation", checkpoint)
    query = writer.start()
    query.processAllAvailable()
    query.stop()
    return batch_ms(query)


def run_ours(flow, place: Workplace) -> list[dict]:
    """Run one of ours over all input; gives its history, each batch with the time that Spark says it took."""
    query = flow.start(discard, checkpoint=place.fresh("checkpoint"), local_directory=place.fresh("local"))
    query.process_all_available()
    query.stop()
    took = batch_ms(query.spark_query)
    return [{**batch, "ms": ms} for batch, ms in zip(query.history[-len(took) :], took, strict=True)]


def trigger_ms(history: list[dict]) -> list[float]:
    """Milliseconds of each batch."""
    return [batch["ms"] for batch in history]


def carried(rows, key: str):
    """What Spark alone takes: rows shuffled by key to Python workers that do nothing with them, not even keep state."""

    def count(batches):
        yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})

    return rows.repartition(2, key).mapInArrow(count, "rows long")


def transform_with_state(rows):
    """Count and sum per word by ``transformWithStateInPandas``."""
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor

    class CountAndSum(StatefulProcessor):
        def init(self, handle) -> None:
            self.totals = handle.getValueState("totals", "n long, total long")

        def handleInputRows(self, key, rows, timerValues):  # noqa: ARG002, N802, N803
            n, total = self.totals.get() if self.totals.exists() else (0, 0)
            for frame in rows:
                n += len(frame)
                total += int(frame["value"].sum())
            self.totals.update((n, total))
            yield pd.DataFrame({"word": [key[0]], "n": [n], "total": [total]})

        def close(self) -> None:
            pass

    return rows.groupBy("word").transformWithStateInPandas(
        CountAndSum(), "word string, n long, total long", "Update", "None"
    )


def transform_rows_with_state(rows):
    """Count and sum per word by ``transformWithState``, whose processor gets rows."""
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    class CountAndSum(StatefulProcessor):
        def init(self, handle) -> None:
            self.totals = handle.getValueState("totals", "n long, total long")

        def handleInputRows(self, key, rows, timerValues):  # noqa: ARG002, N802, N803
            n, total = self.totals.get() if self.totals.exists() else (0, 0)
            for row in rows:
                n, total = n + 1, total + row.value
            self.totals.update((n, total))
            yield Row(word=key[0], n=n, total=total)

        def close(self) -> None:
            pass

    return rows.groupBy("word").transformWithState(CountAndSum(), "word string, n long, total long", "Update", "None")


def apply_with_state(rows):
    """Count and sum per word by ``applyInPandasWithState``."""
    import pandas as pd

    def count_and_sum(key, frames, state):
        n, total = state.get if state.exists else (0, 0)
        for frame in frames:
            n += len(frame)
            total += int(frame["value"].sum())
        state.update((n, total))
        yield pd.DataFrame({"word": [key[0]], "n": [n], "total": [total]})

    return rows.groupBy("word").applyInPandasWithState(
        count_and_sum, "word string, n long, total long", "n long, total long", "update", "NoTimeout"
    )
