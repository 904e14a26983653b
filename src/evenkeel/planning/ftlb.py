"""FTLB: move keys to where their backups are, and exchange heavy keys for light ones where none has room."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.planning.least_load_fit import (
    LeastLoadPlanner,
    Start,
    backups_of,
    check_at_least_zero,
    relieved,
    within_table_limit,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Ftlb"]


@dataclass(frozen=True, slots=True)
class Ftlb(LeastLoadPlanner):
    r"""Fault tolerance and load balance: relieve overloaded channels, by switches of roles where there are replicas.

    First, overloaded channels give up keys by their migration priority index, the least first,

    .. math:: M(k) = \frac{S(k)}{c(k)^\beta} \cdot dn(k)^\gamma

    with state S, cost c and number of copies dn, until none is overloaded. Then the keys given up are placed, costliest
    first. If a channel that holds a backup of the key can take it without overload, the least loaded such one does: a
    switch of roles, which sends no state. Otherwise the least-loaded channel takes it and, if that overloads it, gives
    up keys that are lighter, again by M(k), until it is not; if it cannot, the next least-loaded channel is asked.

    No channel ends above (1 + ``theta_max``) times the average, but for keys that found no channel able to take them;
    the reasons tell. An active and a backup copy are never on one channel. O(n log n) for n items: a key pushes
    out only lighter ones, so each is placed at most once.

    Parameters
    ----------
    theta_max, alpha, move_slots
        See :class:`LeastLoadPlanner`.
    beta
        The weight of cost against state (β): the larger, the fewer and costlier the keys that move.
    gamma
        The weight of the number of copies (γ). Negative: replicated keys are given up first, which is where switches
        of roles come from. Positive: they are spared. 0: copies do not count.
    table_limit
        How many pins the table may have; ``None``: any number.

    Notes
    -----
    Ties: of equal M(k) the costlier, of equal cost the item with the lower index (slots, then keys by hash), of equally
    loaded channels the lowest. Without replicas this is Algorithm 3, but for what it leaves open:

    - dn is the number of copies, 1 + backups, so that a key without replicas has a factor of 1, not 0.
    - The paper gives no γ. Its M(k) puts replicated keys last for any γ > 0, while its evaluation (§5.2.2) praises the
      switches of roles; the default is -1.
    - Line 15 takes out as many lighter keys as needed, as the text says, not one.
    - A key that no channel can take goes where the least load would remain that it cannot push out, and all that is
      lighter there is placed anew.
    - ``table_limit`` is kept as :class:`~evenkeel.planning.mixed.Mixed` does; the paper asks for a bound but
      gives no means.
    - N may change (the paper fixes it): what is on a vanished channel goes to the first of its backups that is left;
      otherwise slots, with their unpinned keys, go where a consistent hash sends them, and pins back to their slot.
      Then loads are balanced.

    References
    ----------
    J. Fang et al., Integrating workload balancing and fault tolerance in distributed stream processing system, §4.2.2,
    Algorithm 3.
    """

    name = "ftlb"

    beta: float = 1.0
    gamma: float = -1.0
    table_limit: int | None = None

    uses_backups = True

    def __post_init__(self) -> None:
        LeastLoadPlanner.__post_init__(self)
        check_at_least_zero(beta=self.beta, table_limit=self.table_limit)
        if not math.isfinite(self.gamma):
            raise InvalidArgumentError(f"gamma must be finite; got {self.gamma}.")

    @property
    def pins_allowed(self) -> int | None:
        """The bound of the table."""
        return self.table_limit

    def rearrange(self, start: Start) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """Both phases, with as many pins undone before as the bound needs."""
        backups = backups_of(start.items)
        copies = np.power(1.0 + backups.lengths, self.gamma, dtype=np.float64) if len(backups.channels) else None
        by_cost = start.by_cost()
        by_index = start.by_index(by_cost, self.beta, copies)
        homes, reasons = within_table_limit(
            start,
            self.table_limit,
            lambda homes: relieved(start, homes, by_cost, by_index, exchange=True, backups=backups),
        )
        moved = np.flatnonzero(homes != start.items.homes)
        switched = int((backups.channels == homes[backups.rows]).sum())
        return homes, (f"{len(moved)} keys and slots get another channel, {switched} by a switch of roles.", *reasons)
