"""Replay a stream through any number of strategies at once."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.planning import Planner, make_planner
from evenkeel.routing import Router, RoutingTable, make_router
from evenkeel.routing.routers import OffGreedy
from evenkeel.routing.routers.base import StickyRouter
from evenkeel.sim.ledger import Growth, Ledger, SeenKeys, StateModel, added
from evenkeel.sim.results import COLUMNS, Replay, tidy
from evenkeel.sim.runs import ControlledRun, KeyedRun, Measure, PlannedRun, Run, Settings, Shared, TupleRun
from evenkeel.sim.strategies import Controlled, Planned, Routed, Strategy, as_strategy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from evenkeel.sim.queueing import Service
    from evenkeel.sim.window import Histogram, Window
    from evenkeel.sim.workloads import Workload

__all__ = ["agreement", "replay"]

MS_PER_LOAD = 0.01


def replay(
    workload: Workload,
    strategies: Mapping[str, Strategy | Callable[[int], Router]],
    *,
    channels: int | Sequence[int],
    windows: int | None = None,
    slots: int | None = None,
    state: StateModel | None = None,
    cost: Growth = "linear",
    service: Service | None = None,
    measures: Mapping[str, Measure] | None = None,
    labels: Mapping[str, Any] | None = None,
    keep_loads: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Replay:
    """Send one stream through several strategies, and measure each in every window.

    Routers that split keys or look at the order see every tuple. Planners, controllers, tables and plain hashes see the
    histogram of each window, which gives the same loads; a plan that is made at the end of a window is in force from
    the next one on, and is validated. All see the same tuples, whoever else takes part.

    Parameters
    ----------
    workload
        The stream.
    strategies
        By any name: a router, a planner, a controller or a routing table; by its registered name, as an object, or as
        :class:`Routed`, :class:`Planned` or :class:`Controlled` with the options of a replay.
    channels
        How many there are; or how many in each window, for planners (the last goes on).
    windows
        How many windows to replay; all by default, which an endless workload does not have.
    slots
        Of the first routing table, where a strategy does not bring its own.
    state
        How much state a key holds; see :class:`StateModel`. By default what prepared histograms say, else one byte for
        each tuple of the window.
    cost
        How the cost of a key grows with its tuples in a window; planners balance cost. Other than ``"linear"`` only for
        strategies that look at histograms.
    service
        How fast channels work and state moves, for latency and throughput: :class:`Fluid` or :class:`MicroBatches`.
    measures
        More columns: functions of a :class:`Sight`.
    labels
        More columns that are the same in all rows, such as the setting of a sweep.
    keep_loads
        Whether to keep the loads of every channel in every window: 8 bytes each.
    clock
        Seconds, to tell how long planning takes.

    Returns
    -------
    Replay
        One tidy table with a row per strategy and window; see :data:`evenkeel.sim.results.COLUMNS`.

    Notes
    -----
    Memory: one histogram, the state of the keys, and a million tuples at a time; it does not grow with the stream but
    for keys not seen before. See the page on the simulator for times.

    Examples
    --------
    >>> from evenkeel.sim import Zipf
    >>> stream = Zipf(keys=10_000, exponent=1.0, tuples=50_000)
    >>> done = replay(stream, {"hash": "key_grouping", "pkg": "pkg", "keel": "keel"}, channels=8, windows=3)
    >>> [round(skew, 2) for skew in done.column("hash", "skewness").tolist()]
    [1.56, 1.56, 1.55]
    >>> [round(skew, 2) for skew in done.column("keel", "skewness").tolist()]
    [1.56, 1.04, 1.04]
    >>> done.column("pkg", "running_imbalance").tolist()
    [2.0, 5.0, 3.0]
    """
    if not strategies:
        raise InvalidArgumentError("A replay needs at least one strategy; got none.")
    clashes = [name for name in (*(measures or ()), *(labels or ())) if name in COLUMNS]
    if clashes:
        raise InvalidArgumentError(f"There is a column {clashes[0]!r} already; choose another name.", name=clashes[0])
    made = _Maker(
        workload=workload,
        windows=windows,
        channels=_Channels.of(channels),
        slots=slots,
        settings=Settings(service, measures or {}, keep_loads),
        clock=clock,
    )
    runs = [made.run(name, as_strategy(strategy)) for name, strategy in strategies.items()]
    by_tuples = [run for run in runs if run.needs_tuples]
    if by_tuples and cost != "linear":
        raise InvalidArgumentError(
            f"{by_tuples[0].name} is replayed tuple by tuple, so a tuple costs 1; {cost!r} is for strategies that "
            "look at histograms."
        )
    ledger = Ledger(state, cost) if len(by_tuples) < len(runs) else None
    seen = SeenKeys()
    rows = []
    for window in workload.first(windows):
        if by_tuples:
            for tuples in window.tuples():
                for run in by_tuples:
                    run.take(tuples)
        shared = None if ledger is None else _shared(window, ledger, seen)
        rows += [run.close(window, shared) for run in runs]
    return Replay(
        tidy(rows, measures or (), labels or {}),
        {run.name: run.loads for run in runs} if keep_loads else {},
        {run.name: run.latencies() for run in runs} if service is not None else {},
    )


def agreement(
    workload: Workload,
    first: Strategy | Callable[[int], Router],
    second: Strategy | Callable[[int], Router],
    *,
    channels: int,
    windows: int | None = None,
) -> float:
    """Give the Jaccard overlap of two routers' choices, tuple by tuple; see :func:`evenkeel.metrics.routing_agreement`.

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §V, Q2: global and local estimation agree by 47 %.
    """
    strategies = [as_strategy(strategy) for strategy in (first, second)]
    made = _Maker(workload, windows, _Channels.of(channels), None, Settings(), time.perf_counter)
    routes = []
    for strategy in strategies:
        if not isinstance(strategy, Routed):
            raise InvalidArgumentError("Only routers can be compared tuple by tuple.")
        routes.append(made.route(strategy)[0])
    equal, total = 0, 0
    for window in workload.first(windows):
        for tuples in window.tuples():
            here, there = (route(tuples.hashes, tuples.sources) for route in routes)
            equal += int((here == there).sum())
            total += len(tuples)
    return equal / (2 * total - equal) if total else 1.0


def _shared(window: Window, ledger: Ledger, seen: SeenKeys) -> Shared:
    histogram = window.histogram()
    seen.observe(histogram)
    return Shared(histogram, ledger.observe(histogram), seen)


@dataclass(frozen=True, slots=True)
class _Channels:
    """How many channels there are to be in each window."""

    numbers: tuple[int, ...]
    fixed: bool

    @classmethod
    def of(cls, channels: int | Sequence[int]) -> _Channels:
        numbers = (channels,) if isinstance(channels, int) else tuple(channels)
        if not numbers or min(numbers) < 1:
            raise InvalidArgumentError(f"channels must be at least 1, or say so for each window; got {channels}.")
        return cls(numbers, isinstance(channels, int))

    def wanted(self, window: int) -> int | None:
        """For planners; they are free to choose where just the number to begin with was given."""
        return None if self.fixed else self.numbers[min(window, len(self.numbers) - 1)]


_Route = Callable[["NDArray[np.int64]", "NDArray[np.int64] | None"], "NDArray[np.int32]"]


@dataclass(frozen=True, slots=True, eq=False)
class _Maker:
    """Makes runs of strategies."""

    workload: Workload
    windows: int | None
    channels: _Channels
    slots: int | None
    settings: Settings
    clock: Callable[[], float]

    def run(self, name: str, strategy: Routed | Planned | Controlled) -> Run:
        if isinstance(strategy, Routed):
            return self._routed(name, strategy)
        table = strategy.table or RoutingTable.even(self.channels.numbers[0], self.slots)
        if isinstance(strategy, Planned):
            planner = strategy.planner if isinstance(strategy.planner, Planner) else make_planner(strategy.planner)
            return PlannedRun(name, self.settings, table, planner, strategy, self.channels.wanted, self.clock)
        pace = strategy.ms_per_load
        if pace is None:
            pace = MS_PER_LOAD if self.settings.service is None else 1e3 / self.settings.service.rate
        controller = copy.deepcopy(strategy.controller)
        return ControlledRun(name, self.settings, table, controller, pace, strategy.backup_cost, strategy.heavy_keys)

    def _routed(self, name: str, strategy: Routed) -> Run:
        route, channels, by_key = self.route(strategy)
        if strategy.level == "histogram" and not by_key:
            raise InvalidArgumentError(f"{name} splits keys or looks at the order of tuples; replay it by tuples.")
        kind = KeyedRun if by_key and strategy.level != "tuples" else TupleRun
        options: dict[str, Any] = {"flush_every": strategy.flush_every, "count_pairs": strategy.count_pairs}
        if strategy.afresh and kind is TupleRun:
            options["renewed"] = lambda: self.route(strategy)[0]
        return kind(name, self.settings, route, channels, **options)

    def route(self, strategy: Routed) -> tuple[_Route, int, bool]:
        """How to route, over how many channels, and whether looking at each key once is enough."""
        given = strategy.router
        if isinstance(given, RoutingTable):
            if len(given.split_hashes):
                raise InvalidArgumentError("A table with split keys is replayed as Planned('stay_put', table=…).")
            return lambda hashes, _: given.route(hashes), given.channels, True
        router = self._router(given, strategy.options)
        if isinstance(router, OffGreedy) and router.table is None:
            whole = self._whole()
            router.fit(whole[0], whole[1])
        by_key = router.keeps_keys_together and not isinstance(router, StickyRouter)
        return router.route, router.channels, by_key

    def _router(self, given: str | Router | Callable[[int], Router], options: Mapping[str, Any]) -> Router:
        if isinstance(given, Router):
            return copy.deepcopy(given)
        numbers = set(self.channels.numbers)
        if len(numbers) > 1:
            raise InvalidArgumentError("Routers have one number of channels; only planners change it.")
        if isinstance(given, str):
            return make_router(given, numbers.pop(), **{"sources": self.workload.sources, **options})
        return given(numbers.pop())

    def _whole(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The histogram of the whole stream, for the router that must know it beforehand."""
        hashes, counts = np.empty(0, np.int64), np.empty(0, np.int64)
        for histogram in self._histograms():
            hashes, counts = added(hashes, counts, histogram.hashes, histogram.counts)
        return hashes, counts

    def _histograms(self) -> Iterator[Histogram]:
        return (window.histogram() for window in self.workload.first(self.windows))
