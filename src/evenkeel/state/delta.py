"""What one batch changes in a channel's state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError
from evenkeel.state.identity import KEY_BYTES, ascending, locate, pack
from evenkeel.state.selection import NOTHING, Selection
from evenkeel.state.totals import SlotTotals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from evenkeel.state.view import StateView

__all__ = ["ABSENT", "UNKNOWN", "Delta", "Pending", "state_bytes"]

_IDENTITY = ("slot", "hash", "hash2")
UNKNOWN, ABSENT = -1, 0
"""What is known of a key's bytes before the batch, if not their number."""


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """The writes of a delta, each key once, in ascending order of packed keys.

    Parameters
    ----------
    keys
        Packed keys.
    values
        ``large_binary``; null deletes the key.
    previous_bytes
        State bytes of each key before the batch; :data:`ABSENT` or :data:`UNKNOWN`.
    """

    keys: NDArray[np.bytes_]
    values: Any
    previous_bytes: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Writes:
    """Writes of keys: in which row their values lie, and what is known of the bytes before.

    If they are settled, then in ascending order of keys, and each key once.
    """

    keys: NDArray[np.bytes_]
    rows: NDArray[np.int64]
    previous_bytes: NDArray[np.int64]
    settled: bool = False


def _last_of_each(writes: list[_Writes]) -> _Writes:
    """Put writes in order, of each key the last one: with what the first one knew of the bytes before.

    A later write of the same key may have seen the earlier one.
    """
    if not writes:
        return _Writes(pack([], [], []), np.empty(0, np.int64), np.empty(0, np.int64), settled=True)
    keys, rows, previous = (
        np.concatenate(parts)
        for parts in zip(*((some.keys, some.rows, some.previous_bytes) for some in writes), strict=True)
    )
    order = ascending(keys)
    if order is not None:
        keys, rows, previous = keys[order], rows[order], previous[order]
    again = keys[1:] == keys[:-1]
    if again.any():
        first, last = np.concatenate([[True], ~again]), np.concatenate([~again, [True]])
        keys, rows, previous = keys[last], rows[last], previous[first]
    return _Writes(keys, rows, previous, settled=True)


class Delta:
    """Collects the changes of one batch: what is dropped, then what is adopted, then what is written.

    Of adopted and written states of a key, the last one wins. Nothing is changed before the delta is written and its
    batch committed.

    Notes
    -----
    Appending is O(1) per call besides the packing of keys. Keys are put in order when first somebody looks, O(n log n)
    over the keys touched; values are copied once, when all are asked for.

    Examples
    --------
    >>> delta = Delta()
    >>> delta.put([0, 0], [1, 2], [1, 2], pa.array([b"one", b"two"]))
    >>> delta.put([0], [2], [2], pa.array([None], pa.binary()))
    >>> delta.pending().values.to_pylist()
    [b'one', None]
    """

    def __init__(self) -> None:
        self.dropped: Selection = NOTHING
        self.adopted: list[tuple[StateView, Selection]] = []
        """Who on this host has states that this delta brings in, and which: they are read when it is written."""
        self.adopted_totals = SlotTotals.empty()
        """Keys and bytes of those states, per slot."""
        self.woken_until: int | None = None
        """If values begin with times (see :mod:`~evenkeel.state.wakes`): up to when keys have been called now."""
        self._writes: list[_Writes] = []
        self._values: list[Any] = []
        """The values of all writes, those that other writes of their keys have replaced, too."""
        self._pending: Pending | None = None
        """All writes, if nothing was written since somebody asked for them."""

    def put(
        self,
        slots: ArrayLike,
        hashes: ArrayLike,
        hashes2: ArrayLike,
        values: Any,
        previous: Any | None = None,
    ) -> None:
        """Set the states of keys; a null value deletes the key.

        Parameters
        ----------
        slots, hashes, hashes2
            The keys.
        values
            Their encoded states: any binary Arrow array.
        previous
            What ``get`` gave for these keys, if at hand. It saves a look-up, which otherwise finds the change of the
            slot's bytes; it is not written anywhere.
        """
        keys = pack(slots, hashes, hashes2)
        values = _as_large_binary(values)
        before = np.full(len(keys), UNKNOWN, np.int64) if previous is None else state_bytes(previous)
        if not len(keys) == len(values) == len(before):
            raise InvalidArgumentError(
                f"Keys, values and previous values must have one length; got {len(keys)}, {len(values)}, {len(before)}."
            )
        self._add(keys, values, before)

    def _add(self, keys: NDArray[np.bytes_], values: Any, previous: NDArray[np.int64]) -> None:
        if len(keys):
            start = sum(map(len, self._values))
            self._writes.append(_Writes(keys, np.arange(start, start + len(keys)), previous))
            self._values.append(values)
            self._pending = None

    def import_(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Put the rows that another channel exported (slot, hash, hash2, value); give their state bytes."""
        size = 0
        for batch in batches:
            keys, values = pack(*(batch.column(name).to_numpy() for name in _IDENTITY)), batch.column("value")
            self._add(keys, _as_large_binary(values), np.full(len(keys), UNKNOWN, np.int64))
            size += KEY_BYTES * len(keys) + int(pc.sum(pc.binary_length(values)).as_py() or 0)
        return size

    def adopt(self, source: StateView, selection: Selection) -> int:
        """Put what another channel of this host has, and give its state bytes.

        ``source`` must stay open until the delta is written: only then is it read, and not held in memory.
        """
        totals = source.totals_of(selection)
        self.adopted.append((source, selection))
        self.adopted_totals += totals
        return totals.total_bytes

    def adopts(self, packed: NDArray[np.bytes_]) -> NDArray[np.bool_]:
        """Say which keys are among those adopted, whether they have a state or not."""
        found = np.zeros(len(packed), np.bool_)
        for _, selection in self.adopted:
            found |= selection.covers(packed)
        return found

    def drop(self, selection: Selection) -> None:
        """Drop what moved away. It concerns the version that was opened: what this delta writes stays."""
        self.dropped |= selection

    def __bool__(self) -> bool:
        return bool(self.dropped) or bool(self.adopted) or bool(self._writes)

    def written(self, packed: NDArray[np.bytes_]) -> tuple[NDArray[np.bool_], Any]:
        """Say which keys are written, and give the values of those. O(keys · log keys written)."""
        writes = self._settled()
        places = locate(writes.keys, packed)
        found = places >= 0
        return found, self._joined().take(writes.rows[places[found]])

    def pending(self) -> Pending:
        """Give the writes, sorted, each key once."""
        if self._pending is None:
            writes, values = self._settled(), self._joined()
            if not np.array_equal(writes.rows, np.arange(len(values))):
                values = _one(values.take(writes.rows))
            self._pending = Pending(writes.keys, values, writes.previous_bytes)
            self._values = [values]
            self._writes = [replace(writes, rows=np.arange(len(values)))] if len(values) else []
        return self._pending

    def _settled(self) -> _Writes:
        """The last write of each key, in order."""
        if len(self._writes) != 1 or not self._writes[0].settled:
            found = _last_of_each(self._writes)
            self._writes = [found] if len(found.keys) else []
            return found
        return self._writes[0]

    def _joined(self) -> Any:
        """All values as one array."""
        if len(self._values) != 1:
            self._values = [pa.concat_arrays([pa.array([], pa.large_binary()), *self._values])]
        return self._values[0]


def _one(array: Any) -> Any:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _as_large_binary(values: Any) -> Any:
    values = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, pa.large_binary())
    kind = values.type
    if not (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_null(kind)
    ):
        raise InvalidArgumentError(f"States are bytes: a binary Arrow array; got {kind}.")
    return _one(values.cast(pa.large_binary()))


def state_bytes(values: Any) -> NDArray[np.int64]:
    """Bytes of value and identity; :data:`ABSENT` for nulls."""
    lengths = pc.add(pc.cast(pc.binary_length(values), pa.int64()), KEY_BYTES)
    return _one(pc.fill_null(lengths, ABSENT)).to_numpy(zero_copy_only=False)
