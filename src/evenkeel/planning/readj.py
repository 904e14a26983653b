"""Readj: move and swap hot keys, one readjustment at a time, as long as balance improves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.planning.partial_hash import Construction, PartialHashPlanner

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Readj"]


@dataclass(frozen=True, slots=True)
class Readj(PartialHashPlanner):
    """Start from where the hot keys are; move one or swap two, whatever gains most, until nothing improves balance.

    Of all readjustments that lower the balance penalty ρ, the one with the greatest fall in utility per tuple moved is
    applied, even if it raises the utility: balance decides whether, the utility decides which. Hot keys on channels
    that vanish start where the consistent hash puts them.

    Parameters
    ----------
    profile, utility, untracked_share, count_untracked
        See :class:`~evenkeel.planning.partial_hash.PartialHashPlanner`.
    max_moves_per_key
        How often one key may be readjusted (c, 5 in the paper).

    Notes
    -----
    *Guarantee.* ρ of the hot keys falls strictly with each readjustment, so it never ends above that of staying, and
    the search ends: at latest after c R readjustments. At the end no single move or swap would lower ρ, unless of a key
    that reached its limit (the reasons say so).

    *Cost.* O(R²) per readjustment in the worst case, so O(c R³) for R hot keys. In practice far less: only pairs of
    channels that include a fullest or an emptiest one can lower ρ, and among two channels' keys, in order of frequency,
    the partners for a swap that can are one run.

    *Ties.* Between equal gains: the hotter key, keys with as many tuples by ascending hash; then a move before a swap;
    the least loaded target, then the lowest; the hotter partner. A swap of keys with equal frequency changes no load:
    it never lowers ρ, so nobody asks for its gain per tuple moved.

    *Deviations.* The listing compares with a utility that starts at 0 and that every better candidate overwrites while
    the search still runs; gains are meant to be, and are here, against the utility of the current state. The listing
    assumes N to grow; here it may shrink, and keys that must leave a vanished channel count as moved from the start.
    Constant resource functions are left out of the penalty (§4.4). The text ends the search where no readjustment
    "improves the utility", the listing where none lowers ρ; the listing is followed, as the text also says that the
    utility is only used "for picking the best among those". A hot key whose place is also its slot's needs no entry in
    the table, so it does not count as formerly tracked when it cools down. Where all channels are equally loaded,
    nothing moves.

    References
    ----------
    B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing, §4.2.4, Algorithm 4.

    Examples
    --------
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> window = LoadSnapshot.of_keys(np.array([0, 2, 4, 1]), [40, 30, 10, 20], slots=2)
    >>> plan = Readj().plan(window, RoutingTable.even(channels=2, slots=2))
    >>> plan.table.route(np.array([0, 2, 4, 1])).tolist()
    [0, 1, 0, 1]
    """

    name = "readj"

    max_moves_per_key: int = 5

    def __post_init__(self) -> None:
        PartialHashPlanner.__post_init__(self)
        if self.max_moves_per_key < 1:
            raise InvalidArgumentError(f"max_moves_per_key must be at least 1, got {self.max_moves_per_key}.")

    def _build(self, task: Construction) -> tuple[NDArray[np.int32], str]:
        from evenkeel.planning import _kernels_readj

        forced = task.old >= task.channels
        places = np.where(forced, task.hashed, task.old).astype(np.int32)
        start = replace(task, moved=task.moved + float(task.states[forced].sum()))
        before = task.balance(places)
        moves, swaps, limited = _kernels_readj.readjust(*start.arguments, self.max_moves_per_key, places)
        end = "no other one that was allowed" if limited else "no other one"
        return places, (
            f"{moves} moves and {swaps} swaps lowered the balance penalty from {before:.3g}; {end} lowers it further: "
            f"{task.penalties(places)}."
        )
