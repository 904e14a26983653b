"""The planner that leaves everything where it is: a real baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items, resized_slots

__all__ = ["StayPut"]


@dataclass(frozen=True, slots=True)
class StayPut(Planner):
    """Move nothing, but for what a change in the number of channels forces.

    New channels stay empty. The slots of vanished channels go where a consistent-hash ring puts them, and keys pinned
    there go back to their slots.
    """

    name = "stay_put"

    def propose(self, problem: Problem) -> Proposal:
        """Give the table in force, or the nearest one for fewer channels."""
        items = Items.of(problem.latest, problem.table, "pinned")
        ring = resized_slots(problem.table, problem.channels)
        homes = np.where(items.homes < problem.channels, items.homes, ring[items.slot_of])
        forced = int((items.homes >= problem.channels).sum())
        why = f"{forced} slots and pins were on channels that vanish." if forced else "Nothing moves, by design."
        return Proposal(items.table_with(homes, problem.channels), (why,))
