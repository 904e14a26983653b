"""On-line greedy: a new key goes to the least loaded channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.routing.routers.base import StickyRouter

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OnGreedy"]


class OnGreedy(StickyRouter):
    """Give a new key to the channel that is least loaded of all, and keep it there.

    The lowest channel wins a tie. O(1) per tuple of a known key, O(log N) amortised for a new one.

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §V (On-Greedy).
    """

    name = "on_greedy"

    def __init__(self, channels: int, *, sources: int = 1, seed: int = 0) -> None:
        super().__init__(channels, sources=sources, seed=seed)
        self._order = np.arange(channels, dtype=np.int32)
        self._known = np.zeros(channels, np.int64)

    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:  # noqa: ARG002
        from evenkeel.routing import _kernels

        self._route_in_steps(_kernels.route_sticky_least_loaded, hashes, self._order, self._known, out=out)
