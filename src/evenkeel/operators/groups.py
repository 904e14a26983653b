"""The tuples of a channel in one micro-batch, told apart by their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["Groups"]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """All tuples of a channel in one batch, and which key each of them has.

    Parameters
    ----------
    rows
        The tuples, in the order in which they came.
    keys
        The key columns, one row per different key, by ascending hash.
    hashes, hashes2
        The two hashes by which each key is known.
    key_of
        For each tuple, the row of its key.
    """

    rows: pa.Table
    keys: pa.Table
    hashes: NDArray[np.int64]
    hashes2: NDArray[np.int64]
    key_of: NDArray[np.int64]

    @classmethod
    def of(
        cls, rows: pa.Table, key_names: Sequence[str], hashes: NDArray[np.int64], hashes2: NDArray[np.int64]
    ) -> Groups:
        """Tell tuples apart by both of their hashes. O(n log n)."""
        distinct, first, key_of = np.unique(hashes, return_index=True, return_inverse=True)
        if (hashes2[first][key_of] != hashes2).any():
            # Two keys share their first hash: sort by both.
            both = np.empty(len(hashes), [("hash", np.int64), ("hash2", np.int64)])
            both["hash"], both["hash2"] = hashes, hashes2
            pairs, first, key_of = np.unique(both, return_index=True, return_inverse=True)
            distinct = pairs["hash"]
        return cls(rows, rows.select(list(key_names)).take(first), distinct, hashes2[first], key_of)

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many tuples each key has."""
        return np.bincount(self.key_of, minlength=len(self))

    def rows_by_key(self) -> tuple[pa.Table, NDArray[np.int64]]:
        """Give the tuples sorted by key, in order within each, and where each key's start; one more at the end."""
        order = np.argsort(self.key_of, kind="stable")
        return self.rows.take(order), np.concatenate([[0], np.cumsum(self.counts)])
