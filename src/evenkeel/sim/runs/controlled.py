"""Controllers on their way through a stream: every window is a batch that the channels report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.control import BatchReport, ChannelReport, Controller, Tally
from evenkeel.routing.ragged import contains, union
from evenkeel.sim.ledger import costliest
from evenkeel.sim.runs.tabled import Change, TableRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.routing import RoutingTable
    from evenkeel.sim.ledger import Measured
    from evenkeel.sim.runs.base import Settings
    from evenkeel.sim.window import Window

__all__ = ["ControlledRun"]


class ControlledRun(TableRun):
    """A controller that is told of every window as of a batch, and decides.

    Channels report as those of the engine do: every slot, and of the keys with tuples each its costliest, besides those
    that the table lists; the lower hashes where keys cost as much. O(keys · log) per window.

    Parameters
    ----------
    name, settings, table, backup_cost
        As for every table's run.
    controller
        Who decides; changed by the run.
    ms_per_load
        How long one unit of load takes.
    heavy_keys
        How many keys each channel reports one by one.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        table: RoutingTable,
        controller: Controller,
        ms_per_load: float,
        backup_cost: float = 0.0,
        heavy_keys: int = 100,
    ) -> None:
        super().__init__(name, settings, table, backup_cost)
        self.controller, self._ms_per_load, self._heavy_keys = controller, ms_per_load, heavy_keys

    def decide(self, window: Window, measured: Measured, homes: NDArray[np.int32]) -> Change:
        """Report the window and ask."""
        table = self.table
        moving_ms = 1e3 * self._paused_s
        if self.settings.service is None:
            moving_ms = self._sent_bytes / self.controller.options.bytes_per_ms
        report = BatchReport(
            window.number,
            window.start + window.seconds,
            self._reports(measured, homes),
            self._sent_bytes,
            moving_ms,
        )
        self.controller.observe(report)
        verdict = self.controller.decide(table, now=report.time)
        decision = verdict.decision
        return Change(
            table if verdict.table is None else verdict.table,
            planned=decision.planner is not None,
            plan_ms=decision.plan_ms if decision.planner is not None else None,
            own_before=decision.before,
            own_after=decision.predicted,
            reason=" ".join(decision.reasons),
        )

    def _reports(self, measured: Measured, homes: NDArray[np.int32]) -> tuple[ChannelReport, ...]:
        """What each channel says: a split key's measures are shared evenly by its channels."""
        table = self.table
        rows, places = np.arange(len(homes)), homes
        parts = np.ones(len(homes), np.int64)
        if len(table.split_hashes):
            active = table.active_channels(measured.hashes)
            rows, places, parts = active.rows, active.channels, active.lengths[active.rows]
        order = np.argsort(places, kind="stable")
        rows, parts = rows[order], parts[order]
        edges = np.searchsorted(places[order], np.arange(table.channels + 1))
        hashes = measured.hashes[rows]
        columns = (measured.counts[rows] / parts, measured.costs[rows] / parts, measured.state_bytes[rows] // parts)
        listed = contains(union(table.pin_hashes, table.split_hashes), hashes)
        busy = np.flatnonzero(columns[0] > 0)
        bounds = np.searchsorted(busy, edges)
        slots = hashes % table.slots
        reports = []
        for channel in range(table.channels):
            mine = slice(edges[channel], edges[channel + 1])
            touched = busy[bounds[channel] : bounds[channel + 1]]
            of_keys = touched[listed[touched] | costliest(columns[1][touched], self._heavy_keys)]
            reports.append(
                ChannelReport(
                    channel,
                    float(columns[1][mine].sum()) * self._ms_per_load,
                    Tally(slots[mine], *(column[mine] for column in columns)),
                    Tally(hashes[of_keys], *(column[of_keys] for column in columns)),
                    int(edges[channel + 1] - edges[channel]),
                )
            )
        return tuple(reports)
