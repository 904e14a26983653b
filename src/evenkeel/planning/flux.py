"""Flux: the fullest channel is paired with the emptiest, and each pair is evened out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from evenkeel.planning import dealing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.planning.items import Items

__all__ = ["Flux"]


@dataclass(frozen=True, slots=True)
class Flux(dealing.ThresholdPlanner):
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
    keys: Literal["tracked", "pinned"] = "pinned"

    def rebalance(self, items: Items, homes: NDArray[np.int32], loads: NDArray[np.float64]) -> list[str]:
        """Even out each pair once."""
        from evenkeel.planning import _kernels

        pairs = len(loads) // 2
        fullest_first = np.argsort(-loads, kind="stable")
        givers, takers = fullest_first[:pairs], fullest_first[::-1][:pairs]
        partner = np.zeros(len(loads), np.int32)
        partner[givers] = takers
        room = np.zeros(len(loads))
        room[givers] = (loads[givers] - loads[takers]) / 2
        leaves = np.zeros(len(items), np.bool_)
        _kernels.shed(dealing.heaviest_first(items.loads), items.loads, homes, room, np.inf, True, leaves)
        homes[leaves] = partner[homes[leaves]]
        return [f"{int(leaves.sum())} items move within {pairs} pairs of a full and an empty channel."]
