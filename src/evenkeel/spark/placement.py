"""Exact placement: rows land in the partition that the routing table names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenkeel.errors import EvenkeelError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["placement_values"]

_found: dict[int, list[int]] = {}


def placement_values(spark: SparkSession, channels: int) -> list[int]:
    """For each channel c, the smallest int s with ``pmod(hash(s), channels) == c``, by Spark's own ``hash``.

    ``repartition(channels, s)`` puts a row into partition ``pmod(hash(s), channels)``, so a row that carries channel
    c's value lands in partition c. O(channels · log channels) candidates, one small job.
    """
    from pyspark.sql import functions as F

    if channels in _found:
        return _found[channels]
    candidates = 16 * channels
    while True:
        place = F.pmod(F.hash(F.col("value")), F.lit(channels))
        rows = (
            spark.range(candidates)
            .select(F.col("id").cast("int").alias("value"))
            .groupBy(place.alias("channel"))
            .agg(F.min("value").alias("value"))
            .collect()
        )
        if len(rows) == channels:
            _found[channels] = [row["value"] for row in sorted(rows)]
            return _found[channels]
        candidates *= 2
        if candidates >= 2**31:
            raise EvenkeelError(f"No placement values were found for {channels} channels.")
