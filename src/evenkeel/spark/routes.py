"""What runs before the shuffle, in Spark's Python workers: per-tuple routing, and combining."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.hashing import hash_keys
from evenkeel.operators import NEVER, NO_WATERMARK, Groups, Moment, RowCodec
from evenkeel.operators.split import PART
from evenkeel.spark.homes import PLACE
from evenkeel.spark.times import LATE, TIME, event_times
from evenkeel.state import second_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evenkeel.operators import Mergeable
    from evenkeel.routing import Router

__all__ = ["TUPLES", "Combine", "Route"]

TUPLES = "__evenkeel_tuples"
"""How many tuples a partial state is of."""


@dataclass(frozen=True)
class Route:
    """Give each tuple a channel; every task is a source of its own, with a router that starts afresh.

    Parameters
    ----------
    router
        Chooses the channels.
    key_names
        The key columns.
    addresses
        The placement value of each channel.
    probe
        A column of booleans: tuples for which it is true go to every channel that may hold a part of their key.
    """

    router: Router
    key_names: tuple[str, ...]
    addresses: tuple[int, ...]
    probe: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add the placement values."""
        addresses = np.array(self.addresses, np.int32)
        for batch in batches:
            hashes = hash_keys(*(batch.column(name) for name in self.key_names))
            if self.probe is None:
                yield batch.append_column(PLACE, pa.array(addresses[self.router.route(hashes)]))
                continue
            asks = batch.column(self.probe).fill_null(False).to_numpy(zero_copy_only=False)
            rows, channels = np.flatnonzero(~asks), self.router.route(hashes[~asks])
            reach = self.router.reachable(hashes[asks])
            wanted = np.repeat(np.flatnonzero(asks), reach.shape[1])
            pairs = np.unique(np.column_stack([wanted, reach.ravel()]), axis=0)
            sent = batch.take(np.concatenate([rows, pairs[:, 0]]))
            places = addresses[np.concatenate([channels, pairs[:, 1]])]
            yield sent.append_column(PLACE, pa.array(places))


@dataclass(frozen=True)
class Combine:
    """Lift the tuples of a task to one partial state per key, before they are shuffled.

    With each go the number of its tuples, its newest event time, and on the first row how many tuples came late.

    Parameters
    ----------
    operator
        What to lift with.
    key_names, rows
        The key columns, and all columns.
    event_time
        The column of event times, if there is one.
    now
        When the batch is processed.
    at_once
        How many tuples to combine together, at most; more save shuffling and take memory.
    """

    operator: Mergeable
    key_names: tuple[str, ...]
    rows: pa.Schema
    event_time: str | None
    now: Moment
    at_once: int = 1_000_000

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give keys and encoded states."""
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(part.num_rows for part in waiting) >= self.at_once:
                yield from self._combine(waiting)
                waiting = []
        if waiting:
            yield from self._combine(waiting)

    def _combine(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(batches).cast(self.rows)
        columns = [rows[name] for name in self.key_names]
        times = event_times(rows, self.event_time)
        hashes = hash_keys(*columns)
        groups = Groups.of(rows, self.key_names, hashes, second_hash(*columns), times=times, now=self.now)
        codec = RowCodec(self.operator.state_schema(self.rows))
        states = self.operator.lift(groups).cast(codec.schema)
        out = groups.keys.append_column(PART, codec.encode(states).cast(pa.binary()))
        newest = np.full(len(groups), NO_WATERMARK)
        if times is not None:
            np.maximum.at(newest, groups.key_of, np.where(times == NEVER, NO_WATERMARK, times))
        late = np.zeros(len(groups), np.int64)
        late[:1] = self.operator.late(groups)
        for name, column in ((TUPLES, groups.counts), (TIME, newest), (LATE, late)):
            out = out.append_column(name, pa.array(column))
        yield from out.to_batches()
