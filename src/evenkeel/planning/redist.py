"""Redist: place the hot keys anew, each time the one that is best per tuple."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.planning.partial_hash import Construction, PartialHashPlanner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Redist"]


@dataclass(frozen=True, slots=True)
class Redist(PartialHashPlanner):
    """Place the hot keys anew; at each step all keys still to be placed, on all channels, are compared.

    As :class:`~evenkeel.planning.scan.Scan`, but the order is not fixed: the pair of key and channel with the lowest
    utility per tuple of the key is next. Hot keys still tend to come first; a cooler one may come before them where it
    fits much better.

    Parameters
    ----------
    profile, utility, untracked_share, count_untracked
        See :class:`~evenkeel.planning.partial_hash.PartialHashPlanner`.

    Notes
    -----
    *Guarantee.* As for scan: with utility ``"A"`` and one kind of resource function, at most 2 − 1/N times the load of
    hot keys on the fullest channel in the best placement.

    *Cost.* O(R²) time for R hot keys where all resource functions but constant ones are of one kind, since only the
    old and the least loaded channel can be best; at most O(R² N) else. The paper has O(R² N log N).

    *Ties.* The hotter key first, keys with as many tuples by ascending hash; for a key the old channel first, then the
    least loaded one, then the lowest.

    *Deviations.* The listing adds to the migration cost by the old location of the last key that it looked at; here it
    is that of the key placed. Constant resource functions are left out of the penalty (§4.4). A hot key whose place is
    also its slot's needs no entry in the table, so it does not count as formerly tracked when it cools down. Where all
    channels are equally loaded, nothing moves.

    References
    ----------
    B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing, §4.2.3, Algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> window = LoadSnapshot.of_keys(np.array([0, 2, 4, 6]), [40, 30, 20, 10], slots=2)
    >>> plan = Redist().plan(window, RoutingTable.even(channels=2, slots=2))
    >>> plan.table.route(np.array([0, 2, 4, 6])).tolist()
    [0, 1, 0, 1]

    The third step preferred 10 beside 30, which is even just then, to 20; scan ends with 50 to 50 here.
    """

    name = "redist"

    def _build(self, task: Construction) -> tuple[NDArray[np.int32], str]:
        return task.place_anew(choose=True)
