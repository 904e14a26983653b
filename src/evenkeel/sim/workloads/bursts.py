"""Keys that become hot for a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.sim.popularity import Mixed, Popularity
from evenkeel.sim.workloads.base import Drawn, Synthetic

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Bursts"]


@dataclass(frozen=True)
class Bursts(Synthetic):
    """Another workload in which, now and then, a few keys take a share of all tuples for some windows.

    Parameters
    ----------
    base
        What the bursts come on top of; its number of keys must be bounded.
    share
        The share of all tuples that the burst's keys have, evenly, besides their own.
    every
        A burst begins every so many windows, first after so many.
    length
        How many windows it lasts; at most ``every``.
    hot
        How many keys it has, drawn evenly among all, others each time.
    seed
        Gives other keys.
    """

    name = "bursts"

    base: Synthetic
    share: float = 0.3
    every: int = 20
    length: int = 3
    hot: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or not 1 <= self.length <= self.every or self.hot < 1:
            raise InvalidArgumentError(
                "share must be from 0 to 1, length from 1 to every, and hot at least 1; got "
                f"{self.share}, {self.length} of {self.every}, and {self.hot}."
            )

    @property
    def arrival(self) -> Drawn:
        """Those of the base."""
        return self.base.arrival

    def popularities(self) -> Iterator[Popularity]:
        """Give the base's distributions, with a burst mixed in where there is one."""
        for number, popularity in enumerate(self.base.popularities()):
            burst, since = divmod(number, self.every)
            if burst == 0 or since >= self.length:
                yield popularity
                continue
            if popularity.keys is None:
                raise InvalidArgumentError(f"{self.base} has no bound on its keys; bursts need one.")
            rng = np.random.default_rng(np.random.SeedSequence((self.seed, burst)))
            hot = rng.choice(popularity.keys, min(self.hot, popularity.keys), replace=False)
            yield Mixed(popularity, hot, self.share)
