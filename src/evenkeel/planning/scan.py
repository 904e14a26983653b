"""Scan: place the hot keys anew, in one pass, hottest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.planning.partial_hash import Construction, PartialHashPlanner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Scan"]


@dataclass(frozen=True, slots=True)
class Scan(PartialHashPlanner):
    """Place the hot keys one by one, hottest first, each on the channel where balance and migration cost least.

    A key is hot if it has at least δ of all tuples, where δ leaves the hash only a part σ of the tolerated imbalance.
    All other keys are where a consistent hash puts them. The hot keys are taken off their channels and dealt out
    again; staying costs no migration, so most of them stay where balance allows it.

    Parameters
    ----------
    profile, utility, untracked_share, count_untracked
        See :class:`~evenkeel.planning.partial_hash.PartialHashPlanner`.

    Notes
    -----
    *Guarantee.* With utility ``"A"``, and resource functions of one kind besides constant ones, a key that makes the
    fullest channel fuller goes to a least loaded one. So the fullest channel carries at most 2 − 1/N times the load of
    hot keys that it would carry in the best placement. Other utilities trade that for less migration, without a bound.

    *Cost.* O(R N) time for R hot keys, of which there are at most 1/δ; the paper has O(R N log N).

    *Ties.* The old channel first, then the least loaded one, then the lowest.

    *Deviations.* Constant resource functions are left out of the penalty (§4.4). A hot key whose place is also its
    slot's needs no entry in the table, so it does not count as formerly tracked when it cools down. A key below δ that
    is pinned returns to the hash, as in the paper. Where all channels are equally loaded, nothing moves.

    References
    ----------
    B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing, §4.2.2, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> window = LoadSnapshot.of_keys(np.array([0, 2, 4, 6]), [40, 30, 20, 10], slots=2)
    >>> plan = Scan().plan(window, RoutingTable.even(channels=2, slots=2))
    >>> plan.table.route(np.array([0, 2, 4, 6])).tolist()
    [0, 1, 1, 0]
    """

    name = "scan"

    def _build(self, task: Construction) -> tuple[NDArray[np.int32], str]:
        return task.place_anew(choose=False)
