"""Windows that are drawn from a distribution when they are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.hashing import hash_keys
from evenkeel.sim.ordering import PIECE, ArrivalTimes, shuffled_rows
from evenkeel.sim.window import Histogram, Tuples, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from evenkeel.sim.popularity import Popularity

__all__ = ["DrawnWindow", "KeySpace"]

TUPLES_PER_KEY = 2  # from so many on, drawing counts is cheaper than drawing tuples
DENSE = 1 << 22  # keys below this are counted by place, others by sorting

_COUNTS, _DRAWS, _ORDER, _TIMES = range(4)  # independent streams of random numbers within one window


class KeySpace:
    """Turns the numbers of keys into hashes.

    Parameters
    ----------
    salt
        Another salt gives other keys, hence other places; the distribution stays.
    hashed
        Whether a key is hashed as Spark hashes a long. If not, its number is its hash, so that with P slots and at most
        P keys every key has a slot of its own.
    """

    def __init__(self, salt: int = 0, *, hashed: bool = True) -> None:
        self.salt, self.hashed = salt, hashed
        self._order: tuple[NDArray[np.int32], NDArray[np.int64]] | None = None

    def ids(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the keys with these numbers."""
        return numbers.astype(np.int64) + (self.salt << 40)

    def hashes(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the hashes of the keys with these numbers."""
        ids = self.ids(numbers)
        return hash_keys(ids) if self.hashed else ids

    def in_order(self, keys: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Give all numbers below ``keys`` by ascending hash, and these hashes; remembered, at 12 bytes per key."""
        if self._order is None or len(self._order[0]) != keys:
            hashes = self.hashes(np.arange(keys))
            order = np.argsort(hashes).astype(np.int32)
            self._order = order, hashes[order]
        return self._order


@dataclass(eq=False)
class DrawnWindow(Window):
    """A window of independent draws.

    With many tuples per key its histogram is drawn first, from the multinomial distribution, and its tuples are that
    histogram in random order; with few, the tuples are drawn first and counted. Either way both are one sample.
    """

    number: int
    seconds: float
    start: float
    tuples_drawn: int
    popularity: Popularity
    space: KeySpace
    seed: int
    poisson: bool = False

    @property
    def size(self) -> int:
        """How many tuples there are."""
        return self.tuples_drawn

    def histogram(self) -> Histogram:
        """Give the tuples of each key. O(keys) where there are many tuples per key, else O(tuples · log)."""
        _, hashes, counts = self._counted
        return Histogram(hashes, counts)

    def tuples(self, *, full: bool = False) -> Iterator[Tuples]:
        """Give the tuples in order, in pieces of about a million."""
        if not full:
            yield from (Tuples(hashes) for hashes, _ in self._pieces())
            return
        seed = self.seed, self.number, _TIMES
        arrivals = ArrivalTimes(self.start, self.seconds, self.size, *seed, poisson=self.poisson)
        for hashes, numbers in self._pieces():
            yield Tuples(hashes, self.space.ids(numbers()), arrivals.take(len(hashes)))

    def _pieces(self) -> Iterator[tuple[NDArray[np.int64], Callable[[], NDArray[Any]]]]:
        """Hashes of tuples in order, and, if asked, the numbers of their keys."""
        if self._counts_first:
            numbers, hashes, counts = self._counted
            for rows in shuffled_rows(counts, self.seed, self.number, _ORDER):
                yield hashes[rows], partial(numbers.take, rows)
        else:
            for drawn in self._draws():
                yield self.space.hashes(drawn), partial(np.asarray, drawn)

    def _draws(self) -> Iterator[NDArray[np.int64]]:
        for piece, done in enumerate(range(0, self.size, PIECE)):
            yield self.popularity.draw(min(PIECE, self.size - done), self._rng(_DRAWS, piece))

    @property
    def _counts_first(self) -> bool:
        keys = self.popularity.keys
        return keys is not None and self.size >= TUPLES_PER_KEY * keys

    @cached_property
    def _counted(self) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """Numbers, hashes and tuples of the keys that occur, by ascending hash."""
        keys = self.popularity.keys
        if keys is not None and self._counts_first:
            numbers, hashes = self.space.in_order(keys)
            counts = self.popularity.counts(self.size, self._rng(_COUNTS))[numbers]
            there = counts > 0
            return numbers[there], hashes[there], counts[there]
        low = np.zeros(min(DENSE, keys or DENSE), np.int64)
        high = [np.empty(0, np.int64)]
        for drawn in self._draws():
            below = drawn < len(low)
            low += np.bincount(drawn[below], minlength=len(low))
            high.append(drawn[~below])
        others, their_counts = np.unique(np.concatenate(high), return_counts=True)
        found = np.flatnonzero(low)
        occurring = np.concatenate([found, others])
        hashes = self.space.hashes(occurring)
        order = np.argsort(hashes)
        return occurring[order], hashes[order], np.concatenate([low[found], their_counts])[order]

    def _rng(self, *what: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((self.seed, self.number, *what)))
