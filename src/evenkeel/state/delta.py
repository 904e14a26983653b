"""What one batch changes in a channel's state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError
from evenkeel.state.identity import KEY_BYTES, ascending, locate, pack
from evenkeel.state.selection import NOTHING, Selection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["ABSENT", "UNKNOWN", "Delta", "Pending", "state_bytes"]

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


class Delta:
    """Collects the changes of one batch: first what is dropped, then what is written; the last write of a key wins.

    Nothing is changed before the delta is written and its batch committed.

    Notes
    -----
    Appending is O(1) per call besides the packing of keys; each write is sorted once, when first somebody looks,
    O(n log n) over the keys touched.

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
        self.woken_until: int | None = None
        """If values begin with times (see :mod:`~evenkeel.state.wakes`): up to when keys have been called now."""
        self._keys: list[NDArray[np.bytes_]] = []
        self._values: list[Any] = []
        self._previous: list[NDArray[np.int64]] = []
        self._pending = Pending(pack([], [], []), pa.array([], pa.large_binary()), np.empty(0, np.int64))
        """What was sorted already; later writes go over it."""

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
        self._keys.append(keys)
        self._values.append(values)
        self._previous.append(before)

    def import_(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Put the rows that another channel exported (slot, hash, hash2, value); give their state bytes."""
        moved = 0
        for batch in batches:
            slots, hashes, hashes2 = (batch.column(name).to_numpy() for name in ("slot", "hash", "hash2"))
            self.put(slots, hashes, hashes2, batch.column("value"))
            moved += KEY_BYTES * batch.num_rows + int(pc.sum(pc.binary_length(batch.column("value"))).as_py() or 0)
        return moved

    def drop(self, selection: Selection) -> None:
        """Drop what moved away. It concerns the version that was opened: what this delta writes stays."""
        self.dropped |= selection

    def __bool__(self) -> bool:
        return bool(self.dropped) or bool(len(self._pending.keys)) or any(len(keys) for keys in self._keys)

    def pending(self) -> Pending:
        """Give the writes, sorted, each key once."""
        if self._keys:
            latest = _sorted(self._keys, self._values, self._previous)
            self._keys, self._values, self._previous = [], [], []
            self._pending = _then(self._pending, latest) if len(self._pending.keys) else latest
        return self._pending


def _sorted(keys: list[NDArray[np.bytes_]], values: list[Any], previous: list[NDArray[np.int64]]) -> Pending:
    packed, before = np.concatenate(keys), np.concatenate(previous)
    joined = pa.chunked_array(values, pa.large_binary()).combine_chunks()
    order = ascending(packed)
    if order is not None:
        packed, before, joined = packed[order], before[order], joined.take(order)
    again = packed[1:] == packed[:-1]
    if not again.any():
        return Pending(packed, _one(joined), before)
    first, last = np.concatenate([[True], ~again]), np.concatenate([~again, [True]])
    # A later put of the same key may have seen the earlier one; only the first saw what was there before.
    return Pending(packed[last], _one(joined.filter(pa.array(last))), before[first])


def _then(earlier: Pending, later: Pending) -> Pending:
    """Put later writes over earlier ones. What was sorted stays so, and a key that is in both costs no comparison."""
    places = locate(earlier.keys, later.keys)
    again = places >= 0
    previous = later.previous_bytes.copy()
    previous[again] = earlier.previous_bytes[places[again]]  # the later put may have seen the earlier one
    left = np.ones(len(earlier.keys), np.bool_)
    left[places[again]] = False
    keys = np.concatenate([earlier.keys[left], later.keys])
    previous = np.concatenate([earlier.previous_bytes[left], previous])
    rows = np.concatenate([np.flatnonzero(left), len(left) + np.arange(len(later.keys))])
    order = ascending(keys)
    if order is not None:
        keys, previous, rows = keys[order], previous[order], rows[order]
    return Pending(keys, pa.concat_arrays([earlier.values, later.values]).take(rows), previous)


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
