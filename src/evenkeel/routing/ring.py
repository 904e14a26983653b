"""Consistent hashing: a change in the number of channels moves about 1/N of the keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import as_hashes, mix64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["ConsistentHashRing"]


@dataclass(frozen=True, slots=True, eq=False)
class ConsistentHashRing:
    """A ring of 2⁶⁴ points; a key belongs to the channel whose replica follows it.

    Parameters
    ----------
    members
        The channels on the ring: how many, numbered from 0, or just which.
    replicas
        Points per channel (1000 in the paper). The shares of the channels differ by about ``1/sqrt(replicas)``.
    buckets
        Buckets per channel (100 in the paper, whose buckets hold sorted trees; here the points are one sorted array).
        A bucket holds ``replicas / buckets`` points on average, whatever N is, so a look-up takes O(1).
    seed
        Gives another ring.

    Notes
    -----
    A replica's point depends on the seed, the channel and the replica's number alone, by SplitMix64. So the ring is
    the same in every process and version; when a channel is added, keys move only *to* it, about 1/N of them; when one
    is removed, only *from* it. Building takes O(N · replicas · log), and 12 bytes per point.

    Examples
    --------
    >>> hashes = np.arange(1000)
    >>> before, after = ConsistentHashRing(9).route(hashes), ConsistentHashRing(10).route(hashes)
    >>> set(after[before != after].tolist())
    {9}

    References
    ----------
    B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing, §4.1.1 and §5.2.
    """

    members: int | Iterable[int]
    replicas: int = 1000
    buckets: int = 100
    seed: int = 0
    channels: int = field(init=False)
    _points: NDArray[np.uint64] = field(init=False, repr=False)
    _owners: NDArray[np.int32] = field(init=False, repr=False)
    _starts: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        members = list(range(self.members)) if isinstance(self.members, int) else sorted(set(self.members))
        if len(members) == 0 or members[0] < 0:
            raise InvalidArgumentError(f"A ring needs at least one channel, numbered from 0; got {self.members!r}.")
        if self.replicas < 1 or self.buckets < 1:
            raise InvalidArgumentError(
                f"replicas and buckets must be at least 1; got {self.replicas} and {self.buckets}."
            )
        owners = np.repeat(np.array(members, np.int32), self.replicas)
        numbers = np.tile(np.arange(self.replicas, dtype=np.uint64), len(members))
        points = mix64(mix64(owners.astype(np.uint64), self.seed) + numbers)
        # Two replicas on one point: the lower channel has it, on every machine.
        order = np.lexsort((owners, points))
        put = object.__setattr__
        put(self, "members", tuple(members))
        put(self, "channels", members[-1] + 1)
        put(self, "_points", points[order])
        put(self, "_owners", owners[order])
        edges = np.arange(len(members) * self.buckets + 1, dtype=np.uint64)
        put(self, "_starts", np.searchsorted(self._points >> np.uint64(32), _first_in_bucket(edges)))

    def route(self, keys: Any) -> NDArray[np.int32]:
        """Give each key's channel; ``keys`` are hashes or a key column, as for a routing table."""
        from evenkeel.routing import _kernels

        positions = mix64(as_hashes(keys).view(np.uint64), self.seed)
        out = np.empty(len(positions), np.int32)
        _kernels.route_ring(positions, self._points, self._owners, self._starts, out)
        return out

    def slot_channels(self, slots: int) -> NDArray[np.int32]:
        """Give the channel of each of ``slots`` slots; see ``RoutingTable.from_ring``."""
        return self.route(np.arange(slots))

    def with_channel(self, channel: int) -> ConsistentHashRing:
        """Give the ring with one more channel."""
        return ConsistentHashRing((*self._members(), channel), self.replicas, self.buckets, self.seed)

    def without_channel(self, channel: int) -> ConsistentHashRing:
        """Give the ring without one of its channels."""
        if channel not in self._members():
            raise InvalidArgumentError(f"Channel {channel} is not on the ring of {self._members()}.")
        rest = [member for member in self._members() if member != channel]
        return ConsistentHashRing(rest, self.replicas, self.buckets, self.seed)

    def _members(self) -> tuple[int, ...]:
        assert isinstance(self.members, tuple)
        return self.members


def _first_in_bucket(buckets: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The lowest 32-bit position of each bucket: position p is in bucket ``p · (number of buckets) >> 32``."""
    count = np.uint64(len(buckets) - 1)
    return (((buckets << np.uint64(32)) + count - np.uint64(1)) // count).astype(np.uint64)
