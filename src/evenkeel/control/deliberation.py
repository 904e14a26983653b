"""From what is known to what is to be done: whether there is a cause to plan, and whether the plan may be carried out.

Pure: what has to be remembered from window to window is the controller's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.control.decisions import Choice
from evenkeel.control.gates import Answer, SomethingToDo
from evenkeel.control.schedule import Schedule
from evenkeel.planning.validate import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evenkeel.control.analysis import Analysis, MigrationRate
    from evenkeel.control.options import ControlOptions
    from evenkeel.planning import LoadSnapshot, Plan, Planner
    from evenkeel.routing import RoutingTable

__all__ = ["Case", "Finding", "deliberate"]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """All that a decision rests on.

    Parameters
    ----------
    options
        The gates.
    table
        The table in force.
    snapshots
        The kept windows, oldest first.
    seen
        What they say about the table.
    imbalance, drift
        Answers of the tests that have a memory.
    since
        Whole windows since the last change; None where there was none.
    caution
        What the planner has earned; see :class:`~evenkeel.control.trust.Trust`.
    rate
        How fast state moves.
    """

    options: ControlOptions
    table: RoutingTable
    snapshots: tuple[LoadSnapshot, ...]
    seen: Analysis
    imbalance: Answer
    drift: Answer
    since: int | None
    caution: int
    rate: MigrationRate


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """What is to be done and why; with the planner if it was asked, and its plan and schedule if the plan was valid."""

    choice: Choice
    reasons: tuple[str, ...]
    answers: tuple[Answer, ...]
    planner: str | None = None
    plan: Plan | None = None
    schedule: Schedule | None = None


def deliberate(case: Case, planner: Planner, clock: Callable[[], float]) -> Finding:
    """Ask for causes, then the planner, then for permission; the first "no" that settles it ends the questions."""
    answers, wanted = _causes(case)
    causes = [answer for answer in answers if answer.passes]
    if not causes:
        return Finding(Choice.STAY, _why(answers), tuple(answers))
    answers.append(case.options.cool_down.ask(case.since, case.caution))
    if not answers[-1].passes:
        return Finding(Choice.STAY, _why([*causes, answers[-1]]), tuple(answers))
    try:
        plan = planner.plan(case.snapshots, case.table, wanted, clock=clock)
        validate(plan, case.snapshots[-1], case.table)
    except Exception as error:  # noqa: BLE001  a planner may be anyone's; the stream must go on without it
        failed = f"The planner {planner.name} failed: {type(error).__name__}: {error}"
        return Finding(Choice.STAY, (*_why(causes), failed), tuple(answers), planner.name)
    schedule = Schedule.of(case.table, plan.table, case.snapshots[-1], case.options.budget.state_bytes)
    permits = _permits(case, plan, schedule, wanted)
    answers += permits
    refusals = [answer for answer in permits if not answer.passes]
    if refusals:
        why = _why(causes) + plan.reasons + _why(refusals)
        return Finding(Choice.STAY, why, tuple(answers), planner.name, plan, schedule)
    choice = Choice.MOVE if plan.table.channels == case.table.channels else Choice.RESIZE
    why = _why(causes) + plan.reasons + _why(permits)
    return Finding(choice, why, tuple(answers), planner.name, plan, schedule)


def _causes(case: Case) -> tuple[list[Answer], int]:
    """Possible causes to plan, any of which is enough, and how many channels there are to be."""
    seen, options = case.seen, case.options
    answers = [case.imbalance, options.overloaded_channel.ask(seen.ratios, seen.chance), case.drift]
    if options.elasticity is None:
        return answers, case.table.channels
    size = options.elasticity.ask(seen.loads, case.table.channels, case.since)
    return [*answers, size], int(size.number)


def _permits(case: Case, plan: Plan, schedule: Schedule, wanted: int) -> list[Answer]:
    """What the plan must pass to be carried out."""
    options, seen, state_bytes = case.options, case.seen, schedule.state_bytes
    channels = plan.table.channels
    answers = [SomethingToDo().ask(plan, case.table), options.budget.ask(state_bytes, len(schedule))]
    if channels == case.table.channels:
        cost_ms = case.rate.cost_ms(state_bytes)
        answers += [
            options.relative_gain.ask(seen.skewness, seen.predicted(plan)),
            options.worth_its_cost.ask(seen.saved_ms(plan), cost_ms, case.caution),
        ]
    # A change of N is for the sake of the load per channel, not of the balance: no gain is asked of it.
    if options.elasticity is not None:
        reason = f"The plan is for {channels} channels; {wanted} were asked for."
        answers.append(Answer("channels", channels == wanted, channels, reason))
    return answers


def _why(answers: Sequence[Answer]) -> tuple[str, ...]:
    return tuple(answer.reason for answer in answers)
