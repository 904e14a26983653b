"""A routing table compiled to Spark columns: no Python on the routing path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from evenkeel.routing import RoutingTable

__all__ = ["literal_array", "with_channel"]


def literal_array(values: Iterable[int]) -> Column:
    """Give an array of ints as one literal.

    Parsed from text by Spark and folded into a constant when the query is planned; an array of literals would take a
    call into the JVM for each element.
    """
    from pyspark.sql import functions as F

    return F.expr(f"from_json('[{','.join(map(str, values))}]', 'array<int>')")


def with_channel(frame: DataFrame, keys: Sequence[str], table: RoutingTable, column: str = "channel") -> DataFrame:
    """Add the channel of each row as ``column``: its slot's, or that of its key's own entry.

    Keys are hashed by Spark's ``xxhash64``, slots are a constant array, and listed keys a broadcast join. The rows of a
    split key take turns over its channels within each task.
    """
    from pyspark.sql import functions as F

    key_hash = F.xxhash64(*keys)
    slot = F.pmod(key_hash, F.lit(table.slots)).cast("int")
    by_slot = F.get(literal_array(table.slot_channels.tolist()), slot)
    listed = np.concatenate([table.pin_hashes, table.split_hashes])
    if len(listed) == 0:
        return frame.withColumn(column, by_slot)
    own: dict[str, Any] = {
        f"{column}_hash": listed,
        f"{column}_own": pa.array(table.active_channels(listed).tolist(), pa.list_(pa.int32())),
    }
    entries = frame.sparkSession.createDataFrame(pa.table(own))
    turn = F.pmod(F.monotonically_increasing_id(), F.size(f"{column}_own")).cast("int")
    by_key = F.get(F.col(f"{column}_own"), turn)
    joined = frame.join(F.broadcast(entries), key_hash == F.col(f"{column}_hash"), "left")
    return joined.withColumn(column, F.coalesce(by_key, by_slot)).drop(*own)
