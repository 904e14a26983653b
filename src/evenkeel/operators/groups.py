"""The tuples of a channel in one micro-batch, told apart by their keys."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["NEVER", "NO_WATERMARK", "Groups", "Moment"]

NEVER = np.iinfo(np.int64).max
"""A time that no clock reaches."""
NO_WATERMARK = np.iinfo(np.int64).min
"""The watermark while no event time is known."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When a batch is processed.

    Parameters
    ----------
    batch
        Its number.
    watermark
        The event time, in microseconds, before which nothing more is expected; fixed before the batch began, by the
        batches before it. :data:`NO_WATERMARK` at first.
    time
        When the driver began the batch, in microseconds since 1970.
    """

    batch: int = 0
    watermark: int = NO_WATERMARK
    time: int = 0


@dataclass(frozen=True, eq=False)
class Groups:
    """All tuples of a channel in one batch, and which key each of them has.

    Parameters
    ----------
    rows
        The tuples, in the order in which they came.
    keys
        The key columns, one row per different key: those that have tuples by ascending slot and hash, or as they came
        where that does not matter, then those that asked to be called and have none.
    hashes, hashes2
        The two hashes by which each key is known.
    key_of
        For each tuple, the row of its key.
    times
        For each tuple, its event time in microseconds; ``None`` if the stream has no event time. A null is
        :data:`NEVER`.
    now
        When the batch is processed.
    """

    rows: pa.Table
    keys: pa.Table
    hashes: NDArray[np.int64]
    hashes2: NDArray[np.int64]
    key_of: NDArray[np.int64]
    times: NDArray[np.int64] | None = None
    now: Moment = field(default_factory=Moment)

    @classmethod
    def of(
        cls,
        rows: pa.Table,
        key_names: Sequence[str],
        hashes: NDArray[np.int64],
        hashes2: NDArray[np.int64],
        *,
        times: NDArray[np.int64] | None = None,
        now: Moment | None = None,
        slots: int | None = 1,
    ) -> Groups:
        """Tell tuples apart by both of their hashes. O(n + k log k) for k different keys.

        Keys are in the order of their slots, of which there are so many, then by hash: as their states are stored.
        Without slots they are in the order in which they came, which is O(n).
        """
        from evenkeel.operators import _kernels

        first, key_of = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
        places = np.full(1 << max(3, (2 * len(hashes) - 1).bit_length()), -1, np.int32)
        found = _kernels.number_keys(hashes, hashes2, places, first, key_of)
        first = first[:found]
        if slots is not None:
            first, key_of = _by_slot(first, key_of, hashes, hashes2, slots)
        keys = rows.select(list(key_names)).take(first)
        return cls(rows, keys, hashes[first], hashes2[first], key_of, times, now or Moment())

    def and_keys(self, keys: pa.Table, hashes: NDArray[np.int64], hashes2: NDArray[np.int64]) -> Groups:
        """Add keys that have no tuples; none of them may be there already."""
        return replace(
            self,
            keys=pa.concat_tables([self.keys, keys]),
            hashes=np.concatenate([self.hashes, hashes]),
            hashes2=np.concatenate([self.hashes2, hashes2]),
        )

    def __len__(self) -> int:
        return len(self.hashes)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many tuples each key has."""
        return np.bincount(self.key_of, minlength=len(self))

    def rows_by_key(self) -> tuple[pa.Table, NDArray[np.int64]]:
        """Give the tuples sorted by key, in order within each, and where each key's start; one more at the end."""
        from evenkeel.operators import _kernels

        order, starts = _kernels.arrival_order(self.key_of, len(self))
        return self.rows.take(order), starts


def _by_slot(
    first: NDArray[np.int64],
    key_of: NDArray[np.int64],
    hashes: NDArray[np.int64],
    hashes2: NDArray[np.int64],
    slots: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Put keys in order, of which the first tuples are given, and for each tuple the number of its key."""
    of_keys = hashes[first]
    numbers = of_keys if slots == 1 else (of_keys % slots << 32) + (of_keys >> 32) + (1 << 31)
    order = np.argsort(numbers)
    in_order = numbers[order]
    if (in_order[1:] == in_order[:-1]).any():  # which is rare, and takes five times as long to put right
        order = np.lexsort((hashes2[first], of_keys, of_keys % slots))
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    return first[order], rank[key_of]
