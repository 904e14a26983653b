"""What every key costs and holds, window by window: the same for all strategies."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.planning import LoadSnapshot
from evenkeel.routing.ragged import contains, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.routing import RoutingTable
    from evenkeel.sim.window import Histogram

__all__ = ["Growth", "Ledger", "Measured", "SeenKeys", "StateModel", "added", "costliest", "growth"]

Growth: TypeAlias = Literal["constant", "linear", "sqrt", "quadratic"] | Callable[[Any], Any]
"""How a load grows with a key's tuples: by name, or a function of an array."""

_POWERS = {"constant": 0.0, "linear": 1.0, "sqrt": 0.5, "quadratic": 2.0}
_NOTHING = np.empty(0, np.int64)


def growth(how: Growth, tuples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply a growth to the tuples of each key; a key without tuples has nothing.

    >>> growth("sqrt", np.array([0.0, 9.0]))
    array([0., 3.])
    """
    if isinstance(how, str):
        if how not in _POWERS:
            raise UnknownNameError("growth", how, _POWERS)
        return np.where(tuples > 0, tuples ** _POWERS[how], 0.0)
    grown = np.asarray(how(tuples), np.float64)
    if grown.shape != tuples.shape or not np.isfinite(grown).all() or (grown < 0).any():
        raise InvalidArgumentError("A growth must give one finite amount, not negative, for each key.")
    return np.where(tuples > 0, grown, 0.0)


@dataclass(frozen=True, slots=True)
class StateModel:
    r"""How much state a key holds, by the tuples that it had lately: :math:`\beta_s`.

    Parameters
    ----------
    bytes_per_unit
        Bytes of one unit of growth; rounded to whole bytes per key.
    growth
        ``"constant"`` (one value per key), ``"linear"`` (a window of tuples), ``"sqrt"``, ``"quadratic"``, or a
        function of the array of tuples per key.
    windows
        Over how many windows tuples count, the newest among them; None: over all.
    at_most
        So many tuples of a key count at most, such as the last 500.

    References
    ----------
    B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing, §3.1; J. Fang et al.,
    Integrating workload balancing and fault tolerance in distributed stream processing system, §2 (S(k, w)).
    """

    bytes_per_unit: float = 1.0
    growth: Growth = "linear"
    windows: int | None = 1
    at_most: int | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bytes_per_unit) and self.bytes_per_unit >= 0):
            raise InvalidArgumentError(f"bytes_per_unit must be finite and not negative; got {self.bytes_per_unit}.")
        for name in ("windows", "at_most"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidArgumentError(f"{name} must be at least 1, or None; got {value}.")
        growth(self.growth, np.ones(1))

    def state_bytes(self, tuples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the state of each key by the tuples that count."""
        counted = tuples if self.at_most is None else np.minimum(tuples, self.at_most)
        return np.rint(self.bytes_per_unit * growth(self.growth, counted.astype(np.float64))).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One window as it is measured: every key that had tuples or holds state, by ascending hash."""

    hashes: NDArray[np.int64]
    counts: NDArray[np.int64]
    costs: NDArray[np.float64]
    state_bytes: NDArray[np.int64]

    def snapshot(self, table: RoutingTable, track: int | None, *more: RoutingTable) -> LoadSnapshot:
        """Give what a planner sees: the ``track`` costliest keys and those listed in the tables; the rest by slot.

        Of keys that cost as much, the lower hashes are tracked. O(keys).
        """
        listed = union(*(hashes for some in (table, *more) for hashes in (some.pin_hashes, some.split_hashes)))
        tracked = self.costliest(track) | contains(listed, self.hashes)
        rest = ~tracked
        slots = self.hashes[rest] % table.slots
        fields: dict[str, Any] = {}
        for measure in ("counts", "costs", "state_bytes"):
            values = getattr(self, measure)
            fields[f"key_{measure}"] = values[tracked]
            fields[f"slot_{measure}"] = np.bincount(slots, weights=values[rest], minlength=table.slots)
        return LoadSnapshot(key_hashes=self.hashes[tracked], distinct_keys=len(self.hashes), **fields)

    def costliest(self, track: int | None) -> NDArray[np.bool_]:
        """Say which are the ``track`` costliest keys; the lower hashes where keys cost as much."""
        return costliest(self.costs, track)


def costliest(costs: NDArray[np.float64], track: int | None) -> NDArray[np.bool_]:
    """Say which are the ``track`` largest costs; the first ones where they are equal. O(costs)."""
    chosen = np.ones(len(costs), np.bool_)
    if track is None or track >= len(costs):
        return chosen
    if track == 0:
        return ~chosen
    limit = np.partition(costs, len(costs) - track)[len(costs) - track]
    chosen = costs > limit
    ties = np.flatnonzero(costs == limit)
    chosen[ties[: track - int(chosen.sum())]] = True
    return chosen


class Ledger:
    """Keeps what the state of the keys depends on, and turns each histogram into what is measured.

    Memory: 16 bytes per key that holds state, and the histograms of the windows that still count. O(keys) per window.

    Parameters
    ----------
    state
        How much state a key holds. None: what the histograms say, where they do; else one byte per tuple of the window.
    cost
        How the cost of a key grows with its tuples in the window.
    """

    def __init__(self, state: StateModel | None = None, cost: Growth = "linear") -> None:
        self._model, self._cost = state, cost
        self._hashes, self._held = _NOTHING, _NOTHING
        self._counting: deque[Histogram] = deque()

    def observe(self, histogram: Histogram) -> Measured:
        """Take in a window."""
        hashes, state = self._state(histogram)
        counts = histogram.counts
        if hashes is not histogram.hashes:
            counts = np.zeros(len(hashes), np.int64)
            counts[np.searchsorted(hashes, histogram.hashes)] = histogram.counts
        return Measured(hashes, counts, growth(self._cost, counts.astype(np.float64)), state)

    def _state(self, histogram: Histogram) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All keys with tuples or state, and their state."""
        model = self._model
        if model is None and histogram.state_bytes is not None:
            return self._as_told(histogram, histogram.state_bytes)
        model = model or StateModel()
        if model.windows == 1:
            return histogram.hashes, model.state_bytes(histogram.counts)
        self._hashes, self._held = added(self._hashes, self._held, histogram.hashes, histogram.counts)
        if model.windows is not None:
            self._counting.append(histogram)
            if len(self._counting) > model.windows:
                gone = self._counting.popleft()
                self._hashes, self._held = added(self._hashes, self._held, gone.hashes, gone.counts, sign=-1)
        return self._hashes, model.state_bytes(self._held)

    def _as_told(
        self, histogram: Histogram, state_bytes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Levels: a key that is not named keeps the one it had; one of 0 bytes is gone after the window."""
        hashes = union(self._hashes, histogram.hashes)
        state = np.zeros(len(hashes), np.int64)
        state[np.searchsorted(hashes, self._hashes)] = self._held
        state[np.searchsorted(hashes, histogram.hashes)] = state_bytes
        self._hashes, self._held = hashes[state > 0], state[state > 0]
        return hashes, state


class SeenKeys:
    """Counts the distinct keys since the start, or since they were last handed on."""

    def __init__(self) -> None:
        self._hashes = _NOTHING

    def __len__(self) -> int:
        return len(self._hashes)

    def observe(self, histogram: Histogram) -> None:
        """Take in a window. O(keys)."""
        if len(self._hashes) == 0:
            self._hashes = histogram.hashes
        elif len(histogram):
            ones = np.ones(max(len(self._hashes), len(histogram)), np.int64)
            mine, theirs = ones[: len(self._hashes)], ones[: len(histogram)]
            self._hashes, _ = added(self._hashes, mine, histogram.hashes, theirs)

    def forget(self) -> None:
        """Start anew."""
        self._hashes = _NOTHING


def added(
    hashes: NDArray[np.int64],
    values: NDArray[np.int64],
    more: NDArray[np.int64],
    plus: NDArray[np.int64],
    *,
    sign: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Add (or subtract) amounts per key, both by ascending hash; keys with nothing left are dropped."""
    from evenkeel.sim import _kernels

    out, sums = (np.empty(len(hashes) + len(more), np.int64) for _ in range(2))
    size = _kernels.merge(hashes, values, more, plus, sign, out, sums)
    return out[:size].copy(), sums[:size].copy()
