"""UHLB: a fresh universal hash of the slots in every window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel import metrics
from evenkeel.errors import InvalidArgumentError
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items
from evenkeel.routing.routers.universal_hash import universal_hash

if TYPE_CHECKING:
    from evenkeel.routing import RoutingTable

__all__ = ["Uhlb"]


@dataclass(frozen=True, slots=True)
class Uhlb(Planner):
    """Hash the slots to the channels anew, by a function drawn at random from a 2-universal family.

    The seed and the table's epoch decide the draw: each table that takes effect leads to another one, and the same
    problem always to the same. Loads are not looked at, so that a bad draw does not last, nor does a good one; only
    where all channels are exactly even, the table stays.

    Guarantee: two slots share a channel with a chance of at most 1/N; so the loads are even in expectation, as far as
    slots are alike. A hot slot stays hot wherever it goes. Cost: O(slots); about (N - 1)/N of all state moves.

    Deviation: pins are given up. The paper hashes substreams and knows no keys with a place of their own; a pinned key
    goes back to its slot.

    Parameters
    ----------
    seed
        Which sequence of draws.

    References
    ----------
    Q. Guo and Y. Zhou, Stateful Load Balancing for Parallel Stream Processing, §5 (UHLB).

    Examples
    --------
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> snapshot = LoadSnapshot.of_keys(["a", "b", "c"], [5, 3, 1], slots=64)
    >>> plan = Uhlb(seed=1).plan(snapshot, RoutingTable.even(4, slots=64))
    >>> sorted(set(plan.table.slot_channels.tolist()))
    [0, 1, 2, 3]
    """

    name = "uhlb"
    measure = "load_variance"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InvalidArgumentError(f"seed must not be negative; got {self.seed}.", seed=self.seed)

    def propose(self, problem: Problem) -> Proposal:
        """Draw the next function and hash every slot by it."""
        items = Items.of(problem.latest, problem.table, "pinned")
        if not problem.resizes and np.ptp(problem.latest.per_channel(problem.table)) == 0:
            return Proposal(problem.table, ("The channels are exactly even; no draw could do better.",))
        draw = self.seed + problem.table.epoch
        slots = universal_hash(np.arange(items.slots), problem.channels, draw)
        homes = slots[items.slot_of]
        moved = int((homes != items.homes).sum())
        return Proposal(
            items.table_with(homes, problem.channels),
            (f"Draw {draw} puts {moved} of {len(items)} slots and pins elsewhere.",),
        )

    def score(self, problem: Problem, table: RoutingTable) -> float:
        """Measure the variance of the channels' loads."""
        return metrics.load_variance(problem.latest.per_channel(table))
