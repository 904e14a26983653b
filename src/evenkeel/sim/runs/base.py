"""One strategy on its way through a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from evenkeel import metrics
from evenkeel.errors import InvalidArgumentError
from evenkeel.sim.queueing import LatencyLog

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.metrics import LatencySummary
    from evenkeel.routing import RoutingTable
    from evenkeel.sim.ledger import Measured, SeenKeys
    from evenkeel.sim.queueing import Service
    from evenkeel.sim.window import Histogram, Tuples, Window

__all__ = ["Measure", "Run", "Settings", "Shared", "Sight"]


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """What a measure of one's own can look at: one window of one strategy.

    Parameters
    ----------
    loads
        Load of each channel in the window.
    measured
        The keys, their tuples, costs and state; None for a strategy that was replayed tuple by tuple.
    homes
        The channel of each of these keys.
    table
        The table in force; None for routers.
    """

    loads: NDArray[np.float64]
    measured: Measured | None = None
    homes: NDArray[np.int32] | None = None
    table: RoutingTable | None = None


Measure: TypeAlias = Callable[[Sight], float]


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """What all runs of a replay have in common."""

    service: Service | None = None
    measures: Mapping[str, Measure] = field(default_factory=dict)
    keep_loads: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What is worked out once per window for all runs that look at histograms."""

    histogram: Histogram
    measured: Measured
    seen: SeenKeys


class Run(ABC):
    """One strategy on its way through a stream: takes windows, gives rows."""

    needs_tuples: bool
    """Whether every tuple is to be shown, or the histogram of the window is enough."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.settings = name, settings
        self.loads: list[NDArray[np.float64]] = []
        self._running = np.zeros(0)
        self._queues = settings.service.start() if settings.service else None
        self._latencies = LatencyLog()
        self._pause_s = 0.0
        self._paused_s = 0.0

    def take(self, tuples: Tuples) -> None:
        """Take in some tuples of the window that is open."""
        raise InvalidArgumentError(f"{self.name} looks at histograms alone; it was shown {len(tuples)} tuples.")

    @abstractmethod
    def close(self, window: Window, shared: Shared | None) -> dict[str, Any]:
        """End the window, decide what comes next, and give the window's row."""

    def latencies(self) -> LatencySummary:
        """Summarise the latencies of the whole run."""
        return self._latencies.summary()

    def _row(self, window: Window, tuples: int, sight: Sight) -> dict[str, Any]:
        """The columns that every strategy has."""
        loads = sight.loads
        if len(self._running) != len(loads):  # what was summed up over another number of channels says nothing
            self._running = np.zeros(len(loads))
        self._running += loads
        if self.settings.keep_loads:
            self.loads.append(loads)
        row: dict[str, Any] = {
            "strategy": self.name,
            "window": window.number,
            "time_s": window.start + window.seconds,
            "channels": len(loads),
            "tuples": tuples,
            "load_max": float(loads.max()),
            "load_mean": float(loads.mean()),
            "imbalance": metrics.imbalance(loads),
            "skewness": metrics.skewness(loads),
            "relative_std_percent": metrics.relative_std_percent(loads),
            "variance": metrics.load_variance(loads),
            "running_load": float(self._running.sum()),
            "running_imbalance": metrics.imbalance(self._running),
        }
        return row | self._service_row(loads, window.seconds) | self._own_measures(sight)

    def _own_measures(self, sight: Sight) -> dict[str, float]:
        return {name: float(measure(sight)) for name, measure in self.settings.measures.items()}

    def _service_row(self, loads: NDArray[np.float64], seconds: float) -> dict[str, Any]:
        if self._queues is None:
            return {}
        served = self._queues.serve(loads, seconds, self._pause_s)
        self._latencies.add(served.delays)
        p50, p95, p99 = served.delays.quantiles(0.5, 0.95, 0.99)
        row = {
            "pause_s": self._pause_s,
            "needed_s": served.needed_s,
            "throughput_per_s": served.served / seconds,
            "backlog": served.backlog,
            "latency_mean_ms": 1e3 * served.delays.mean,
            "latency_p50_ms": 1e3 * p50,
            "latency_p95_ms": 1e3 * p95,
            "latency_p99_ms": 1e3 * p99,
            "latency_max_ms": 1e3 * served.delays.longest,
        }
        self._paused_s, self._pause_s = self._pause_s, 0.0
        return row

    def _hold_up(self, moves: int, moved_bytes: int) -> None:
        """Let the next window begin with the pause that a migration takes."""
        if self.settings.service is not None:
            self._pause_s = self.settings.service.pause_for(moves, moved_bytes)
