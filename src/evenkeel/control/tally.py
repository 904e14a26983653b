"""Sparse measurements of slots or keys, and how they add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.control.saved import Saved
from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Tally"]

_COLUMNS = {"ids": np.int64, "counts": np.float64, "costs": np.float64, "state_bytes": np.int64}


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Tuples, cost and state of some slots or keys, by ascending id; what is said twice about one id is added up.

    Parameters
    ----------
    ids
        Numbers of slots, or hashes of keys.
    counts, costs
        Tuples, and what they cost in any unit; these flow, so time adds them up.
    state_bytes
        State held; this is a level, so a later word replaces an earlier one.

    Examples
    --------
    >>> tally = Tally([7, 2, 7], [1, 1, 1], [0.5, 1, 0.5], [10, 20, 30])
    >>> tally.ids.tolist(), tally.counts.tolist(), tally.state_bytes.tolist()
    ([2, 7], [1.0, 2.0], [20, 40])
    >>> tally.then(Tally([7], [3], [3], [50])).state_bytes.tolist()
    [20, 50]
    """

    ids: NDArray[np.int64]
    counts: NDArray[np.float64]
    costs: NDArray[np.float64]
    state_bytes: NDArray[np.int64]

    def __init__(self, ids: ArrayLike, counts: ArrayLike, costs: ArrayLike, state_bytes: ArrayLike) -> None:
        given = dict(zip(_COLUMNS, (ids, counts, costs, state_bytes), strict=True))
        columns = {name: np.asarray(given[name], kind) for name, kind in _COLUMNS.items()}
        for name, column in columns.items():
            if column.shape != columns["ids"].shape or column.ndim != 1:
                raise InvalidArgumentError(f"{name} must have one entry per id; got shape {column.shape}.", name=name)
            if name != "ids" and (not np.isfinite(column).all() or (column < 0).any()):
                raise InvalidArgumentError(f"{name} must be finite and not negative.", name=name)
        named, places = np.unique(columns["ids"], return_inverse=True)
        object.__setattr__(self, "ids", named)
        for name in ("counts", "costs", "state_bytes"):
            total = np.zeros(len(named), _COLUMNS[name])
            np.add.at(total, places, columns[name])
            object.__setattr__(self, name, total)

    @classmethod
    def empty(cls) -> Tally:
        """Give the tally of nothing."""
        return cls([], [], [], [])

    @classmethod
    def sum_of(cls, parts: Iterable[Tally]) -> Tally:
        """Add up what several channels say of one moment, levels included."""
        columns = [(part.ids, part.counts, part.costs, part.state_bytes) for part in parts]
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True))) if columns else cls.empty()

    def then(self, later: Tally) -> Tally:
        """Follow this by a later one: flows add up, and the later level counts. O(ids · log)."""
        spoken = np.isin(self.ids, later.ids, assume_unique=True)
        earlier = Tally(self.ids, self.counts, self.costs, np.where(spoken, 0, self.state_bytes))
        return Tally.sum_of((earlier, later))

    def __len__(self) -> int:
        return len(self.ids)

    def snapshot(self) -> Saved:
        """Give the columns, to be stored."""
        return Saved({}, {name: getattr(self, name) for name in _COLUMNS})

    @classmethod
    def restore(cls, saved: Saved) -> Tally:
        """Read what :meth:`snapshot` gave."""
        return cls(*(saved.arrays[name] for name in _COLUMNS))
