"""A routing table compiled to Spark columns: no Python on the routing path."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.operators.mergeable import sql_name
from evenkeel.spark.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from evenkeel.routing import Ragged, RoutingTable

__all__ = ["ORDER", "at_addresses", "channel_of", "with_channel", "with_copies"]

ORDER = "__evenkeel_order"
"""In which order tuples arrived: the same on every copy of their key."""
_MANY = 2048  # entries from which on a broadcast costs less than constants that go with every task
_KEPT_TABLES = 16


def _literal_array(values: Sequence[Any], kind: str = "int") -> str:
    """Give an array of whole numbers, or of arrays of them, as one literal of SQL.

    Parsed from text by Spark and folded into a constant when the query is planned; an array of literals would be an
    expression for each element.
    """
    return f"from_json('{json.dumps(values, separators=(',', ':'))}', 'array<{kind}>')"


def at_addresses(channel: str, addresses: Sequence[int]) -> str:
    """Say in SQL what the address of a channel is."""
    return f"get({_literal_array(addresses)}, {channel})"


def with_channel(
    frame: DataFrame,
    keys: Sequence[str],
    table: RoutingTable,
    column: str = "channel",
    addresses: Sequence[int] | None = None,
    kept: Sequence[str] | None = None,
    steps: Steps | None = None,
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
    steps
        What was made for batches before.
    """
    keys, given = tuple(keys), None if addresses is None else tuple(addresses)
    kept = list(map(sql_name, frame.columns)) if kept is None else kept
    place = channel_of(keys, table, given)
    if place is None:
        frame, entry = _with_entries(frame, _hash_of(keys), *_listed(table, given), column)
        place = _place(keys, table, given, entry)
    return (steps or Steps()).select(frame, *kept, f"{place} AS {sql_name(column)}")


@lru_cache(_KEPT_TABLES)
def channel_of(keys: tuple[str, ...], table: RoutingTable, addresses: tuple[int, ...] | None = None) -> str | None:
    """Say in SQL which channel a row goes to, or its address; None where so many keys are listed that it takes a join.

    It is the same for all rows of a key, unless the table splits keys.
    """
    hashes, places = _listed(table, addresses)
    if len(hashes) > _MANY:
        return None
    entry = _entry(_hash_of(keys), hashes.tolist(), places) if len(hashes) else None
    return _place(keys, table, addresses, entry)


def _addresses(table: RoutingTable, addresses: tuple[int, ...] | None) -> NDArray[np.int64]:
    return np.arange(table.channels) if addresses is None else np.array(addresses)


def _listed(table: RoutingTable, addresses: tuple[int, ...] | None) -> tuple[NDArray[np.int64], list[list[int]]]:
    """Give the keys that have entries, and the addresses of each one's channels."""
    hashes = np.concatenate([table.pin_hashes, table.split_hashes])
    address = _addresses(table, addresses)
    return hashes, [address[channels].tolist() for channels in table.active_channels(hashes).tolist()]


def _place(keys: tuple[str, ...], table: RoutingTable, addresses: tuple[int, ...] | None, entry: str | None) -> str:
    """Say where a row goes: by its key's entry, if there is one, else by its slot."""
    slots = _literal_array(_addresses(table, addresses)[table.slot_channels].tolist())
    place = f"get({slots}, int(pmod({_hash_of(keys)}, {table.slots}L)))"
    if entry is None:
        return place
    turn = f"int(pmod(monotonically_increasing_id(), size({entry})))" if len(table.split_hashes) else "0"
    return f"coalesce(get({entry}, {turn}), {place})"


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
