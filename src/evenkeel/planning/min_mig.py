"""MinMig: keep the routing table, and move what relieves most per byte of state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.planning.least_load_fit import LeastLoadPlanner, Start, check_at_least_zero, relieved

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MinMig", "moving_least_state"]


@dataclass(frozen=True, slots=True)
class MinMig(LeastLoadPlanner):
    """Take keys out of overloaded channels by cost^β / state, the largest first.

    They are placed costliest first, on the least-loaded channel. Everything else stays, pins included, so that little
    state moves; but the table grows with every plan. See :class:`~evenkeel.planning.mixed.Mixed` for the form with a
    bound.

    No channel ends above (1 + ``theta_max``) times the average, but for keys that no channel can take. O(n log n).

    Parameters
    ----------
    theta_max, alpha, move_slots
        See :class:`LeastLoadPlanner`.
    beta
        The weight of cost against state (β): the larger, the fewer and costlier the keys that move.
    exchange
        Whether a channel that a key would overload gives up lighter ones for it, as in
        :class:`~evenkeel.planning.ftlb.Ftlb`. Otherwise plain LLFD places the keys, and may overload a channel.

    Notes
    -----
    Ties of cost^β / state go to the costlier item, then to the lower index (slots, then keys by hash); of equally
    loaded channels the lowest is taken. Where the number of channels changes (the papers fix it), slots with their
    unpinned keys first go where a consistent hash sends them, and pins on vanished channels back to their slot.

    The later paper, where this planner is a baseline, has its keys placed by LLFD. Its Algorithm 2 leaves a channel
    overloaded for every hot key, however small ``theta_max``, while its Figure 8 reaches 0.02; hence ``exchange``.
    Without it, this is Algorithm 2.

    References
    ----------
    J. Fang et al., Parallel stream processing against workload skewness and variance, HPDC 2017 (MinMig); the index
    also in J. Fang et al., Integrating workload balancing and fault tolerance in distributed stream processing system,
    §4.2.2.
    """

    name = "min_mig"

    beta: float = 1.0
    exchange: bool = True

    def __post_init__(self) -> None:
        LeastLoadPlanner.__post_init__(self)
        check_at_least_zero(beta=self.beta)

    def rearrange(self, start: Start) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """Take, place."""
        homes = moving_least_state(start, self.beta, exchange=self.exchange)(start.homes)
        moved = int((homes != start.homes).sum())
        return homes, (f"{moved} keys and slots left overloaded channels, most cost per state first.",)


def moving_least_state(
    start: Start, beta: float, *, exchange: bool
) -> Callable[[NDArray[np.int32]], NDArray[np.int32]]:
    """Sort once, then balance any homes as MinMig does."""
    by_cost = start.by_cost()
    by_index = start.by_index(by_cost, beta)
    return lambda homes: relieved(start, homes, by_cost, by_index, exchange=exchange)
