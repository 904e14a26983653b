"""DLB: one key at a time goes from a full channel to the emptiest, until the loads are even enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from evenkeel import metrics
from evenkeel.planning import dealing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.planning.items import Items

__all__ = ["DlbH", "DlbL"]


@dataclass(frozen=True, slots=True)
class _Dlb(dealing.ThresholdPlanner):
    """Algorithm 1 of the paper; the two policies differ in the key that they take."""

    heaviest: ClassVar[bool]
    threshold: float = 15.0

    def rebalance(self, items: Items, homes: NDArray[np.int32], loads: NDArray[np.float64]) -> list[str]:
        """Move keys until the score is at most the threshold, or no move improves it."""
        from evenkeel.planning import _kernels

        before = metrics.relative_std_percent(loads)
        if self.heaviest:
            order = dealing.heaviest_first(items.loads)
        else:
            order = np.argsort(items.loads, kind="stable")[int(np.count_nonzero(items.loads <= 0)) :]
        by_rank = homes[order]
        moves = _kernels.even_out(items.loads[order], by_rank, loads, float(self.threshold), self.heaviest)
        homes[order] = by_rank
        after = metrics.relative_std_percent(np.maximum(loads, 0.0))
        reasons = [f"{moves} steps bring the deviation of the loads from {before:.1f} % to {after:.1f} %."]
        if after > self.threshold:
            reasons.append(f"The {self.threshold:g} % asked for are out of reach: no single key improves them further.")
        return reasons


@dataclass(frozen=True, slots=True)
class DlbH(_Dlb):
    """Take the heaviest key of the fullest channel that still improves the balance, to the emptiest; again and again.

    If no key of the fullest channel helps, the next fullest is asked, down to the emptiest. Few, heavy keys move: right
    where the state of a key does not grow with its load, as with windows by count.

    Guarantee: every step lowers the relative standard deviation, so it ends and never makes things worse. Moving load y
    from a to b lowers it just if 0 < y < L_a - L_b. No bound on the result: one key over the average stays one. Cost:
    O(n log n) once for n items, then O(N + √n) per step at most; half a second for a million keys.

    Ties: among keys of equal load the lower item (slots, then keys by hash), among channels the lower.

    Deviations: the temporary loads start afresh for each channel that is tried (in the listing, what a failed attempt
    took away stays away). The key is the heaviest *that improves the score*, as the text says. Keys without load are
    not worth a move and stay. The paper keeps the number of channels; here the items of vanished channels first go,
    the heaviest first, to the then least loaded.

    Parameters
    ----------
    threshold
        The score θ, in percent, up to which all is well.
    keys
        ``"tracked"``: each tracked key may get a place of its own. ``"pinned"``: only slots and pinned keys move.

    References
    ----------
    N. Zacheilas et al., Dynamic Load Balancing Techniques for Distributed Complex Event Processing Systems, §3.2,
    Algorithm 1 (DLB-H).

    Examples
    --------
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> snapshot = LoadSnapshot.of_keys(["a", "b", "c", "d"], [5, 4, 3, 2], slots=64)
    >>> plan = DlbH().plan(snapshot, RoutingTable(np.zeros(64, np.int32), channels=2))
    >>> len(plan.moves), snapshot.per_channel(plan.table).tolist()
    (2, [6.0, 8.0])
    """

    name = "dlb_h"
    heaviest = True


@dataclass(frozen=True, slots=True)
class DlbL(_Dlb):
    """Take the lightest key of the fullest channel to the emptiest, as long as that improves the balance.

    If that does not help, the next fullest channel is asked, down to the emptiest. Many, light keys move: fine where
    the state of a key grows with its load, as with windows by time, and for a finer balance.

    Guarantee: every step lowers the relative standard deviation, so it ends and never makes things worse. Cost: O(n log
    n) once for n items, then O(N + √n) per step at most. A key may take several steps; only where it ends counts.

    Ties: among keys of equal load the lower item (slots, then keys by hash), among channels the lower.

    Deviations: the temporary loads start afresh for each channel that is tried (in the listing, what a failed attempt
    took away stays away). Keys without load would be the lightest, and moving them never helps: they stay. The paper
    keeps the number of channels; here the items of vanished channels first go, the heaviest first, to the then least
    loaded.

    Parameters
    ----------
    threshold
        The score θ, in percent, up to which all is well.
    keys
        ``"tracked"``: each tracked key may get a place of its own. ``"pinned"``: only slots and pinned keys move.

    References
    ----------
    N. Zacheilas et al., Dynamic Load Balancing Techniques for Distributed Complex Event Processing Systems, §3.2,
    Algorithm 1 (DLB-L).

    Examples
    --------
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> snapshot = LoadSnapshot.of_keys(["a", "b", "c", "d"], [5, 4, 3, 2], slots=64)
    >>> plan = DlbL().plan(snapshot, RoutingTable(np.zeros(64, np.int32), channels=2))
    >>> len(plan.moves), snapshot.per_channel(plan.table).tolist()
    (2, [9.0, 5.0])
    """

    name = "dlb_l"
    heaviest = False
