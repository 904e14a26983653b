"""Keys with given weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from evenkeel.sim import popularity
from evenkeel.sim.workloads.base import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Weighted"]


@dataclass(frozen=True, eq=False)
class Weighted(Drawn):
    """Key i has a share ∝ ``weights[i]`` of the tuples: any distribution that fits in memory.

    Parameters
    ----------
    weights
        One per key.
    tuples, arrivals, seconds, seed, salt, hashed
        See :class:`Drawn`.
    """

    name = "weighted"

    weights: Sequence[float] | NDArray[np.float64]

    def popularities(self) -> Iterator[popularity.Popularity]:
        """Give the same distribution for ever."""
        return repeat(popularity.Weighted(self.weights))
