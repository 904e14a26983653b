"""MinTable: clear the routing table, then pin as few keys as will do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.planning.least_load_fit import LeastLoadPlanner, Start, relieved

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MinTable"]


@dataclass(frozen=True, slots=True)
class MinTable(LeastLoadPlanner):
    """Send every pinned key back to its slot, then take the costliest keys out of overloaded channels.

    Costly keys go first because few of them lighten a channel, and each needs a pin. They are placed costliest first,
    on the least-loaded channel. The table stays short; state moves without restraint, as all old pins are undone each
    time.

    No channel ends above (1 + ``theta_max``) times the average, but for keys that no channel can take. O(n log n).

    Parameters
    ----------
    theta_max, alpha, move_slots
        See :class:`LeastLoadPlanner`.
    exchange
        Whether a channel that a key would overload gives up lighter ones for it, as in
        :class:`~evenkeel.planning.ftlb.Ftlb`. Otherwise plain LLFD places the keys, and may overload a channel.

    Notes
    -----
    Ties: of equally costly items the lower index (slots, then keys by hash); of equally loaded channels the lowest.
    Pins of keys that were not seen in the window are undone, too. Where the number of channels changes (the papers fix
    it), the hash that keys go back to is the slots as a consistent hash resizes them.

    The later paper, where this planner is a baseline, has its keys placed by LLFD. Its Algorithm 2 leaves a channel
    overloaded for every hot key, however small ``theta_max``, while its Figure 8 reaches 0.02; hence ``exchange``.
    Without it, this is Algorithm 2.

    References
    ----------
    J. Fang et al., Parallel stream processing against workload skewness and variance, HPDC 2017 (MinTable); baseline
    in J. Fang et al., Integrating workload balancing and fault tolerance in distributed stream processing system,
    §5.1.2.
    """

    name = "min_table"

    exchange: bool = True

    def rearrange(self, start: Start) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """Clear, take, place."""
        by_cost, cleared = start.by_cost(), start.back_on_slots(start.homes)
        homes = relieved(start, cleared, by_cost, by_cost, exchange=self.exchange)
        return homes, (
            f"{len(start.apart(start.homes))} pins were cleared.",
            f"{int((homes != cleared).sum())} keys and slots left overloaded channels, costliest first.",
        )
