"""Flux: the fullest channel is paired with the emptiest, and each pair is evened out."""

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

__all__ = ["Flux"]


@dataclass(frozen=True, slots=True)
class Flux(Planner):
    """Sort the channels by load, pair the i-th fullest with the i-th emptiest, and even out each pair.

    Within a pair the items of the fuller channel move, the heaviest first, as long as they fit into half of what is
    still between the two. So each channel sends to, or receives from, one other, and little state moves.

    Guarantee: no pair is ever overshot: the giver stays at or above the taker, every pair ends no further apart than it
    began, and the variance never grows. One pass does not even out pairs that differ; the next window's goes on. Cost:
    O(n log n) for n items, to sort them.

    Ties: the lower channel and the lower item first. With an odd number of channels the middle one rests.

    Deviations: Flux keeps the number of channels. Here new channels are simply the emptiest, and the items of vanished
    ones first go, the heaviest first, to the then least loaded. Which partitions of a pair move is left open by the
    citing paper; it is the greedy choice here. Items without load never move.

    Parameters
    ----------
    threshold
        Relative standard deviation, in percent, up to which all stays as it is.
    keys
        ``"pinned"``: slots and pinned keys move, as Flux's partitions do. ``"tracked"``: each tracked key may move.

    References
    ----------
    M. A. Shah et al., Flux: An Adaptive Partitioning Operator for Continuous Query Systems, ICDE 2003, as described by
    Q. Guo and Y. Zhou, Stateful Load Balancing for Parallel Stream Processing, §1.1.

    Examples
    --------
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> snapshot = LoadSnapshot.of_keys(["a", "b", "c", "d"], [5, 4, 3, 2], slots=64)
    >>> table = RoutingTable(np.zeros(64, np.int32), channels=2)
    >>> snapshot.per_channel(Flux().plan(snapshot, table).table).tolist()
    [7.0, 7.0]
    """

    name = "flux"
    measure = "relative_std_percent"
    threshold: float = 0.0
    keys: Literal["tracked", "pinned"] = "pinned"

    def __post_init__(self) -> None:
        dealing.check_not_negative("threshold", self.threshold)
        dealing.check_keys(self.keys)

    def propose(self, problem: Problem) -> Proposal:
        """Even out each pair once."""
        items = Items.of(problem.latest, problem.table, self.keys)
        channels = problem.channels
        homes, forced = dealing.settle(items, channels)
        loads = items.channel_loads(homes, channels)
        reasons = [f"{forced} items were on channels that vanish."] if forced else []
        spread = metrics.relative_std_percent(loads)
        if spread <= self.threshold:
            reasons.append(f"The loads deviate by {spread:.1f} %, no more than the {self.threshold:g} % allowed.")
            return Proposal(items.table_with(homes, channels), tuple(reasons))
        fullest_first = np.argsort(-loads, kind="stable")
        givers, takers = fullest_first[: channels // 2], fullest_first[::-1][: channels // 2]
        partner = np.zeros(channels, np.int32)
        partner[givers] = takers
        room = np.zeros(channels)
        room[givers] = (loads[givers] - loads[takers]) / 2
        leaves = np.zeros(len(items), np.bool_)
        from evenkeel.planning import _kernels

        _kernels.shed(dealing.heaviest_first(items.loads), items.loads, homes, room, np.inf, True, leaves)
        homes[leaves] = partner[homes[leaves]]
        reasons.append(f"{int(leaves.sum())} items move within {len(givers)} pairs of a full and an empty channel.")
        return Proposal(items.table_with(homes, channels), tuple(reasons))

    def score(self, problem: Problem, table: RoutingTable) -> float:
        """Measure the relative standard deviation of the loads, in percent."""
        return metrics.relative_std_percent(problem.latest.per_channel(table))
