"""Statistics windows: what batches report, gathered until there is enough to judge by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.control.loads import load_loads, save_loads, to_snapshot
from evenkeel.control.saved import Saved
from evenkeel.control.tally import Tally
from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.control.reports import BatchReport
    from evenkeel.planning import LoadSnapshot
    from evenkeel.routing import RoutingTable

__all__ = ["Window", "WindowOptions", "Windows"]


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """How long a statistics window is, and what is kept of it.

    Parameters
    ----------
    batches
        A window ends after so many batches.
    seconds
        If given, it ends instead at the first batch that ends so long after the window began.
    keep
        How many windows are kept; planners that look back see all of them.
    max_keys
        How many keys are tracked, the costliest first; pinned and split keys are tracked besides, whatever they cost.
    """

    batches: int = 5
    seconds: float | None = None
    keep: int = 5
    max_keys: int = 1000

    def __post_init__(self) -> None:
        for name, lowest in (("batches", 1), ("keep", 1), ("max_keys", 0)):
            if getattr(self, name) < lowest:
                raise InvalidArgumentError(f"{name} must be at least {lowest}; got {getattr(self, name)}.", name=name)
        if self.seconds is not None and not (math.isfinite(self.seconds) and self.seconds > 0):
            raise InvalidArgumentError(f"seconds must be finite and above 0; got {self.seconds}.", name="seconds")


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """One statistics window.

    Parameters
    ----------
    number
        Counted from 0.
    batches
        How many batches it spans.
    snapshot
        The loads, as planners take them.
    channel_costs
        The cost that each channel itself reported: what really was, where ``snapshot.per_channel`` is a model.
    busy_ms
        Time that all channels together worked.
    """

    number: int
    batches: int
    snapshot: LoadSnapshot
    channel_costs: NDArray[np.float64]
    busy_ms: float

    @property
    def cost_per_batch(self) -> float:
        """The load of an average batch."""
        return self.snapshot.total("costs") / self.batches


class Windows:
    """Gathers reports of batches into windows and keeps the newest of them.

    A batch that is reported again, as after a replay, is counted once.

    Notes
    -----
    Memory: 24 bytes per slot and 32 per tracked key of each kept window, and the heavy keys reported to the open one.
    Time: O((slots + heavy keys) · log) per batch.
    """

    def __init__(self, options: WindowOptions) -> None:
        self.options = options
        self.kept: list[Window] = []
        self.last_batch = -1
        self._closed = 0
        self._previous_end: float | None = None
        self._start_anew()

    def _start_anew(self) -> None:
        self._slots, self._keys = Tally.empty(), Tally.empty()
        self._channel_costs = np.zeros(0)
        self._batches, self._keys_held, self._busy_ms = 0, 0, 0.0
        self._began = self._previous_end

    @property
    def next_number(self) -> int:
        """The number of the window that is open."""
        return self._closed

    def observe(self, report: BatchReport) -> None:
        """Take in what the channels report of a batch."""
        if report.batch <= self.last_batch:
            return
        self.last_batch = report.batch
        self._slots = self._slots.then(Tally.sum_of(part.slots for part in report.channels))
        self._keys = self._keys.then(Tally.sum_of(part.keys for part in report.channels))
        needed = max(part.channel for part in report.channels) + 1
        costs = np.zeros(max(needed, len(self._channel_costs)))
        costs[: len(self._channel_costs)] = self._channel_costs
        for part in report.channels:
            costs[part.channel] += part.slots.costs.sum()
        self._channel_costs = costs
        self._keys_held = sum(part.keys_held for part in report.channels)
        self._busy_ms += sum(part.busy_ms for part in report.channels)
        self._batches += 1
        self._began = report.time if self._began is None else self._began
        self._previous_end = report.time

    def discard(self) -> None:
        """Forget the open window: it began under another table than the one that is now in force."""
        self._start_anew()

    def close(self, table: RoutingTable) -> Window | None:
        """Give the window that ends here, if one does, with the keys that ``table`` lists among the tracked."""
        if not self._is_due():
            return None
        if len(self._slots) and not 0 <= self._slots.ids[0] <= self._slots.ids[-1] < table.slots:
            raise InvalidArgumentError(
                f"Reports name slots {self._slots.ids[0]} to {self._slots.ids[-1]}; the table has {table.slots}."
            )
        costs = np.zeros(table.channels)
        there = min(table.channels, len(self._channel_costs))
        costs[:there] = self._channel_costs[:there]
        snapshot = to_snapshot(self._slots, self._keys, table, self.options.max_keys, self._keys_held)
        window = Window(self._closed, self._batches, snapshot, costs, self._busy_ms)
        self.kept = [*self.kept, window][-self.options.keep :]
        self._closed += 1
        self._start_anew()
        return window

    def _is_due(self) -> bool:
        if self._batches == 0:
            return False
        if self.options.seconds is None:
            return self._batches >= self.options.batches
        assert self._began is not None
        assert self._previous_end is not None
        return self._previous_end - self._began >= self.options.seconds

    def snapshot(self) -> Saved:
        """Give the kept windows and the open one, to be stored."""
        facts = {
            "last_batch": self.last_batch,
            "closed": self._closed,
            "previous_end": self._previous_end,
            "began": self._began,
            "batches": self._batches,
            "keys_held": self._keys_held,
            "busy_ms": self._busy_ms,
        }
        kept = {str(index): _save_window(window) for index, window in enumerate(self.kept)}
        return Saved.of_parts(
            open=Saved(facts, {"channel_costs": self._channel_costs}),
            slots=self._slots.snapshot(),
            keys=self._keys.snapshot(),
            kept=Saved.of_parts(**kept),
        )

    def restore(self, saved: Saved) -> None:
        """Continue from what :meth:`snapshot` gave."""
        opened, kept = saved.part("open"), saved.part("kept")
        for name, value in opened.facts.items():
            setattr(self, name if name == "last_batch" else f"_{name}", value)
        self._channel_costs = opened.arrays["channel_costs"]
        self._slots, self._keys = Tally.restore(saved.part("slots")), Tally.restore(saved.part("keys"))
        self.kept = [_load_window(kept.part(name)) for name in sorted(kept.facts, key=int)][-self.options.keep :]


def _save_window(window: Window) -> Saved:
    facts = {"number": window.number, "batches": window.batches, "busy_ms": window.busy_ms}
    own = Saved(facts, {"channel_costs": window.channel_costs})
    return Saved.of_parts(own=own, loads=save_loads(window.snapshot))


def _load_window(saved: Saved) -> Window:
    own = saved.part("own")
    return Window(snapshot=load_loads(saved.part("loads")), channel_costs=own.arrays["channel_costs"], **own.facts)
