"""The controller: measure, analyse, plan, activate. Planners suggest; it decides, and keeps why."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from evenkeel import metrics
from evenkeel.control.analysis import Analysis, MigrationRate
from evenkeel.control.decisions import Choice, Decision, DecisionLog
from evenkeel.control.deliberation import Case, deliberate
from evenkeel.control.drift import DriftDetector
from evenkeel.control.options import ControlOptions
from evenkeel.control.saved import Saved
from evenkeel.control.schedule import Schedule
from evenkeel.control.trust import Trust
from evenkeel.control.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Callable

    from evenkeel.control.reports import BatchReport
    from evenkeel.control.windows import Window
    from evenkeel.planning import Planner
    from evenkeel.routing import RoutingTable

__all__ = ["Controller", "Verdict"]


class Verdict(NamedTuple):
    """What to do before the next batch: the decision, and the table to use from then on if it is another one."""

    decision: Decision
    table: RoutingTable | None = None


@dataclass(frozen=True, slots=True)
class _Promise:
    """A plan that was carried out and is yet to be judged."""

    number: int
    before: float
    predicted: float
    resizes: bool


class Controller:
    """Decides after every statistics window whether the routing table changes.

    ``observe`` every batch, then ``decide``; a table that is handed out must be in force for the next batch. A window
    gives a reason to plan if it is imbalanced, if one channel is overloaded again and again, if the stream has drifted,
    or if the number of channels is to change. The plan is validated, whoever made it, and carried out if every gate
    agrees; over several batches where the budget asks for it, during which nothing else is decided. A change of the
    table begins a new window. The first whole window after it tells what was achieved; a planner whose predictions are
    missed repeatedly must wait longer and promise more (see :class:`~evenkeel.control.trust.Trust`).

    A planner that raises, or whose plan is not valid, is a decision to stay, with the error as its reason.

    Parameters
    ----------
    planner
        Who suggests tables.
    options
        How to measure, and when to act.
    clock
        Seconds, handed to the planner to tell how long planning took; no decision depends on it.

    Notes
    -----
    Pure but for its own state, which :meth:`snapshot` gives and :meth:`restore` continues from exactly.
    """

    def __init__(
        self,
        planner: Planner,
        options: ControlOptions | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.planner = planner
        self.options = options or ControlOptions()
        self.decisions = DecisionLog(self.options.log_limit)
        self._clock = clock
        self._windows = Windows(self.options.windows)
        self._drift = DriftDetector(self.options.drift)
        self._trust = Trust()
        self._rate = MigrationRate(self.options.bytes_per_ms)
        self._balancing = False
        self._last_change: int | None = None
        self._promise: _Promise | None = None
        self._schedule: Schedule | None = None
        self._done = 0

    def observe(self, report: BatchReport) -> None:
        """Take in what the channels report of a batch; one that is reported again is counted once."""
        if report.batch > self._windows.last_batch:
            self._rate = self._rate.after(report.moved_bytes, report.moving_ms)
        self._windows.observe(report)

    def record(self, decision: Decision) -> Decision:
        """Log a decision that was made elsewhere, such as that of a channel's host."""
        return self.decisions.append(decision)

    def decide(self, table: RoutingTable, now: float) -> Verdict:
        """Decide what is to be in force for the next batch, given the table of the last one and the time in seconds."""
        dropped: tuple[str, ...] = ()
        if self._schedule is not None:
            if table == self._schedule.table(self._done):
                return self._next_step(now, table)
            dropped = ("The table in force is not the one that was handed out: the rest of the plan is dropped.",)
            self._schedule = self._promise = None
        window = self._windows.close(table)
        if window is None:
            waiting = "The statistics window is not over."
            return Verdict(self._decision(now, table, Choice.WAIT, (*dropped, waiting)))
        self._judge(window, table)
        decision, schedule = self._weigh(window, table, now)
        decision = self.decisions.append(replace(decision, reasons=dropped + decision.reasons))
        if schedule is None:
            return Verdict(decision)
        assert decision.before is not None
        assert decision.predicted is not None
        resizes = decision.choice is Choice.RESIZE
        self._promise = _Promise(decision.number, decision.before, decision.predicted, resizes)
        self._schedule, self._done = schedule, 0
        return Verdict(decision, self._activate())

    # -- measure and analyse ----------------------------------------------------------------------------------------

    def _judge(self, window: Window, table: RoutingTable) -> None:
        """Compare what the last plan promised with what the channels measured in the first window after it."""
        if self._promise is None or window.channel_costs.sum() == 0:
            return
        promise, self._promise = self._promise, None
        achieved = metrics.skewness(window.channel_costs[: table.channels])
        self.decisions.complete(promise.number, achieved)
        if not promise.resizes:  # skewness of different numbers of channels cannot be compared
            self._trust = self._trust.after(before=promise.before, predicted=promise.predicted, achieved=achieved)

    def _weigh(self, window: Window, table: RoutingTable, now: float) -> tuple[Decision, Schedule | None]:
        """Judge one window: the decision, and how to carry it out if the table is to change."""
        if window.snapshot.total("counts") == 0:
            empty = ("There was not a single tuple in the window.",)
            return self._decision(now, table, Choice.STAY, empty, window=window.number), None
        seen = Analysis.of(self._windows.kept, table)
        imbalance = self.options.imbalance.ask(seen.skewness, seen.chance, started=self._balancing)
        self._balancing = imbalance.passes
        case = Case(
            options=self.options,
            table=table,
            snapshots=tuple(kept.snapshot for kept in self._windows.kept),
            seen=seen,
            imbalance=imbalance,
            drift=self._drift.observe(window.snapshot),
            since=None if self._last_change is None else window.number - self._last_change + 1,
            caution=self._trust.caution,
            rate=self._rate,
        )
        found = deliberate(case, self.planner, self._clock)
        numbers: dict[str, Any] = {
            "window": window.number,
            "before": seen.skewness,
            "answers": found.answers,
            "planner": found.planner,
        }
        if found.plan is None or found.schedule is None:
            return self._decision(now, table, found.choice, found.reasons, **numbers), None
        self._drift.renew(window.snapshot)
        numbers["predicted"] = seen.predicted(found.plan)
        numbers["plan_ms"] = found.plan.seconds * 1e3
        numbers["state_bytes"] = found.schedule.state_bytes
        if found.choice is Choice.STAY:
            return self._decision(now, table, found.choice, found.reasons, **numbers), None
        numbers["next_channels"] = found.plan.table.channels
        numbers |= _step(found.schedule, 0)
        return self._decision(now, table, found.choice, found.reasons, **numbers), found.schedule

    # -- activate ---------------------------------------------------------------------------------------------------

    def _next_step(self, now: float, table: RoutingTable) -> Verdict:
        """Carry out one more step of the plan."""
        assert self._schedule is not None
        numbers = _step(self._schedule, self._done)
        reason = f"Step {numbers['step']} of {numbers['steps']} of the plan."
        numbers["state_bytes"] = self._schedule.state_bytes
        nxt = self._activate()
        decision = self._decision(now, table, Choice.CONTINUE, (reason,), next_channels=nxt.channels, **numbers)
        return Verdict(self.decisions.append(decision), nxt)

    def _activate(self) -> RoutingTable:
        """Give the table after the next step. What was measured under another table is no part of the next window."""
        assert self._schedule is not None
        self._done += 1
        table = self._schedule.table(self._done)
        self._windows.discard()
        self._last_change = self._windows.next_number
        if self._done == len(self._schedule):
            self._schedule = None
        return table

    def _decision(
        self, now: float, table: RoutingTable, choice: Choice, reasons: tuple[str, ...], **numbers: Any
    ) -> Decision:
        defaults = {"window": self._windows.next_number, "channels": table.channels, "next_channels": table.channels}
        known = {"batch": self._windows.last_batch, "time": now, "choice": choice, "reasons": reasons}
        return Decision(**{**defaults, **known, **numbers})

    # -- storing ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> Saved:
        """Give all that the controller remembers, to be stored in a checkpoint."""
        own = {
            "trust": asdict(self._trust),
            "bytes_per_ms": self._rate.bytes_per_ms,
            "balancing": self._balancing,
            "last_change": self._last_change,
            "promise": None if self._promise is None else asdict(self._promise),
            "done": self._done,
        }
        schedule = {} if self._schedule is None else {"schedule": self._schedule.snapshot()}
        return Saved.of_parts(
            own=Saved(own),
            windows=self._windows.snapshot(),
            drift=self._drift.snapshot(),
            decisions=self.decisions.snapshot(),
            **schedule,
        )

    def restore(self, saved: Saved) -> None:
        """Continue exactly where :meth:`snapshot` was taken; planner and options may be others."""
        own = saved.part("own").facts
        self._trust = Trust(**own["trust"])
        self._rate = MigrationRate(own["bytes_per_ms"])
        self._balancing, self._last_change, self._done = own["balancing"], own["last_change"], own["done"]
        self._promise = None if own["promise"] is None else _Promise(**own["promise"])
        self._windows.restore(saved.part("windows"))
        self._drift.restore(saved.part("drift"))
        self.decisions.restore(saved.part("decisions"))
        self._schedule = Schedule.restore(saved.part("schedule")) if "schedule" in saved.facts else None


def _step(schedule: Schedule, done: int) -> dict[str, Any]:
    """The numbers of the next step, for its decision."""
    return {"step": done + 1, "steps": len(schedule), "step_bytes": int(schedule.step_bytes[done])}
