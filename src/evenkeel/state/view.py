"""A version of a channel's state, opened for reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from evenkeel.state.delta import ABSENT, UNKNOWN, state_bytes
from evenkeel.state.identity import KEY_BYTES, ascending, pack, unpack
from evenkeel.state.reader import Reader
from evenkeel.state.selection import EVERYTHING
from evenkeel.state.totals import SlotTotals
from evenkeel.state.wakes import NEVER, wakes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import lmdb
    from numpy.typing import ArrayLike, NDArray

    from evenkeel.state.delta import Delta
    from evenkeel.state.environment import SharedEnvironment
    from evenkeel.state.manifest import ManifestRef
    from evenkeel.state.selection import Selection

__all__ = ["EXPORTED", "Opening", "StateView", "exported"]

EXPORTED = pa.schema(
    [
        pa.field("slot", pa.int32(), nullable=False),
        pa.field("hash", pa.int64(), nullable=False),
        pa.field("hash2", pa.int64(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)
"""The columns of exported state; Spark takes them as int, bigint, bigint, binary."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How a version was opened.

    Parameters
    ----------
    how
        ``"warm"``: the working copy was at that version; ``"caught up"``: it was some deltas behind; ``"rebuilt"``:
        from the checkpoint; ``"new"``: the channel holds nothing yet.
    deltas
        How many deltas were applied.
    read_bytes
        How many bytes of deltas and snapshots were read.
    took_ms
        Milliseconds it took.
    damaged
        Files that were found damaged on the way, and could be done without.
    """

    how: Literal["warm", "caught up", "rebuilt", "new"]
    deltas: int = 0
    read_bytes: int = 0
    took_ms: float = 0.0
    damaged: tuple[str, ...] = ()


class StateView:
    """One version of a channel's state. Use it as a context manager, or close it.

    It reads within one transaction: whatever other processes apply to the working copy meanwhile, it sees its version.
    """

    def __init__(
        self,
        shared: SharedEnvironment,
        txn: lmdb.Transaction[bytes],
        ref: ManifestRef | None,
        opening: Opening,
    ) -> None:
        self.shared = shared
        self.txn = txn
        self.ref = ref
        self.opening = opening
        self._reader = Reader(txn, shared)

    def __enter__(self) -> StateView:  # noqa: PYI034 - typing.Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading; harmless when done twice."""
        if self.txn is not None:
            self.txn.abort()
            self.txn = None  # type: ignore[assignment]
            self.shared.close()

    def get(
        self, slots: ArrayLike, hashes: ArrayLike, hashes2: ArrayLike, delta: Delta | None = None
    ) -> pa.BinaryArray:
        """Give the states of some keys, in their order; null where there is none.

        Parameters
        ----------
        slots, hashes, hashes2
            The keys.
        delta
            Look there first: what it has imported, written, deleted or dropped is seen as if it were committed.

        Notes
        -----
        O(keys · log keys held), about 0.4 µs per key.
        """
        packed = pack(slots, hashes, hashes2)
        order = ascending(packed)
        if order is not None:
            packed = packed[order]
        found = self._over(packed, delta) if delta else self.lookup(packed)
        if order is None:
            return found
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return found.take(pa.array(back))

    def lookup(self, packed: NDArray[np.bytes_]) -> pa.BinaryArray:
        """Give the states of packed keys in ascending order; null where there is none."""
        return self._reader.lookup(packed)

    def _over(self, packed: NDArray[np.bytes_], delta: Delta) -> pa.BinaryArray:
        """Look ascending keys up in a delta's writes, and below them those that it does not write."""
        written, values = delta.written(packed)
        below = self._below(packed[~written], delta)
        return _dealt([(written, values.cast(pa.binary())), (~written, below)])

    def _below(self, packed: NDArray[np.bytes_], delta: Delta) -> pa.BinaryArray:
        """Look ascending keys up where a delta's writes go: in what it adopts, else in what it does not drop."""
        if not delta.adopted and not delta.dropped:
            return self.lookup(packed)
        found, left = [], np.ones(len(packed), np.bool_)
        for source, selection in delta.adopted:
            there = left & selection.covers(packed)
            found.append((there, source.lookup(packed[there])))
            left &= ~there
        here = left & ~delta.dropped.covers(packed)
        return _dealt([*found, (here, self.lookup(packed[here]))])

    def due(
        self, until: int, delta: Delta
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], pa.BinaryArray]:
        """Give the keys that want to be called by ``until``: slots, hashes, second hashes and values.

        Parameters
        ----------
        until
            What the clock says.
        delta
            What it has imported or adopted counts, what it drops does not.

        Notes
        -----
        O(keys due, and keys that once wanted to be).
        """
        waiting = [self.waiting(until), delta.pending().keys]
        for source, selection in delta.adopted:
            there = source.waiting(until)
            waiting.append(there[selection.covers(there)])
        keys = np.unique(np.concatenate(waiting))
        slots, hashes, hashes2 = unpack(keys)
        values = self.get(slots, hashes, hashes2, delta)
        due = wakes_of(values) <= min(until, NEVER - 1)
        return slots[due], hashes[due], hashes2[due], values.filter(pa.array(due))

    def waiting(self, until: int) -> NDArray[np.bytes_]:
        """Give the keys of which some value, now or before, wanted to be called by ``until``."""
        return np.frombuffer(b"".join(self._reader.timers(until)), f"S{KEY_BYTES}")

    def export(self, selection: Selection) -> Iterator[pa.RecordBatch]:
        """Give the selected keys and states, in no order, in batches of at most 65,536 rows. O(keys selected)."""
        return (exported(*rows) for rows in self.rows(selection))

    def rows(self, selection: Selection) -> Iterator[tuple[NDArray[np.bytes_], pa.BinaryArray]]:
        """Give what :meth:`export` gives, as packed keys and states: for another channel of this host."""
        return self._reader.ranges(*selection.ranges())

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Give all keys and states, as :meth:`export` does."""
        ends = (np.array([end], f"S{KEY_BYTES}") for end in EVERYTHING)
        return (exported(*rows) for rows in self._reader.ranges(*ends))

    def totals(self) -> SlotTotals:
        """Give keys and state bytes per slot; kept by addition, so this costs O(slots held)."""
        return self._reader.totals()

    def change_of(self, delta: Delta) -> SlotTotals:
        """Give what a delta changes in the totals. O(keys it touches), less where previous values were given."""
        pending = delta.pending()
        previous = pending.previous_bytes.copy()
        slots, _, _ = unpack(pending.keys)
        unknown = np.flatnonzero(previous == UNKNOWN)
        if len(unknown):
            some = np.concatenate([self.totals().slots, delta.adopted_totals.slots])
            held = np.isin(slots[unknown], some)  # most of what moves here comes to slots that are not
            previous[unknown[~held]] = ABSENT
            unknown = unknown[held]
            previous[unknown] = state_bytes(self._below(pending.keys[unknown], delta))
        previous[delta.dropped.covers(pending.keys) & ~delta.adopts(pending.keys)] = ABSENT
        lengths = np.diff(_offsets(pending.values))
        after = np.where(_is_valid(pending.values), lengths + KEY_BYTES, ABSENT)
        written = SlotTotals.of(slots, (after != ABSENT).astype(np.int64) - (previous != ABSENT), after - previous)
        return written + delta.adopted_totals + self.totals_of(delta.dropped, sign=-1)

    def totals_of(self, selection: Selection, *, sign: int = 1) -> SlotTotals:
        """Give keys and state bytes of what is selected, or with ``sign=-1`` what taking it away changes.

        O(slots held, and keys that are spared or selected by themselves).
        """
        whole = self.totals().select(sorted(selection.slots), sign=sign)
        spared = self._count(type(selection)(keys=selection.spared), -sign)
        return whole + spared + self._count(type(selection)(keys=selection.keys), sign)

    def _count(self, selection: Selection, sign: int) -> SlotTotals:
        total = SlotTotals.empty()
        for packed, values in self.rows(selection):
            total += SlotTotals.of(unpack(packed)[0], np.full(len(packed), sign), sign * state_bytes(values))
        return total


def _dealt(found: list[tuple[NDArray[np.bool_], Any]]) -> pa.BinaryArray:
    """Put values to where each of them belongs; null where none does."""
    rows = np.full(len(found[0][0]), -1)
    start = 0
    for places, values in found:
        rows[places] = start + np.arange(len(values))
        start += len(values)
    return pa.concat_arrays([values for _, values in found]).take(pa.array(rows, mask=rows < 0))


def exported(packed: NDArray[np.bytes_], values: pa.BinaryArray) -> pa.RecordBatch:
    """Give packed keys and their states as rows for other hosts."""
    return pa.RecordBatch.from_arrays([*unpack(packed), values], schema=EXPORTED)


def _offsets(values: Any) -> NDArray[np.int64]:
    return np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]


def _is_valid(values: Any) -> NDArray[np.bool_]:
    return values.is_valid().to_numpy(zero_copy_only=False)
