"""Zipf: few keys have most of the tuples."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from evenkeel.sim.popularity import Popularity, ZipfKeys
from evenkeel.sim.workloads.base import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Zipf"]


@dataclass(frozen=True)
class Zipf(Drawn):
    """The k-th hottest of ``keys`` keys has a share ∝ 1/k^exponent of the tuples.

    Drawing takes O(keys) per window for its histogram where there are at least twice as many tuples as keys, else
    O(tuples), without a table; so a domain of 10⁸ keys needs memory only for the tuples of a window.

    Parameters
    ----------
    keys
        How many keys there are (|D|).
    exponent
        The skew (z); 0 makes all keys alike.
    tuples, arrivals, seconds, seed, salt, hashed
        See :class:`Drawn`.

    Examples
    --------
    >>> window = next(Zipf(1000, 1.0, tuples=10_000).windows())
    >>> histogram = window.histogram()
    >>> histogram.tuples, int(histogram.counts.max())
    (10000, 1378)

    References
    ----------
    B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing, §5.1.
    """

    name = "zipf"

    keys: int
    exponent: float = 1.0

    def popularities(self) -> Iterator[Popularity]:
        """Give the same distribution for ever."""
        return repeat(ZipfKeys(self.keys, self.exponent))
