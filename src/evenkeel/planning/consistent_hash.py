"""Consistent hashing as a planner: it moves only when the number of channels changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items, resized_slots

__all__ = ["ConsistentHash"]


@dataclass(frozen=True, slots=True)
class ConsistentHash(Planner):
    """Follow a consistent-hash ring: new channels take about 1/N of the slots each, loads are not looked at.

    Start from ``RoutingTable.from_ring`` for the pure form. Pins stay while their channel exists.

    References
    ----------
    B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing, §4.1.1 and §5.
    """

    name = "consistent_hash"

    def propose(self, problem: Problem) -> Proposal:
        """Give the ring's table for the new number of channels."""
        items = Items.of(problem.latest, problem.table, "pinned")
        slots = resized_slots(problem.table, problem.channels)
        homes = np.where(items.homes < problem.channels, items.homes, slots[items.slot_of])
        homes[: items.slots] = slots
        moved = int((homes != items.homes).sum())
        why = (
            f"{problem.table.channels} → {problem.channels} channels: the ring moves {moved} slots and pins."
            if problem.resizes
            else "The number of channels is as it was."
        )
        return Proposal(items.table_with(homes, problem.channels), (why,))
