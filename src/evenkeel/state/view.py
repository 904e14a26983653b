"""A version of a channel's state, opened for reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.state.delta import ABSENT, UNKNOWN
from evenkeel.state.identity import KEY_BYTES, as_list, ascending, locate, pack, unpack
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

__all__ = ["EXPORTED", "Opening", "StateView"]

EXPORTED = pa.schema(
    [
        pa.field("slot", pa.int32(), nullable=False),
        pa.field("hash", pa.int64(), nullable=False),
        pa.field("hash2", pa.int64(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)
"""The columns of exported state; Spark takes them as int, bigint, bigint, binary."""

_MOST_ROWS, _MOST_BYTES = 65_536, 32 << 20


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
        packed = packed[order]
        values: list[Any] = self._reader.lookup(as_list(packed))
        if delta:
            pending = delta.pending()
            places = locate(pending.keys, packed)
            for place in np.flatnonzero((places < 0) & delta.dropped.covers(packed)).tolist():
                values[place] = None
            written = np.flatnonzero(places >= 0)
            for place, value in zip(written.tolist(), pending.values.take(places[written]).to_pylist(), strict=True):
                values[place] = value
        found = pa.array(values, pa.binary())
        if isinstance(found, pa.ChunkedArray):
            raise InvalidArgumentError(
                f"The states of these {len(packed)} keys take more than 2 GiB. Ask for fewer keys at a time."
            )
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return found.take(pa.array(back))

    def due(
        self, until: int, delta: Delta
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], pa.BinaryArray]:
        """Give the keys that want to be called by ``until``: slots, hashes, second hashes and values.

        Parameters
        ----------
        until
            What the clock says.
        delta
            What it has imported counts, what it drops does not.

        Notes
        -----
        O(keys due, and keys that once wanted to be).
        """
        waiting = np.frombuffer(b"".join(self._reader.timers(until)), f"S{KEY_BYTES}")
        keys = np.unique(np.concatenate([waiting, delta.pending().keys]))
        slots, hashes, hashes2 = unpack(keys)
        values = self.get(slots, hashes, hashes2, delta)
        due = wakes_of(values) <= min(until, NEVER - 1)
        return slots[due], hashes[due], hashes2[due], values.filter(pa.array(due))

    def export(self, selection: Selection) -> Iterator[pa.RecordBatch]:
        """Give the selected keys and states, in no order, in batches of at most 65,536 rows. O(keys selected)."""
        return self._batches(selection.range_list())

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Give all keys and states, as :meth:`export` does."""
        return self._batches([EVERYTHING])

    def _batches(self, ranges: list[tuple[bytes, bytes]]) -> Iterator[pa.RecordBatch]:
        keys: list[bytes] = []
        values: list[bytes] = []
        size = 0
        for more_keys, more_values in self._reader.ranges(ranges):
            start = 0
            for end in _cuts(more_values, len(keys), size):
                keys += more_keys[start:end]
                values += more_values[start:end]
                yield _as_batch(keys, values)
                keys, values, size, start = [], [], 0, end
            keys += more_keys[start:]
            values += more_values[start:]
            size += sum(map(len, more_values[start:]))
        if keys:
            yield _as_batch(keys, values)

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
            held = np.isin(slots[unknown], self.totals().slots)  # most of what moves here comes to slots that are not
            previous[unknown[~held]] = ABSENT
            unknown = unknown[held]
            found = self._reader.lookup(as_list(pending.keys[unknown]))
            previous[unknown] = [ABSENT if value is None else KEY_BYTES + len(value) for value in found]
        previous[delta.dropped.covers(pending.keys)] = ABSENT
        lengths = np.diff(_offsets(pending.values))
        after = np.where(_is_valid(pending.values), lengths + KEY_BYTES, ABSENT)
        written = SlotTotals.of(slots, (after != ABSENT).astype(np.int64) - (previous != ABSENT), after - previous)
        return written + self._dropped(delta.dropped)

    def _dropped(self, dropped: Selection) -> SlotTotals:
        whole = self.totals().select(sorted(dropped.slots), sign=-1)
        kept = self._count(type(dropped)(keys=dropped.spared), sign=1)
        return whole + kept + self._count(type(dropped)(keys=dropped.keys), sign=-1)

    def _count(self, selection: Selection, sign: int) -> SlotTotals:
        total = SlotTotals.empty()
        for keys, values in self._reader.ranges(selection.range_list()):
            slots = [int.from_bytes(key[:4], "big") for key in keys]
            total += SlotTotals.of(slots, [sign] * len(keys), [sign * (KEY_BYTES + len(value)) for value in values])
        return total


def _cuts(values: list[bytes], rows: int, size: int) -> Iterator[int]:
    """Where to end a batch so that none has too many rows or bytes; a chunk has at most some thousand rows."""
    if rows + len(values) <= _MOST_ROWS and size + sum(map(len, values)) <= _MOST_BYTES:
        return
    for place, value in enumerate(values):
        if rows and (rows >= _MOST_ROWS or size + len(value) > _MOST_BYTES):
            yield place
            rows = size = 0
        rows, size = rows + 1, size + len(value)


def _as_batch(keys: list[bytes], values: list[bytes]) -> pa.RecordBatch:
    packed = np.frombuffer(b"".join(keys), f"S{KEY_BYTES}")
    return pa.RecordBatch.from_arrays([*unpack(packed), pa.array(values, pa.binary())], schema=EXPORTED)


def _offsets(values: Any) -> NDArray[np.int64]:
    return np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]


def _is_valid(values: Any) -> NDArray[np.bool_]:
    return values.is_valid().to_numpy(zero_copy_only=False)
