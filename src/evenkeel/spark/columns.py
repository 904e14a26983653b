"""A routing table compiled to Spark columns: no Python on the routing path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.operators.mergeable import sql_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from evenkeel.routing import Ragged, RoutingTable

__all__ = ["ORDER", "with_channel", "with_copies"]

ORDER = "__evenkeel_order"
"""In which order tuples arrived: the same on every copy of their key."""
_MANY = 2048  # entries from which on a broadcast costs less than constants that go with every task


def _literal_array(values: Sequence[Any], kind: str = "int") -> str:
    """Give an array of whole numbers, or of arrays of them, as one literal of SQL.

    Parsed from text by Spark and folded into a constant when the query is planned; an array of literals would be an
    expression for each element.
    """
    return f"from_json('{json.dumps(values, separators=(',', ':'))}', 'array<{kind}>')"


def with_channel(
    frame: DataFrame,
    keys: Sequence[str],
    table: RoutingTable,
    column: str = "channel",
    addresses: Sequence[int] | None = None,
    kept: Sequence[str] | None = None,
) -> DataFrame:
    """Add the channel of each row as ``column``, or its address: its slot's, or that of its key's own entry.

    Keys are hashed by Spark's ``xxhash64``, slots are a constant array, entries of keys a constant hash table, or very
    many of them a broadcast join, which costs a job of its own. The rows of a split key take turns over its channels
    within each task. All is said in SQL, and in as few steps as can be, since every column that is put together in
    Python costs calls into the JVM, and every step an analysis of the whole query, in every batch.

    Parameters
    ----------
    frame, keys, table, column
        The rows, what they are grouped by, where keys are, and what to call what is added.
    addresses
        Of each channel, if not its number.
    kept
        The columns of ``frame`` to keep, in SQL; all by default.
    """
    address = np.arange(table.channels) if addresses is None else np.array(addresses)
    kept = list(map(sql_name, frame.columns)) if kept is None else kept
    key_hash = _hash_of(keys)
    slots = _literal_array(address[table.slot_channels].tolist())
    place = f"get({slots}, int(pmod({key_hash}, {table.slots}L)))"
    listed = np.concatenate([table.pin_hashes, table.split_hashes])
    if len(listed):
        own = [address[channels].tolist() for channels in table.active_channels(listed).tolist()]
        frame, entry = _with_entries(frame, key_hash, listed, own, column)
        turn = f"int(pmod(monotonically_increasing_id(), size({entry})))" if len(table.split_hashes) else "0"
        place = f"coalesce(get({entry}, {turn}), {place})"
    return frame.selectExpr(*kept, f"{place} AS {sql_name(column)}")


def with_copies(
    frame: DataFrame,
    keys: Sequence[str],
    table: RoutingTable,
    column: str,
    addresses: Sequence[int],
    kept: Sequence[str],
    *,
    order: bool,
) -> DataFrame:
    """Send each row to its key's active copy and to every backup (the paper's Algorithm 1), as ``column``.

    A row's role is no column of it: whether a channel is a key's active copy is what the same table says there.

    Parameters
    ----------
    frame, keys, table, column, addresses, kept
        As for :func:`with_channel`.
    order
        Whether to add the order of arrival.
    """
    address = np.array(addresses)
    key_hash = _hash_of(keys)

    def holders(active: NDArray[np.int32], backups: Ragged) -> list[list[int]]:
        lists = zip(address[active].tolist(), backups.tolist(), strict=True)
        return [[home, *address[others].tolist()] for home, others in lists]

    if order:
        frame = frame.selectExpr(*kept, f"monotonically_increasing_id() AS {ORDER}")
        kept = list(map(sql_name, frame.columns))
    of_slots = _literal_array(holders(table.slot_channels, table.backups_of_slots), "array<int>")
    places = f"get({of_slots}, int(pmod({key_hash}, {table.slots}L)))"
    if len(table.pin_hashes):
        own = holders(table.pin_channels, table.backups_of_pins)
        frame, entry = _with_entries(frame, key_hash, table.pin_hashes, own, column)
        places = f"coalesce({entry}, {places})"
    return frame.selectExpr(*kept, f"explode({places}) AS {sql_name(column)}")


def _hash_of(keys: Sequence[str]) -> str:
    return f"xxhash64({', '.join(map(sql_name, keys))})"


def _with_entries(
    frame: DataFrame, key_hash: str, hashes: NDArray[np.int64], places: list[list[int]], column: str
) -> tuple[DataFrame, str]:
    """Give what finds the entry of a row's key, null if it has none; of very many, as a column of a broadcast join."""
    if len(hashes) <= _MANY:
        return frame, _entry(key_hash, hashes.tolist(), places)
    from pyspark.sql import functions as F

    hash_name, entry = f"{column}_hash", f"{column}_own"
    entries = frame.sparkSession.createDataFrame(
        pa.table({hash_name: hashes, entry: pa.array(places, pa.list_(pa.int32()))})
    )
    joined = frame.join(F.broadcast(entries), F.expr(f"{key_hash} = {sql_name(hash_name)}"), "left")
    return joined, sql_name(entry)


def _entry(key_hash: str, hashes: list[int], places: list[list[int]]) -> str:
    """Give the entry of a key from a hash table of constants, with two buckets for each key that has one."""
    buckets = 2 * len(hashes)
    listed: list[list[int]] = [[] for _ in range(buckets)]
    entries: list[list[list[int]]] = [[] for _ in range(buckets)]
    for key, place in zip(hashes, places, strict=True):
        listed[key % buckets].append(key)
        entries[key % buckets].append(place)
    bucket = f"int(pmod({key_hash}, {buckets}L))"
    position = f"int(array_position(get({_literal_array(listed, 'array<bigint>')}, {bucket}), {key_hash})) - 1"
    return f"get(get({_literal_array(entries, 'array<array<int>>')}, {bucket}), {position})"
