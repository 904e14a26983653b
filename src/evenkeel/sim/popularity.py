"""How often each key occurs: distributions over keys that are numbers from 0."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["LogNormalKeys", "Mixed", "Permuted", "Popularity", "Weighted", "ZipfKeys"]

GUIDES = 1 << 16


class Popularity(ABC):
    """A distribution over keys.

    Parameters
    ----------
    keys
        How many there are, numbered from 0; None where there is no bound.
    """

    keys: int | None

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The share of each key: 8 bytes per key."""
        raise InvalidArgumentError(f"{type(self).__name__} has no bound on its keys, so it cannot list their shares.")

    @abstractmethod
    def draw(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw the keys of so many tuples, independently. O(tuples)."""

    def counts(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw how many of so many tuples each key has: a multinomial distribution, in O(keys)."""
        return rng.multinomial(tuples, self.probabilities)


class ZipfKeys(Popularity):
    """The key of rank k, from 0, has a share ∝ 1/(k + 1)^exponent."""

    def __init__(self, keys: int, exponent: float) -> None:
        if keys < 1 or not (np.isfinite(exponent) and exponent >= 0):
            raise InvalidArgumentError(
                f"Zipf needs keys >= 1 and a finite exponent >= 0; got {keys} and {exponent}.",
                keys=keys,
                exponent=exponent,
            )
        self.keys: int = keys
        self.exponent = exponent

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """The share of each key."""
        weights = np.arange(1, self.keys + 1, dtype=np.float64) ** -self.exponent
        return weights / weights.sum()

    def draw(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw by rejection-inversion, without a table: about 25 ns each, for any number of keys."""
        from evenkeel.sim import _kernels

        out = np.empty(tuples, np.int64)
        _kernels.draw_zipf(self.keys, float(self.exponent), rng.integers(2**64, dtype=np.uint64), out)
        return out


class Weighted(Popularity):
    """Key i has a share ∝ ``weights[i]``."""

    def __init__(self, weights: ArrayLike) -> None:
        array = np.asarray(weights, np.float64)
        if array.ndim != 1 or not len(array) or not np.isfinite(array).all() or (array < 0).any() or not array.sum():
            raise InvalidArgumentError("Weights must be finite, not negative, one-dimensional and not all 0.")
        self.keys: int = len(array)
        self._shares = array / array.sum()

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The share of each key."""
        return self._shares

    @cached_property
    def _edges(self) -> NDArray[np.float64]:
        return np.cumsum(self._shares)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.searchsorted(self._edges, np.arange(GUIDES) / GUIDES, side="right").clip(max=self.keys - 1)

    def draw(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw by the inverse distribution function, with a guide table."""
        from evenkeel.sim import _kernels

        out = np.empty(tuples, np.int64)
        _kernels.draw_weighted(self._edges, self._starts, rng.integers(2**64, dtype=np.uint64), out)
        return out


class LogNormalKeys(Popularity):
    """A tuple's key is a log-normal number, rounded: so there is no bound on the keys."""

    keys = None

    def __init__(self, mean: float, deviation: float) -> None:
        if not (np.isfinite(mean) and np.isfinite(deviation) and deviation > 0) or mean + 10 * deviation > 27:
            raise InvalidArgumentError(
                "mean and deviation must be finite, deviation above 0 and mean + 10 · deviation at most 27, so that "
                f"keys stay below 2⁴⁰; got {mean} and {deviation}."
            )
        self.mean, self.deviation = mean, deviation

    def draw(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw normal numbers, and round their exponentials."""
        drawn: NDArray[np.int64] = np.rint(rng.lognormal(self.mean, self.deviation, tuples)).astype(np.int64)
        return drawn


class Permuted(Popularity):
    """Another distribution whose rank k is key ``ids[k]``."""

    def __init__(self, base: Popularity, ids: NDArray[np.int32]) -> None:
        self.base, self.ids, self.keys = base, ids, base.keys

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The share of each key."""
        shares = np.empty(len(self.ids))
        shares[self.ids] = self.base.probabilities
        return shares

    def draw(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw ranks, and give their keys."""
        return self.ids[self.base.draw(tuples, rng)].astype(np.int64)

    def counts(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw counts of ranks, and give them to their keys."""
        counts = np.empty(len(self.ids), np.int64)
        counts[self.ids] = self.base.counts(tuples, rng)
        return counts


class Mixed(Popularity):
    """A few hot keys share ``share`` of the tuples evenly; the rest goes by another distribution."""

    def __init__(self, base: Popularity, hot: NDArray[np.int64], share: float) -> None:
        self.base, self.hot, self.share, self.keys = base, hot, share, base.keys

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The share of each key."""
        shares = self.base.probabilities * (1 - self.share)
        shares[self.hot] += self.share / len(self.hot)
        return shares

    def draw(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Toss a coin for each tuple."""
        ids = self.base.draw(tuples, rng)
        heads = rng.random(tuples) < self.share
        ids[heads] = rng.choice(self.hot, int(heads.sum()))
        return ids

    def counts(self, tuples: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw how many tuples are hot, then which."""
        heads = int(rng.binomial(tuples, self.share))
        counts = self.base.counts(tuples - heads, rng)
        counts[self.hot] += rng.multinomial(heads, np.full(len(self.hot), 1 / len(self.hot)))
        return counts
