"""A routing table compiled to Spark columns: no Python on the routing path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.operators.mergeable import sql_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from evenkeel.routing import Ragged, RoutingTable

__all__ = ["ORDER", "literal_array", "with_channel", "with_copies"]

ORDER = "__evenkeel_order"
"""In which order tuples arrived: the same on every copy of their key."""
_FEW = 32  # pins that are compared one by one in less time than a broadcast takes


def literal_array(values: Iterable[int], kind: str = "int") -> str:
    """Give an array of whole numbers as one literal of SQL.

    Parsed from text by Spark and folded into a constant when the query is planned; an array of literals would be an
    expression for each element.
    """
    return f"from_json('[{','.join(map(str, values))}]', 'array<{kind}>')"


def with_channel(
    frame: DataFrame,
    keys: Sequence[str],
    table: RoutingTable,
    column: str = "channel",
    addresses: Sequence[int] | None = None,
) -> DataFrame:
    """Add the channel of each row as ``column``, or its address: its slot's, or that of its key's own entry.

    Keys are hashed by Spark's ``xxhash64``, slots are a constant array, a few pins too, and more of them a broadcast
    join, which costs a job of its own. The rows of a
    split key take turns over its channels within each task. All is said in SQL, since every column that is put together
    in Python costs calls into the JVM, in every batch.
    """
    address = np.arange(table.channels) if addresses is None else np.array(addresses)
    key_hash = f"xxhash64({', '.join(map(sql_name, keys))})"
    slots = literal_array(address[table.slot_channels].tolist())
    by_slot = f"get({slots}, int(pmod({key_hash}, {table.slots}L)))"
    listed = np.concatenate([table.pin_hashes, table.split_hashes])
    if len(listed) == 0:
        return frame.selectExpr("*", f"{by_slot} AS {sql_name(column)}")
    if len(listed) <= _FEW and len(table.split_hashes) == 0:
        place = f"int(array_position({literal_array(listed.tolist(), 'bigint')}, {key_hash})) - 1"
        by_key = f"get({literal_array(address[table.pin_channels].tolist())}, {place})"
        return frame.selectExpr("*", f"coalesce({by_key}, {by_slot}) AS {sql_name(column)}")
    from pyspark.sql import functions as F

    own = [address[channels].tolist() for channels in table.active_channels(listed).tolist()]
    hash_name, own_name = f"{column}_hash", f"{column}_own"
    entries = frame.sparkSession.createDataFrame(
        pa.table({hash_name: listed, own_name: pa.array(own, pa.list_(pa.int32()))})
    )
    joined = frame.join(F.broadcast(entries), F.expr(f"{key_hash} = {sql_name(hash_name)}"), "left")
    by_key = f"get({sql_name(own_name)}, int(pmod(monotonically_increasing_id(), size({sql_name(own_name)}))))"
    chosen = f"coalesce({by_key}, {by_slot}) AS {sql_name(column)}"
    return joined.selectExpr(*map(sql_name, frame.columns), chosen)


def with_copies(
    frame: DataFrame, keys: Sequence[str], table: RoutingTable, column: str, addresses: Sequence[int], *, order: bool
) -> DataFrame:
    """Send each row to its key's active copy and to every backup (the paper's Algorithm 1), as ``column``.

    A row's role is no column of it: whether a channel is a key's active copy is what the same table says there.

    Parameters
    ----------
    frame, keys, table, column, addresses
        As for :func:`with_channel`.
    order
        Whether to add the order of arrival.
    """
    from pyspark.sql import functions as F

    address = np.array(addresses)
    key_hash = f"xxhash64({', '.join(map(sql_name, keys))})"

    def holders(active: NDArray[np.int32], backups: Ragged) -> list[list[int]]:
        lists = zip(address[active].tolist(), backups.tolist(), strict=True)
        return [[home, *address[others].tolist()] for home, others in lists]

    names = [sql_name(name) for name in frame.columns]
    if order:
        frame = frame.selectExpr("*", f"monotonically_increasing_id() AS {ORDER}")
        names.append(ORDER)
    of_slots = json.dumps(holders(table.slot_channels, table.backups_of_slots), separators=(",", ":"))
    by_slot = f"get(from_json('{of_slots}', 'array<array<int>>'), int(pmod({key_hash}, {table.slots}L)))"
    if len(table.pin_hashes):
        own = holders(table.pin_channels, table.backups_of_pins)
        hash_name, own_name = f"{column}_hash", f"{column}_own"
        entries = frame.sparkSession.createDataFrame(
            pa.table({hash_name: table.pin_hashes, own_name: pa.array(own, pa.list_(pa.int32()))})
        )
        frame = frame.join(F.broadcast(entries), F.expr(f"{key_hash} = {sql_name(hash_name)}"), "left")
        by_slot = f"coalesce({sql_name(own_name)}, {by_slot})"
    return frame.selectExpr(*names, f"explode({by_slot}) AS {sql_name(column)}")
