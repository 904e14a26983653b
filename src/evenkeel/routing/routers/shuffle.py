"""Shuffle grouping: round robin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.routing.routers.base import Router

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Shuffle"]


class Shuffle(Router):
    """Send tuples to the channels in turn, whatever their keys.

    The imbalance is at most one tuple per source. Every channel may come to hold state for every key, so memory and
    aggregation grow with N.

    >>> Shuffle(3).route(["a", "a", "a", "a"]).tolist()
    [0, 1, 2, 0]

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §II-A (SG).
    """

    name = "shuffle"
    keeps_keys_together = False

    def __init__(self, channels: int, *, sources: int = 1, seed: int = 0) -> None:
        super().__init__(channels, sources=sources, seed=seed)
        # Sources start at different channels, so that many short batches do not all favour the first.
        self._turns = (np.arange(sources) + seed) % channels

    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:  # noqa: ARG002
        from evenkeel.routing import _kernels

        _kernels.route_round_robin(sources, self._turns, self.channels, out)
