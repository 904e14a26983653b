"""What a stream is cut into: windows, as tuples in order or as tuples per key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import as_hashes
from evenkeel.routing.ragged import is_ascending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Histogram", "Tuples", "Window"]


@dataclass(frozen=True, slots=True, eq=False)
class Tuples:
    """Some tuples of a window, in the order in which they arrive.

    Parameters
    ----------
    hashes
        The hash of each tuple's key.
    ids
        The key itself, where it is a number; None for traces and prepared histograms, and unless asked for.
    times
        When each tuple arrives, in seconds since the stream began; None unless they were asked for.
    sources
        Which source sends each tuple; None where there is one.
    """

    hashes: NDArray[np.int64]
    ids: NDArray[np.int64] | None = None
    times: NDArray[np.float64] | None = None
    sources: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.hashes)


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """The tuples of each key in one window.

    Parameters
    ----------
    hashes
        The hashes of the keys, ascending, each once.
    counts
        Tuples of each key; at least one.
    state_bytes
        State that each key holds at the end of the window, where it is known.

    Examples
    --------
    >>> Histogram.of(np.array([7, 3, 7]), [1, 2, 4]).counts.tolist()
    [2, 5]
    """

    hashes: NDArray[np.int64]
    counts: NDArray[np.int64]
    state_bytes: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if not is_ascending(self.hashes) or (self.hashes[1:] == self.hashes[:-1]).any():
            raise InvalidArgumentError("A histogram names each key once, by ascending hash; see Histogram.of.")

    @classmethod
    def of(cls, keys: Any, counts: ArrayLike | None = None, state_bytes: ArrayLike | None = None) -> Histogram:
        """Build from keys (or hashes) in any order; what is said twice about one key is added up.

        Without ``counts``, every entry is one tuple.
        """
        hashes = as_hashes(keys)
        numbers = np.ones(len(hashes), np.int64) if counts is None else np.asarray(counts, np.int64)
        columns = [numbers] if state_bytes is None else [numbers, np.asarray(state_bytes, np.int64)]
        if any(len(column) != len(hashes) for column in columns):
            raise InvalidArgumentError(f"A histogram needs one count per key; got {len(numbers)} for {len(hashes)}.")
        if any((column < 0).any() for column in columns):
            raise InvalidArgumentError("Counts and bytes of a histogram must not be negative.")
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(ordered)), np.bool_), ordered[1:] != ordered[:-1]]))
        sums = [np.add.reduceat(column[order], starts) if len(starts) else column[:0] for column in columns]
        return cls(ordered[starts], *sums)

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def tuples(self) -> int:
        """How many tuples there are."""
        return int(self.counts.sum())


class Window(ABC):
    """One window of a stream; give its tuples and its histogram as often as asked, always the same.

    The histogram is that of the tuples, so strategies that need the order and those that do not see one stream.
    """

    number: int
    """Counted from 0."""
    seconds: float
    """How long it is."""
    start: float
    """When it begins, in seconds since the stream began."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many tuples there are."""

    @abstractmethod
    def histogram(self) -> Histogram:
        """Give the tuples of each key."""

    @abstractmethod
    def tuples(self, *, full: bool = False) -> Iterator[Tuples]:
        """Give the tuples in order, in pieces of bounded size; in full, with their times and the keys' numbers."""
