"""Routing tables on their way through a stream, and what changes them: planners and controllers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.planning.plan import state_of_moves
from evenkeel.routing.ragged import contains
from evenkeel.sim.runs.base import Run, Settings, Shared, Sight

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.routing import RoutingTable
    from evenkeel.sim.ledger import Measured
    from evenkeel.sim.window import Window

__all__ = ["Change", "TableRun"]


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What was decided at the end of a window.

    Parameters
    ----------
    table
        The table for the next window; the one in force where nothing changes.
    planned
        Whether a planner was asked.
    plan_ms, own_before, own_after, reason
        What it said.
    """

    table: RoutingTable
    planned: bool = False
    plan_ms: float | None = None
    own_before: float | None = None
    own_after: float | None = None
    reason: str | None = None


class TableRun(Run):
    """A table that routes each key of a window, and may be another one for the next window."""

    needs_tuples = False

    def __init__(self, name: str, settings: Settings, table: RoutingTable, backup_cost: float = 0.0) -> None:
        super().__init__(name, settings)
        self.table = table
        self._backup_cost = backup_cost
        self._sent_bytes = 0
        self._turns = np.zeros(len(table.split_hashes), np.int64)

    @abstractmethod
    def decide(self, window: Window, measured: Measured, homes: NDArray[np.int32]) -> Change:
        """Decide what is in force in the next window."""

    def close(self, window: Window, shared: Shared | None) -> dict[str, Any]:
        """Route every key of the window, decide, and give the row."""
        assert shared is not None
        measured, table = shared.measured, self.table
        homes = table.home(measured.hashes)
        loads = self._channel_loads(measured, homes)
        row = self._row(window, shared.histogram.tuples, Sight(loads, measured, homes, table))
        row |= {
            "keys": len(shared.histogram),
            "state_bytes": int(measured.state_bytes.sum()),
            "pins": len(table.pin_hashes),
            "table_bytes": table.size_bytes,
        }
        if len(table.split_hashes) == 0:
            row |= {"pairs": len(shared.seen), "messages": 0}
        return row | self._change(self.decide(window, measured, homes), measured, homes)

    def _change(self, change: Change, measured: Measured, homes: NDArray[np.int32]) -> dict[str, Any]:
        """Put the next table in force, and tell what that sends."""
        old, new = self.table, change.table
        moves, switches, moved_bytes, moved_keys = 0, 0, 0, 0
        if new is not old:
            difference = old.diff(new)
            moves = int(difference.sends_state.sum())
            switches = len(difference) - moves
            moved_bytes = int(state_of_moves(difference, measured.snapshot(old, 0, new), old, new).sum())
            moved_keys = int((new.home(measured.hashes) != homes).sum())
            kept = np.searchsorted(old.split_hashes, new.split_hashes)
            self._turns = self._turns[kept]
            self.table = new
        self._sent_bytes = moved_bytes
        self._hold_up(moves, moved_bytes)
        return {
            "planned": change.planned,
            "plan_ms": change.plan_ms,
            "own_before": change.own_before,
            "own_after": change.own_after,
            "reason": change.reason,
            "moves": moves,
            "switches": switches,
            "moved_keys": moved_keys,
            "moved_bytes": moved_bytes,
        }

    def _channel_loads(self, measured: Measured, homes: NDArray[np.int32]) -> NDArray[np.float64]:
        table, costs = self.table, measured.costs
        split = np.flatnonzero(contains(table.split_hashes, measured.hashes))
        if len(split):
            costs = costs.copy()
            costs[split] = 0.0
        loads = np.bincount(homes, weights=costs, minlength=table.channels).astype(np.float64)
        if len(split):
            loads += self._split_loads(measured, split)
        if self._backup_cost:
            backups = table.backups(measured.hashes)
            shares = self._backup_cost * np.repeat(measured.costs, backups.lengths)
            loads += np.bincount(backups.channels, weights=shares, minlength=table.channels)
        return loads

    def _split_loads(self, measured: Measured, split: NDArray[np.int64]) -> NDArray[np.float64]:
        """The tuples of a split key take its channels in turn, and go on from window to window."""
        table = self.table
        which = np.searchsorted(table.split_hashes, measured.hashes[split])
        places = table.split_channels.take(which)
        widths = places.lengths
        counts = measured.counts[split]
        within = np.arange(len(places.channels)) - np.repeat(places.offsets[:-1], widths)
        wide, tuples, turns = (np.repeat(column, widths) for column in (widths, counts, self._turns[which]))
        mine = tuples // wide + ((within - turns) % wide < tuples % wide)
        self._turns[which] += counts
        costs = np.repeat(measured.costs[split], widths) * mine / np.maximum(tuples, 1)
        return np.bincount(places.channels, weights=costs, minlength=table.channels).astype(np.float64)
