"""What every planner is: a pure function from measured loads to a plan."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evenkeel import metrics
from evenkeel.errors import InvalidArgumentError
from evenkeel.planning.plan import Balance, Movement, Plan, state_of_moves
from evenkeel.planning.validate import validate
from evenkeel.routing import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evenkeel.planning.snapshot import LoadSnapshot
    from evenkeel.routing import RoutingTable

__all__ = ["Planner", "Problem", "Proposal"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What a planner is given."""

    snapshots: tuple[LoadSnapshot, ...]
    """The statistics windows, oldest first; at least one."""
    table: RoutingTable
    """The table in force."""
    channels: int
    """How many channels there are to be."""
    clock: Callable[[], float] = time.perf_counter
    """Seconds, for planners that may be given a time limit."""

    @property
    def latest(self) -> LoadSnapshot:
        """The last window."""
        return self.snapshots[-1]

    @property
    def resizes(self) -> bool:
        """Whether the number of channels changes."""
        return self.channels != self.table.channels


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a planner suggests: a table and the reasons for it. The table in force means: leave all as it is."""

    table: RoutingTable
    reasons: tuple[str, ...]


class Planner(ABC):
    """Suggests a routing table for measured loads.

    A planner is pure: the same windows, table and options give the same plan, and nothing changes until the plan is
    carried out. Options are the fields of the subclass.
    """

    name: ClassVar[str]
    """How the planner is chosen by name."""
    measure: ClassVar[str] = "skewness"
    """What the planner itself calls balance; see :meth:`score`."""

    def plan(
        self,
        snapshots: LoadSnapshot | Sequence[LoadSnapshot],
        table: RoutingTable,
        channels: int | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> Plan:
        """Plan for the measured windows; the plan is validated before it is given out.

        Parameters
        ----------
        snapshots
            One window, or several, oldest first. Most planners look at the last one alone.
        table
            The table in force.
        channels
            How many channels there are to be; as many as there are, by default.
        clock
            Seconds, to tell how long planning took.
        """
        windows = (snapshots,) if not isinstance(snapshots, (list, tuple)) else tuple(snapshots)
        problem = Problem(windows, table, table.channels if channels is None else channels, clock)
        _check(problem)
        started = clock()
        proposal = self.propose(problem)
        seconds = clock() - started
        moves = table.diff(proposal.table)
        sizes = state_of_moves(moves, problem.latest, table, proposal.table)
        held = problem.latest.total("state_bytes")
        switches = int((moves.actions == Action.SWITCH).sum())
        plan = Plan(
            planner=self.name,
            table=proposal.table,
            moves=moves,
            before=Balance.of(problem.latest.per_channel(table)),
            after=Balance.of(problem.latest.per_channel(proposal.table)),
            measure=self.measure,
            own_before=self.score(problem, table),
            own_after=self.score(problem, proposal.table),
            movement=Movement(
                state_bytes=int(sizes.sum()),
                percent=100 * float(sizes.sum()) / held if held else 0.0,
                moves=len(moves) - switches,
                switches=switches,
            ),
            seconds=seconds,
            reasons=proposal.reasons,
        )
        validate(plan, problem.latest, table)
        return plan

    @abstractmethod
    def propose(self, problem: Problem) -> Proposal:
        """Give the next table; the heart of each planner."""

    def score(self, problem: Problem, table: RoutingTable) -> float:
        """Measure a table as the planner's paper does; lower is better."""
        return metrics.skewness(problem.latest.per_channel(table))


def _check(problem: Problem) -> None:
    if not problem.snapshots:
        raise InvalidArgumentError("A planner needs at least one snapshot; got none.")
    for snapshot in problem.snapshots:
        if snapshot.slots != problem.table.slots:
            raise InvalidArgumentError(
                f"The snapshot has {snapshot.slots} slots and the table {problem.table.slots}; they must be the same."
            )
    if problem.channels < 1:
        raise InvalidArgumentError(f"channels must be at least 1; got {problem.channels}.")
