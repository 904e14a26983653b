"""What every router is: it gives each tuple a channel, by its key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import as_hashes, mix64

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Router", "choice_seeds"]


class Router(ABC):
    """Gives each tuple of a stream a channel.

    A router may remember what it has routed so far (loads, choices made). Given the same options and the same arrays in
    the same order, it gives the same channels, on every machine.

    Parameters
    ----------
    channels
        How many channels there are.
    sources
        How many sources send tuples through this router. In Spark, a source is a map task.
    seed
        Gives another set of hash functions.
    """

    name: ClassVar[str]
    """How the router is chosen by name."""
    keeps_keys_together: ClassVar[bool]
    """Whether all tuples of a key go to one channel; if not, only operators whose partial states merge may follow."""

    def __init__(self, channels: int, *, sources: int = 1, seed: int = 0) -> None:
        for what, value in (("channels", channels), ("sources", sources)):
            if value < 1:
                raise InvalidArgumentError(f"{what} must be at least 1; got {value}.")
        self.channels = channels
        self.sources = sources
        self.seed = seed

    def route(self, keys: Any, sources: ArrayLike | None = None) -> NDArray[np.int32]:
        """Give each tuple's channel, in the tuples' order.

        Parameters
        ----------
        keys
            Key hashes (an int64 NumPy array), or a key column.
        sources
            Which source sends each tuple, 0 to ``self.sources - 1``; without it, source 0 sends all. Routers that keep
            no view of their own per source ignore it.
        """
        hashes = as_hashes(keys)
        senders = np.empty(0, np.int64) if sources is None else np.asarray(sources, np.int64)
        if sources is not None and len(senders) != len(hashes):
            raise InvalidArgumentError(f"sources has {len(senders)} entries for {len(hashes)} tuples.")
        if len(senders) and (senders.min() < 0 or senders.max() >= self.sources):
            wrong = senders[(senders < 0) | (senders >= self.sources)][0]
            raise InvalidArgumentError(
                f"A tuple comes from source {wrong}, but this router was made for {self.sources}, numbered from 0. "
                "Make it with sources=…"
            )
        out = np.empty(len(hashes), np.int32)
        self._route(hashes, senders, out)
        return out

    def reachable(self, keys: Any) -> NDArray[np.int32]:
        """Give the channels that may have got tuples of each key: one row per key, a channel perhaps more than once."""
        if self.keeps_keys_together:
            return self.route(keys)[:, np.newaxis]
        return np.broadcast_to(np.arange(self.channels, dtype=np.int32), (len(as_hashes(keys)), self.channels))

    @abstractmethod
    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:
        """Fill ``out``; ``sources`` is empty where source 0 sends all."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(channels={self.channels}, sources={self.sources}, seed={self.seed})"


class StickyRouter(Router):
    """A router that decides once for each key and remembers it: O(keys) memory, 24 to 48 bytes for each.

    All sources must agree on the choices, so it is one router for all of them.
    """

    keeps_keys_together = True

    def __init__(self, channels: int, *, sources: int = 1, seed: int = 0, choices: int = 0) -> None:
        super().__init__(channels, sources=sources, seed=seed)
        from evenkeel._kernels.openmap import empty_map

        self.loads = np.zeros(channels, np.int64)
        self._seeds = choice_seeds(seed, choices)
        self._order = np.arange(channels, dtype=np.int32)
        self._known = np.zeros(channels, np.int64)
        self._map = empty_map(1024)
        self._held = np.zeros(1, np.int64)

    @property
    def keys_held(self) -> int:
        """For how many keys a choice is remembered."""
        return int(self._held[0])

    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:  # noqa: ARG002
        from evenkeel._kernels.openmap import FREE, empty_map, fill
        from evenkeel.routing import _kernels

        done = 0
        while True:
            state = (self._seeds, self._order, self._known, self.loads, *self._map, self._held)
            done = _kernels.route_sticky(hashes, done, *state, out)
            if done == len(hashes):
                return
            keys, values = self._map  # The loop stopped because the map is half full.
            used = values != FREE
            self._map = empty_map(2 * self.keys_held)
            fill(*self._map, keys[used], values[used])


def choice_seeds(seed: int, choices: int) -> NDArray[np.uint64]:
    """Give the seeds of a key's independent hash functions H₁ … H_d."""
    return mix64(np.arange(choices, dtype=np.uint64), seed)
