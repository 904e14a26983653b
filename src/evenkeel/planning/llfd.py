"""LLFD: deal out everything anew, the costliest first, to the least-loaded channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.planning.least_load_fit import LeastLoadPlanner, Start

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Llfd"]


@dataclass(frozen=True, slots=True)
class Llfd(LeastLoadPlanner):
    r"""Least-load fit decreasing: every item, costliest first, goes to the channel with the least load so far.

    The best balance of its family, at the price of a table with a pin for almost every tracked key and of moving almost
    all state. Use it as a yardstick, or where state is small.

    If some placement is perfectly balanced, no channel is further from the average than
    :math:`\theta \le \frac{1}{3}(1 - \frac{1}{N})` (Theorem 1). That holds on both sides: above, it is Graham's bound
    for longest-processing-time-first, and tight; below, the same rule is never under :math:`\frac{3N-1}{4N-2}` of the
    best possible minimum, so that :math:`\theta \le \frac{N-1}{4N-2}` there, which is less. It takes for granted that
    all load is dealt out: no split keys, ``move_slots``, and a ``theta_max`` of 0, as otherwise a table within
    ``theta_max`` is left alone.

    O(n log n) for n items, once sorted O(n log N).

    Parameters
    ----------
    theta_max, alpha, move_slots
        See :class:`LeastLoadPlanner`.

    Notes
    -----
    Ties: of equally costly items the one with the lower index first (slots, then keys by hash); of equally loaded
    channels the lowest. The paper's listing adds the key's cost to the channel only where the channel is not the key's
    hash (line 7); here always, as its text says. Items without load stay where they are, if that channel exists. Where
    the number of channels changes (the paper fixes it), only items without load are affected: they follow the
    consistent hash.

    References
    ----------
    J. Fang et al., Integrating workload balancing and fault tolerance in distributed stream processing system, §4.2.1,
    Algorithm 2 and Theorem 1; J. Csirik et al., The exact LPT-bound for maximizing the minimum completion time, 1992.

    Examples
    --------
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> snapshot = LoadSnapshot.of_keys(["a", "b", "c", "d"], [6, 5, 4, 3], slots=8)
    >>> plan = Llfd().plan(snapshot, RoutingTable.even(2, slots=8))
    >>> snapshot.per_channel(plan.table).tolist()
    [9.0, 9.0]
    """

    name = "llfd"

    def rearrange(self, start: Start) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """Deal out all that is movable."""
        from evenkeel.planning import _kernels_llfd as kernels

        homes, loads, by_cost = start.homes.copy(), start.unmovable_loads(), start.by_cost()
        kernels.place_on_least_loaded(by_cost, start.items.loads, start.movable, homes, loads)
        return homes, (f"All {len(by_cost)} keys and slots with load were dealt out anew.",)
