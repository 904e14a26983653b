"""LPTF: longest processing time first, over everything, as if nothing were placed yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from evenkeel import metrics
from evenkeel.planning import dealing
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items

if TYPE_CHECKING:
    from evenkeel.routing import RoutingTable

__all__ = ["Lptf"]


@dataclass(frozen=True, slots=True)
class Lptf(Planner):
    """Deal everything out again: the heaviest first, each to the channel that is then least loaded.

    Also known as the off-line greedy: what one would do who knew all loads beforehand and had no state to move. It is
    the yardstick for balance, and the example of a plan that is too dear: all but about 1/N of the state moves.

    Guarantee: the fullest channel has at most 4/3 - 1/(3N) times the least load that is possible for it (Graham 1969).
    Ties: the lower item first, the lower channel first; so equal problems have equal plans. Cost: O(n log n) time to
    sort n items and O(n log N) to deal; a quarter of a second for a million keys.

    Deviations: on top of the load of split keys, which stay. Items without load stay where they are while their channel
    exists; those of vanished channels are dealt out in turn. Nothing happens up to ``threshold``.

    Parameters
    ----------
    threshold
        Relative standard deviation, in percent, up to which all stays as it is.
    keys
        ``"tracked"``: each tracked key may have a place of its own. ``"pinned"``: only slots and pinned keys move.

    References
    ----------
    N. Zacheilas et al., Dynamic Load Balancing Techniques for Distributed Complex Event Processing Systems, §4 and §5
    (LPTF); R. L. Graham, Bounds on Multiprocessing Timing Anomalies, 1969.

    Examples
    --------
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> snapshot = LoadSnapshot.of_keys(["a", "b", "c", "d"], [5, 4, 3, 2], slots=64)
    >>> plan = Lptf().plan(snapshot, RoutingTable.even(2, slots=64))
    >>> snapshot.per_channel(plan.table).tolist()
    [7.0, 7.0]
    """

    name = "lptf"
    measure = "relative_std_percent"
    threshold: float = 0.0
    keys: Literal["tracked", "pinned"] = "tracked"

    def __post_init__(self) -> None:
        dealing.check_not_negative("threshold", self.threshold)
        dealing.check_keys(self.keys)

    def propose(self, problem: Problem) -> Proposal:
        """Deal all items that have a load."""
        items = Items.of(problem.latest, problem.table, self.keys)
        channels = problem.channels
        homeless = items.homes >= channels
        if not homeless.any():
            spread = metrics.relative_std_percent(items.channel_loads(items.homes, channels))
            if spread <= self.threshold:
                return Proposal(
                    items.table_with(items.homes, channels),
                    (f"The loads deviate by {spread:.1f} %, no more than the {self.threshold:g} % allowed.",),
                )
        homes = items.homes.astype(np.int32)
        order = dealing.heaviest_first(items.loads)
        dealing.deal(order, items.loads, items.fixed_for(channels), homes)
        dealing.deal_in_turn(items, homeless, homes, channels)
        moved = int((homes != items.homes).sum())
        return Proposal(
            items.table_with(homes, channels),
            (f"{len(order)} items were dealt out again, the heaviest first; {moved} of them move.",),
        )

    def score(self, problem: Problem, table: RoutingTable) -> float:
        """Measure the relative standard deviation of the loads, in percent."""
        return metrics.relative_std_percent(problem.latest.per_channel(table))
