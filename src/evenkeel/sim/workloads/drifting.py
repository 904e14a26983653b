"""Popularity that drifts from key to key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.sim.drawing import KeySpace
from evenkeel.sim.popularity import Permuted, Popularity
from evenkeel.sim.workloads.base import Drawn, Synthetic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from evenkeel.routing import RoutingTable

__all__ = ["Drifting"]


@dataclass(frozen=True, eq=False)
class Drifting(Synthetic):
    """Another workload in which keys exchange their popularities, a little more in each period.

    At the start of each period keys are paired at random and pairs swap their places in the popularity, until enough
    has changed. Without ``across``: until a share ``rate`` of all tuples goes to another key than before. With it:
    pairs on different channels of that table swap until some channel's load has changed by ``rate`` times the average
    load, which is how the authors' earlier paper (HPDC 2017) makes "the data distribution in each task dynamically
    changed with time, configured by the factor f". The shape of the distribution never changes, only who is hot.
    O(keys) per period, and 4 bytes per key.

    Parameters
    ----------
    base
        What drifts; its number of keys must be bounded.
    rate
        How much changes in a period (f). If no pairing changes that much, all pairs swap.
    every
        How many windows a period has.
    across
        The table whose channels' loads are to change.
    seed
        Gives other pairs.

    References
    ----------
    J. Fang et al., Integrating workload balancing and fault tolerance in distributed stream processing system, §5.1.1.
    """

    name = "drifting"

    base: Synthetic
    rate: float = 0.1
    every: int = 1
    across: RoutingTable | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.rate) and self.rate >= 0) or self.every < 1:
            raise InvalidArgumentError(
                f"rate must be finite and not negative, every at least 1; got {self.rate} and {self.every}."
            )

    @property
    def arrival(self) -> Drawn:
        """Those of the base."""
        return self.base.arrival

    def popularities(self) -> Iterator[Popularity]:
        """Give the base's distributions, with more and more keys swapped."""
        ids: NDArray[np.int32] | None = None
        homes: NDArray[np.int32] | None = None
        for number, popularity in enumerate(self.base.popularities()):
            if popularity.keys is None:
                raise InvalidArgumentError(f"{self.base} has no bound on its keys; only a bounded workload can drift.")
            if ids is None:
                ids = np.arange(popularity.keys, dtype=np.int32)
                if self.across is not None:
                    space = KeySpace(self.arrival.salt, hashed=self.arrival.hashed)
                    homes = self.across.home(space.hashes(np.arange(popularity.keys)))
            elif number % self.every == 0:
                ids = self._swapped(popularity, ids, homes, number)
            yield Permuted(popularity, ids)

    def _swapped(
        self, popularity: Popularity, ids: NDArray[np.int32], homes: NDArray[np.int32] | None, number: int
    ) -> NDArray[np.int32]:
        """Exchange the keys of some pairs of ranks; a new array, as windows drawn before keep theirs."""
        rng = np.random.default_rng(np.random.SeedSequence((self.seed, number)))
        shares = popularity.probabilities  # by rank
        pairs = rng.permutation(len(ids))[: len(ids) // 2 * 2]
        firsts, seconds = pairs[::2], pairs[1::2]
        swapped = np.zeros(len(firsts), np.bool_)
        if homes is None or self.across is None:
            # Pairs are disjoint, so what each moves adds up.
            moved = np.cumsum(np.abs(shares[firsts] - shares[seconds]))
            swapped[: int(np.searchsorted(moved, self.rate)) + 1 if self.rate else 0] = True
        elif self.rate:
            from evenkeel.sim import _kernels

            channels = self.across.channels
            _kernels.swaps_needed(firsts, seconds, shares, homes[ids], channels, self.rate / channels, swapped)
        new = ids.copy()
        new[firsts[swapped]], new[seconds[swapped]] = ids[seconds[swapped]], ids[firsts[swapped]]
        return new
