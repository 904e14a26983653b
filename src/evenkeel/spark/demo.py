"""The job behind ``evenkeel demo``."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import EvenkeelError
from evenkeel.metrics import skewness
from evenkeel.planning import LoadSnapshot, plan
from evenkeel.routing import RoutingTable
from evenkeel.spark.columns import with_channel
from evenkeel.spark.placement import repartition_by_channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DemoResult", "run"]

_TRACKED = 1000  # hot words that are measured one by one; the others are measured by slot


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo measured on Spark."""

    loads_by_hash: list[int]
    loads_by_table: list[int]
    skewness_by_hash: float
    skewness_by_table: float
    hottest_share: float
    distinct_words: int
    planner: str
    moves: int
    moved_percent: float
    reasons: list[str]

    @property
    def bound_note(self) -> str:
        """What no placement of whole keys can beat."""
        floor = self.hottest_share * len(self.loads_by_hash)
        if floor <= 1:
            return "Even would be 1.00×."
        return f"The hottest word alone is {floor:.2f}×: no placement of whole keys does better."

    def as_dict(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return asdict(self)


def run(
    rows: int, keys: int, skew: float, channels: int, planner: str, progress: Callable[[str], None] = lambda _: None
) -> DemoResult:
    """Place a Zipf stream of words by hash and by table, on Spark, and measure where the rows landed."""
    spark = _session()
    try:
        words = _word_stream(spark, rows, keys, skew).cache()
        progress(f"Making {rows:,} words …")
        words.count()
        progress("Placing them by hash …")
        even = RoutingTable.even(channels)
        by_hash = _landed(words, even)
        progress("Measuring the load of every word …")
        hashes, counts = _histogram(words)
        window = LoadSnapshot.of_keys(hashes, counts, slots=even.slots, track=_TRACKED)
        made = plan(planner, window, even)
        table = made.table
        progress("Placing them by table …")
        by_table = _landed(words, table)
        progress("Counting words in the placed partitions, and by Spark's own groupBy …")
        distinct = _check_counts(words, table)
        expected = np.bincount(table.route(hashes), weights=counts, minlength=channels)
        if by_table.tolist() != expected.tolist():
            raise EvenkeelError(f"Rows landed as {by_table.tolist()}, but the table says {expected.tolist()}.")
        return DemoResult(
            by_hash.tolist(),
            by_table.tolist(),
            skewness(by_hash),
            skewness(by_table),
            float(counts.max() / counts.sum()),
            distinct,
            planner,
            made.movement.moves,
            made.movement.percent,
            list(made.reasons),
        )
    finally:
        spark.stop()


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    # Workers must run the interpreter that runs us, not whatever python3 is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[*]")
        .appName("evenkeel demo")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _word_stream(spark: SparkSession, rows: int, keys: int, skew: float) -> DataFrame:
    """Words with Zipf frequencies, drawn by Spark: rank = the first whose cumulative share reaches a random number."""
    from pyspark.sql import functions as F

    shares = 1 / np.arange(1, keys + 1) ** skew
    edges = np.cumsum(shares / shares.sum())

    def draw(batches: Any) -> Any:
        import pyarrow as pa

        for batch in batches:
            ranks = np.searchsorted(edges, batch.column("u").to_numpy())
            yield pa.record_batch({"word": pa.array([f"word{rank}" for rank in ranks], pa.string())})

    return spark.range(rows).select(F.rand(seed=7).alias("u")).mapInArrow(draw, "word string")


def _landed(words: DataFrame, table: RoutingTable) -> NDArray[np.int64]:
    """Shuffle by channel, then ask Spark which partition each row is really in."""
    from pyspark.sql import functions as F

    placed = repartition_by_channel(with_channel(words, ["word"], table), F.col("channel"), table.channels)
    found = placed.groupBy(F.spark_partition_id().alias("partition")).count().collect()
    loads = np.zeros(table.channels, np.int64)
    for row in found:
        loads[row["partition"]] = row["count"]
    return loads


def _histogram(words: DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    from pyspark.sql import functions as F

    counts = words.groupBy(F.xxhash64("word").alias("hash")).count().toArrow()
    return counts["hash"].to_numpy(), counts["count"].to_numpy()


def _check_counts(words: DataFrame, table: RoutingTable) -> int:
    """Count words inside each placed partition alone; every word must be whole in one of them."""
    from pyspark.sql import functions as F

    placed = repartition_by_channel(with_channel(words, ["word"], table), F.col("channel"), table.channels)

    def count(batches: Any) -> Any:
        import pyarrow as pa

        parts = [pa.Table.from_batches([batch.select(["word"])]) for batch in batches]
        if parts:
            yield from pa.concat_tables(parts).group_by("word").aggregate([("word", "count")]).to_batches()

    ours = placed.mapInArrow(count, "word string, word_count long")
    theirs = words.groupBy("word").count()
    both = ours.join(theirs, "word", "full_outer")
    row = both.agg(
        F.count("*").alias("words"),
        F.count_if(~F.col("word_count").eqNullSafe(F.col("count"))).alias("wrong"),
    ).first()
    assert row is not None
    if row["wrong"]:
        raise EvenkeelError(f"{row['wrong']} of {row['words']} word counts differ from Spark's.")
    return int(row["words"])
