"""Planners on their way through a stream: asked after every few windows, and obeyed."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from evenkeel.planning import LoadSnapshot, Planner, StayPut
from evenkeel.sim.runs.tabled import Change, TableRun

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from evenkeel.routing import RoutingTable
    from evenkeel.sim.ledger import Measured
    from evenkeel.sim.runs.base import Settings
    from evenkeel.sim.strategies import Planned
    from evenkeel.sim.window import Window

__all__ = ["PlannedRun"]


class PlannedRun(TableRun):
    """A planner that sees the last windows and gives the table for the next; plans are validated by the planner's base.

    Parameters
    ----------
    name, settings, table
        As for every table's run.
    planner, options
        Who plans, and how often on what.
    channels_in
        Gives the number of channels that a window is to have, or None where the planner is free.
    clock
        Seconds, to tell how long planning takes.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        table: RoutingTable,
        planner: Planner,
        options: Planned,
        channels_in: Callable[[int], int | None],
        clock: Callable[[], float],
    ) -> None:
        super().__init__(name, settings, table, options.backup_cost)
        self._planner, self._options, self._channels_in, self._clock = planner, options, channels_in, clock
        self._snapshots: deque[LoadSnapshot] = deque(maxlen=options.look_back or options.every)

    def decide(self, window: Window, measured: Measured, homes: NDArray[np.int32]) -> Change:  # noqa: ARG002
        """Ask the planner where it is time to."""
        table, options = self.table, self._options
        wanted = self._channels_in(window.number + 1)
        due = (window.number + 1) % options.every == 0 and not isinstance(self._planner, StayPut)
        if not due and wanted in {None, table.channels} and self._snapshots.maxlen == 1:
            return Change(table)
        self._snapshots.append(measured.snapshot(table, options.track))
        if not due and wanted in {None, table.channels}:
            return Change(table)
        plan = self._planner.plan(tuple(self._snapshots), table, wanted, clock=self._clock)
        return Change(
            plan.table,
            planned=True,
            plan_ms=1e3 * plan.seconds,
            own_before=plan.own_before,
            own_after=plan.own_after,
            reason=" ".join(plan.reasons),
        )
