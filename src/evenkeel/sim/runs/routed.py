"""Routers on their way through a stream: tuple by tuple, or key by key where that is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from evenkeel.sim.ledger import SeenKeys
from evenkeel.sim.runs.base import Run, Settings, Shared, Sight

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from evenkeel.sim.window import Tuples, Window

__all__ = ["KeyedRun", "Pairs", "Route", "TupleRun"]

Route: TypeAlias = "Callable[[NDArray[np.int64], NDArray[np.int64] | None], NDArray[np.int32]]"


class Pairs:
    """The (key, channel) pairs that occurred: one counter, or partial state, each. Exact; 12 to 48 bytes per pair."""

    def __init__(self) -> None:
        self.forget()

    def __len__(self) -> int:
        return int(self._held[0])

    def forget(self) -> None:
        """Start anew."""
        self._make_room(1024)

    def _make_room(self, places: int) -> None:
        from evenkeel._kernels.openmap import FREE

        self._keys, self._channels = np.empty(places, np.int64), np.full(places, FREE, np.int32)
        self._held = np.zeros(1, np.int64)

    def observe(self, hashes: NDArray[np.int64], channels: NDArray[np.int32]) -> None:
        """Take in tuples and where they went."""
        from evenkeel._kernels.openmap import FREE
        from evenkeel.sim import _kernels

        done = _kernels.note_pairs(hashes, channels, 0, self._keys, self._channels, self._held)
        while done < len(hashes):  # The map is half full.
            keys, places = self._keys, self._channels
            self._make_room(4 * len(keys))
            used = places != FREE
            _kernels.note_pairs(keys[used], places[used], 0, self._keys, self._channels, self._held)
            done = _kernels.note_pairs(hashes, channels, done, self._keys, self._channels, self._held)


class TupleRun(Run):
    """A router that sees every tuple, in order.

    Parameters
    ----------
    name, settings
        As for every run.
    route
        Gives the channels of hashes that come from sources.
    channels
        How many there are.
    flush_every, count_pairs
        See :class:`~evenkeel.sim.strategies.Routed`.
    renewed
        Gives a router that has seen nothing yet, for the next window; None where it goes on.
    """

    needs_tuples = True

    def __init__(
        self,
        name: str,
        settings: Settings,
        route: Route,
        channels: int,
        *,
        flush_every: int | None = None,
        count_pairs: bool = True,
        renewed: Callable[[], Route] | None = None,
    ) -> None:
        super().__init__(name, settings)
        self._route, self._channels, self._flush_every = route, channels, flush_every
        self._renewed = renewed
        self._loads = np.zeros(channels, np.int64)
        self._pairs = Pairs() if count_pairs else None

    def take(self, tuples: Tuples) -> None:
        """Route some tuples."""
        from evenkeel.sim import _kernels

        channels = self._route(tuples.hashes, tuples.sources)
        _kernels.add_loads(channels, self._loads)
        if self._pairs is not None:
            self._pairs.observe(tuples.hashes, channels)

    def close(self, window: Window, shared: Shared | None) -> dict[str, Any]:  # noqa: ARG002  tuples are all it sees
        """Give the window's row."""
        loads, self._loads = self._loads, np.zeros(self._channels, np.int64)
        if self._renewed is not None:
            self._route = self._renewed()
        row = self._row(window, int(loads.sum()), Sight(loads.astype(np.float64)))
        if self._pairs is None:
            return row
        return row | counted(self._pairs, window.number, self._flush_every)


class KeyedRun(Run):
    """A router that keeps keys together and looks at nothing but the key: routing each key once is the same."""

    needs_tuples = False

    def __init__(
        self,
        name: str,
        settings: Settings,
        route: Callable[[NDArray[np.int64], None], NDArray[np.int32]],
        channels: int,
        *,
        flush_every: int | None = None,
        count_pairs: bool = True,
    ) -> None:
        super().__init__(name, settings)
        self._route, self._channels, self._flush_every = route, channels, flush_every
        self._count_pairs = count_pairs
        self._seen = SeenKeys()

    def close(self, window: Window, shared: Shared | None) -> dict[str, Any]:
        """Route every key of the window, and give its row."""
        assert shared is not None
        measured = shared.measured
        homes = self._route(measured.hashes, None)
        loads = np.bincount(homes, weights=measured.costs, minlength=self._channels).astype(np.float64)
        row = self._row(window, shared.histogram.tuples, Sight(loads, measured, homes))
        row |= {"keys": len(shared.histogram), "state_bytes": int(measured.state_bytes.sum())}
        if not self._count_pairs:
            return row
        if self._flush_every is None:
            return row | {"pairs": len(shared.seen), "messages": 0}
        self._seen.observe(shared.histogram)
        return row | counted(self._seen, window.number, self._flush_every)


def counted(pairs: Pairs | SeenKeys, window: int, flush_every: int | None) -> dict[str, int]:
    """How many pairs are held at the end of the window, and how many are then handed on."""
    held = len(pairs)
    if flush_every is None or (window + 1) % flush_every:
        return {"pairs": held, "messages": 0}
    pairs.forget()
    return {"pairs": held, "messages": held}
