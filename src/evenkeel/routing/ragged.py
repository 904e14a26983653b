"""Lists of channels of different lengths, as two arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidTableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = ["Ragged", "contains", "is_ascending", "union"]


def is_ascending(values: NDArray[np.int64]) -> bool:
    """Say whether no value is below the one before it; by comparison, since differences of hashes overflow."""
    return not (values[1:] < values[:-1]).any()


def contains(members: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which ``values`` are among the ascending ``members``; cheaper than ``np.isin``, which sorts or hashes."""
    if len(members) == 0:
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(members, values), len(members) - 1)
    found: NDArray[np.bool_] = members[places] == values
    return found


def union(*parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the distinct values of all ``parts``, ascending."""
    values = np.sort(np.concatenate(parts), kind="stable")  # timsort: the parts are mostly sorted already
    return values[np.concatenate([np.ones(min(1, len(values)), np.bool_), values[1:] != values[:-1]])]


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Row ``i`` is ``channels[offsets[i] : offsets[i + 1]]``.

    Parameters
    ----------
    offsets
        One more than there are rows; starts at 0, never falls.
    channels
        All rows, one after the other.
    """

    offsets: NDArray[np.int64]
    channels: NDArray[np.int32]

    def __post_init__(self) -> None:
        for name, kind in (("offsets", np.int64), ("channels", np.int32)):
            array = np.array(getattr(self, name), kind)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.channels):
            raise InvalidTableError("Offsets must start at 0 and end at the number of channels listed.")
        if (np.diff(self.offsets) < 0).any():
            raise InvalidTableError("Offsets must never fall.")

    @classmethod
    def empty(cls, rows: int) -> Ragged:
        """Give ``rows`` rows with nothing in them."""
        return cls(np.zeros(rows + 1, np.int64), np.empty(0, np.int32))

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]]) -> Ragged:
        """Build from plain lists.

        >>> Ragged.of([[1, 2], [], [3]]).tolist()
        [[1, 2], [], [3]]
        """
        lists = list(rows)
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in lists], dtype=np.int64)])
        return cls(offsets, np.array([channel for row in lists for channel in row], np.int32))

    @classmethod
    def of_pairs(cls, rows: NDArray[np.int64], channels: NDArray[np.int32], count: int) -> Ragged:
        """Build ``count`` rows from (row, channel) pairs; within a row, channels keep the pairs' order."""
        order = np.argsort(rows, kind="stable")
        return cls(np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]), channels[order])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ragged):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.channels, other.channels)

    __hash__ = None  # type: ignore[assignment]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many channels each row lists."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> NDArray[np.int64]:
        """For each listed channel, the row that lists it."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays, nothing where no row lists a channel."""
        return self.offsets.nbytes + self.channels.nbytes if len(self.channels) else 0

    def take(self, indices: NDArray[np.int64]) -> Ragged:
        """Give the rows at ``indices``, in that order."""
        lengths = self.lengths[indices]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # Position within the row, plus where the row starts.
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return Ragged(offsets, self.channels[np.repeat(self.offsets[:-1][indices], lengths) + within])

    def tolist(self) -> list[list[int]]:
        """Plain lists, for people."""
        return [row.tolist() for row in np.split(self.channels, self.offsets[1:-1])] if len(self) else []
