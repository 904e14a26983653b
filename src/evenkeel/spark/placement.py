"""Exact placement: rows land in the partition that the routing table names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenkeel.errors import EvenkeelError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["placement_values"]

_found: dict[int, list[tuple[int, int]]] = {}


def placement_values(spark: SparkSession, channels: int) -> list[tuple[int, int]]:
    """For each channel c, the two ints s nearest to 0, not below and below, with ``pmod(hash(s), channels) == c``.

    ``repartition(channels, s)`` puts a row into partition ``pmod(hash(s), channels)``, by Spark's own ``hash``, so a
    row that carries one of channel c's values lands in partition c. O(channels · log channels) candidates, one job.
    """
    from pyspark.sql import functions as F

    if channels in _found:
        return _found[channels]
    candidates = 16 * channels
    while True:
        rows = (
            spark.range(-candidates, candidates)
            .selectExpr(f"pmod(hash(int(id)), {channels}) AS channel", "int(id) AS value")
            .groupBy("channel")
            .agg(F.expr("min(value) FILTER (WHERE value >= 0)"), F.expr("max(value) FILTER (WHERE value < 0)"))
            .collect()
        )
        found = [(above, below) for _, above, below in sorted(rows) if above is not None and below is not None]
        if len(found) == channels:
            return _found.setdefault(channels, found)
        candidates *= 2
        if candidates >= 2**31:
            raise EvenkeelError(f"No placement values were found for {channels} channels.")
