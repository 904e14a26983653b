"""Mixed: move little state, yet keep the routing table within a bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.planning.least_load_fit import LeastLoadPlanner, Start, check_at_least_zero, within_table_limit
from evenkeel.planning.min_mig import moving_least_state

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Mixed"]


@dataclass(frozen=True, slots=True)
class Mixed(LeastLoadPlanner):
    """MinMig after sending the n pinned keys with the least state back to their slots, n grown until the table fits.

    With n = 0 it is MinMig. With n = all pins it starts from a clear table, as MinTable does. Between them, pins that
    are cheap to undo make room for those that are needed now.

    The table has at most ``table_limit`` pins, unless no n was found that achieves it: then the shortest table found is
    taken, and the reasons say so. A table that is too long is reason enough to plan. Sorting takes O(n log n), each of
    the O(log pins) rounds O(n).

    Parameters
    ----------
    theta_max, alpha, move_slots
        See :class:`LeastLoadPlanner`.
    beta
        The weight of cost against state (β), as in :class:`~evenkeel.planning.min_mig.MinMig`.
    exchange
        As in :class:`~evenkeel.planning.min_mig.MinMig`.
    table_limit
        How many pins the table may have; ``None``: any number, and then this is MinMig.

    Notes
    -----
    n grows by as many pins as are too many, at least by an eighth; one by one, as "n grown" may be read, could stop at
    a smaller n, but takes as many rounds as there are pins. Ties: as in MinMig; of pins with equal state, the lower
    hash goes back first. Changes of the number of channels: as in MinMig.

    References
    ----------
    J. Fang et al., Parallel stream processing against workload skewness and variance, HPDC 2017 (Mixed); baseline in
    J. Fang et al., Integrating workload balancing and fault tolerance in distributed stream processing system, §5.1.2.
    """

    name = "mixed"

    beta: float = 1.0
    exchange: bool = True
    table_limit: int | None = None

    def __post_init__(self) -> None:
        LeastLoadPlanner.__post_init__(self)
        check_at_least_zero(beta=self.beta, table_limit=self.table_limit)

    @property
    def pins_allowed(self) -> int | None:
        """The bound of the table."""
        return self.table_limit

    def rearrange(self, start: Start) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """MinMig with as many pins undone as needed."""
        balance = moving_least_state(start, self.beta, exchange=self.exchange)
        homes, reasons = within_table_limit(start, self.table_limit, balance)
        moved = int((homes != start.homes).sum())
        return homes, (f"{moved} keys and slots get another channel, most cost per state first.", *reasons)
