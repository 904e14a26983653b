"""How many keys and bytes each slot holds, kept by addition and never by counting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import CorruptDataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["SlotTotals"]

_ROW = np.dtype([("slot", "<i4"), ("keys", "<i8"), ("bytes", "<i8")])


@dataclass(frozen=True, slots=True, eq=False)
class SlotTotals:
    """Keys and state bytes per slot, or changes of them; only slots with something to say, ascending.

    A key's state bytes are the bytes of its value plus the 20 of its identity: what a move of it carries.

    Notes
    -----
    20 bytes per slot; all operations are O(slots named).

    Examples
    --------
    >>> now = SlotTotals.of([7, 2, 7], [1, 1, 1], [30, 21, 25])
    >>> now.slots.tolist(), now.keys.tolist(), now.state_bytes.tolist()
    ([2, 7], [1, 2], [21, 55])
    """

    slots: NDArray[np.int32]
    keys: NDArray[np.int64]
    state_bytes: NDArray[np.int64]

    @classmethod
    def of(cls, slots: ArrayLike, keys: ArrayLike, state_bytes: ArrayLike) -> SlotTotals:
        """Add up what is said about each slot."""
        slots = np.asarray(slots, np.int32)
        if len(slots) == 0:
            return cls.empty()
        rows = np.stack([np.asarray(keys, np.int64), np.asarray(state_bytes, np.int64)])
        if (slots[1:] < slots[:-1]).any():
            order = np.argsort(slots, kind="stable")
            slots, rows = slots[order], rows[:, order]
        starts = np.flatnonzero(np.concatenate([[True], slots[1:] != slots[:-1]]))
        sums = np.add.reduceat(rows, starts, axis=1)
        kept = sums.any(axis=0)
        return cls(slots[starts][kept], sums[0][kept], sums[1][kept])

    @classmethod
    def empty(cls) -> SlotTotals:
        """Give the totals of nothing."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64))

    def __add__(self, other: SlotTotals) -> SlotTotals:
        return SlotTotals.of(
            np.concatenate([self.slots, other.slots]),
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.state_bytes, other.state_bytes]),
        )

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, SlotTotals) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def total_keys(self) -> int:
        """Keys of all slots."""
        return int(self.keys.sum())

    @property
    def total_bytes(self) -> int:
        """State bytes of all slots."""
        return int(self.state_bytes.sum())

    def select(self, slots: ArrayLike, *, sign: int = 1) -> SlotTotals:
        """Give the part about some slots, or with ``sign=-1`` what taking it away changes."""
        kept = np.isin(self.slots, np.asarray(slots, np.int32))
        return SlotTotals(self.slots[kept], sign * self.keys[kept], sign * self.state_bytes[kept])

    def dense(self, slots: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give keys and state bytes of the slots 0 … ``slots`` - 1."""
        keys, state_bytes = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
        keys[self.slots], state_bytes[self.slots] = self.keys, self.state_bytes
        return keys, state_bytes

    def to_bytes(self) -> bytes:
        """Give 20 bytes per slot: number, keys, bytes, little-endian."""
        rows = np.empty(len(self.slots), _ROW)
        rows["slot"], rows["keys"], rows["bytes"] = self.slots, self.keys, self.state_bytes
        return rows.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> SlotTotals:
        """Read what :meth:`to_bytes` gave."""
        if len(data) % _ROW.itemsize:
            raise CorruptDataError(f"Slot totals have {_ROW.itemsize} bytes per slot; these are {len(data)} bytes.")
        rows = np.frombuffer(data, _ROW)
        return cls(rows["slot"].astype(np.int32), rows["keys"].astype(np.int64), rows["bytes"].astype(np.int64))
