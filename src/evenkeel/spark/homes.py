"""Homes: one cached row per channel, so that the channel's task comes back to where its state is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from evenkeel.spark.placement import placement_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["HOME", "PLACE", "Homes"]

HOME = "__evenkeel_home"
PLACE = "__evenkeel_place"


@dataclass(frozen=True, slots=True)
class Homes:
    """The homes of N channels.

    A union of the homes with rows that are hash-partitioned by the same column has N partitions, not 2N, and Spark runs
    each where its home row is cached. A task takes its identity from the home row it finds, never from a partition
    number. When an executor dies, Spark computes its home rows elsewhere: the channel has a new home.
    """

    channels: int
    places: tuple[int, ...]
    rows: DataFrame

    @classmethod
    def of(cls, spark: SparkSession, channels: int) -> Homes:
        """Make homes, and cache them where Spark puts them."""
        from pyspark import StorageLevel

        places = placement_values(spark, channels)
        table = pa.table({PLACE: pa.array(places, pa.int32()), HOME: pa.array(range(channels), pa.int32())})
        rows = spark.createDataFrame(table).repartition(channels, PLACE).persist(StorageLevel.MEMORY_AND_DISK)
        rows.count()
        return cls(channels, tuple(places), rows)

    def release(self) -> None:
        """Give the cached rows up."""
        self.rows.unpersist()
