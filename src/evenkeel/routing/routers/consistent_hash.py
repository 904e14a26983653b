"""Consistent hashing as a router."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenkeel.routing.ring import ConsistentHashRing
from evenkeel.routing.routers.base import Router

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ConsistentHash"]


class ConsistentHash(Router):
    """Send a key to the channel that follows it on a ring; see :class:`evenkeel.routing.ConsistentHashRing`.

    Balances numbers of keys, not their loads; a change of N moves about 1/N of the keys.

    Parameters
    ----------
    channels, sources, seed
        As for every router.
    replicas, buckets
        As for the ring.

    References
    ----------
    B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing, §4.1.1.
    """

    name = "consistent_hash"
    keeps_keys_together = True

    def __init__(
        self, channels: int, *, sources: int = 1, seed: int = 0, replicas: int = 1000, buckets: int = 100
    ) -> None:
        super().__init__(channels, sources=sources, seed=seed)
        self.ring = ConsistentHashRing(channels, replicas, buckets, seed)

    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:  # noqa: ARG002
        out[:] = self.ring.route(hashes)
