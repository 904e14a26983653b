"""LPTF: longest processing time first, over everything, as if nothing were placed yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.planning import dealing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evenkeel.planning.items import Items

__all__ = ["Lptf"]


@dataclass(frozen=True, slots=True)
class Lptf(dealing.ThresholdPlanner):
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

    def rebalance(self, items: Items, homes: NDArray[np.int32], loads: NDArray[np.float64]) -> list[str]:
        """Deal all items that have a load."""
        order = dealing.heaviest_first(items.loads)
        dealing.deal(order, items.loads, items.fixed_for(len(loads)), homes)
        moved = int((homes != items.homes).sum())
        return [f"{len(order)} items were dealt out again, the heaviest first; {moved} of them move."]
