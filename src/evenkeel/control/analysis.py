"""What the newest windows say about the table in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel import metrics
from evenkeel.control.gates import chance_excess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evenkeel.control.windows import Window
    from evenkeel.planning import Plan
    from evenkeel.routing import RoutingTable

__all__ = ["Analysis", "MigrationRate"]


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """How even the load is, and what evening it out is worth.

    Parameters
    ----------
    skewness
        Of the newest window.
    chance
        The excess over 1 that chance alone explains.
    ratios
        Windows x channels, each channel's load over its window's average.
    busy_ms
        What an average channel works in a batch; the batch takes ``skewness`` times as long.
    loads
        Cost per batch of each window.
    """

    skewness: float
    chance: float
    ratios: NDArray[np.float64]
    busy_ms: float
    loads: tuple[float, ...]

    @classmethod
    def of(cls, windows: Sequence[Window], table: RoutingTable) -> Analysis:
        """Look at the windows as if ``table`` had been in force in all of them."""
        newest = windows[-1]
        costs = np.stack([window.snapshot.per_channel(table) for window in windows])
        means = costs.mean(axis=1, keepdims=True)
        return cls(
            skewness=metrics.skewness(costs[-1]),
            chance=chance_excess(newest.snapshot.per_channel(table, "counts")),
            ratios=np.divide(costs, means, out=np.ones_like(costs), where=means > 0),
            busy_ms=newest.busy_ms / newest.batches / table.channels,
            loads=tuple(window.cost_per_batch for window in windows),
        )

    def predicted(self, plan: Plan) -> float:
        """Give the skewness that a plan may promise: what it computes, but never better than chance allows."""
        return max(plan.after.skewness, 1 + self.chance)

    def saved_ms(self, plan: Plan) -> float:
        """Give the time by which a plan shortens a batch."""
        return (self.skewness - self.predicted(plan)) * self.busy_ms


@dataclass(frozen=True, slots=True)
class MigrationRate:
    """How many bytes of state move per millisecond; what was measured last counts as much as all before."""

    bytes_per_ms: float

    def after(self, moved_bytes: int, moving_ms: float) -> MigrationRate:
        """Learn from a batch that moved state."""
        if moved_bytes == 0 or moving_ms == 0:
            return self
        # Rates average harmonically: it is the time per byte that adds up.
        return MigrationRate(2 / (1 / self.bytes_per_ms + moving_ms / moved_bytes))

    def cost_ms(self, state_bytes: int) -> float:
        """Give the time that moving so much takes."""
        return state_bytes / self.bytes_per_ms
