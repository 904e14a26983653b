"""How much state a change of routing moves, and how much two routings have in common.

State may be measured in bytes, tuples or, with 1 for each, in keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from evenkeel.metrics._checks import as_amounts, as_integers, check_count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

UNPLACED: Final = -1
"""The channel of a key that a plan in the making has not placed yet; it counts as not moved."""


def moved_state(states: ArrayLike, old_channels: ArrayLike, new_channels: ArrayLike) -> float:
    r"""Add up the state of the items (keys or slots) that change their channel.

    .. math:: \psi(F_1, F_2) = \sum_{i=1}^p x_i d_i, \quad x_i = \mathbf{1}(F_1(s_i) \ne F_2(s_i))

    Parameters
    ----------
    states
        The state of each item, d; what Gedik writes :math:`\beta_s(f(d))` and FTLB :math:`S_i(k, w)`.
    old_channels, new_channels
        The channel of each item before and after. `UNPLACED` as a new channel means: not decided yet.

    References
    ----------
    Guo and Zhou, "Stateful Load Balancing for Parallel Stream Processing", §2.2, Equation 2; Fang et al.,
    "Integrating workload balancing and fault tolerance in distributed stream processing system", §2,
    Equation 5; Gedik, "Partitioning functions for stateful data parallelism in stream processing", §3.3,
    Equation 9.

    Examples
    --------
    >>> moved_state([5, 3, 2], old_channels=[0, 0, 1], new_channels=[0, 2, 0])
    5.0
    """
    amounts = as_amounts("states", states)
    old = as_integers("old_channels", old_channels, length=len(amounts))
    new = as_integers("new_channels", new_channels, length=len(amounts), lowest=UNPLACED)
    return float(amounts[(old != new) & (new != UNPLACED)].sum())


def moved_state_percent(states: ArrayLike, old_channels: ArrayLike, new_channels: ArrayLike) -> float:
    """Tell the moved state as a percentage of all state; 0 where there is none.

    References
    ----------
    Guo and Zhou, §5.1, Figure 4; Fang et al., §5, "Migration Cost".

    Examples
    --------
    >>> moved_state_percent([5, 3, 2], old_channels=[0, 0, 1], new_channels=[0, 2, 0])
    50.0
    """
    moved = moved_state(states, old_channels, new_channels)
    return 100 * (moved / float(np.sum(states))) if moved else 0.0


def amortised_movement(moved_per_migration: ArrayLike, *, n_windows: int) -> float:
    """Spread what all migrations moved, absolute or in percent, over the windows of the whole run.

    It makes a planner that moves much but rarely comparable to one that moves a little in every window.

    Parameters
    ----------
    moved_per_migration
        What each migration moved. More than one in a window is allowed.
    n_windows
        The number of statistics windows, with or without a migration.

    References
    ----------
    Guo and Zhou, §5.1: 48.4 % per migration are 1.6 % amortised.

    Examples
    --------
    >>> amortised_movement([60.0, 40.0], n_windows=50)
    2.0
    """
    check_count("n_windows", n_windows)
    return float(as_amounts("moved_per_migration", moved_per_migration).sum() / n_windows)


def relative_migration(states: ArrayLike, old_channels: ArrayLike, new_channels: ArrayLike, n_channels: int) -> float:
    r"""Compare the moved state with one channel's fair share, which is what a new channel needs at least.

    .. math:: m = M(p^{(t)}, p^{(t+1)}) / \bar{L}_s, \quad \bar{L}_s = \sum_d \beta_s(f(d)) / N

    1 means as much as consistent hashing moves for one more channel, without skew; from 0 to N, and 0 where
    there is no state. It is also the *migration penalty* of a plan in the making, if the items are the keys
    tracked before or after the change: those no longer tracked are where the hash puts them, and those not
    placed yet are `UNPLACED`.

    .. math::

        \gamma = \frac{\sum_{d \in D_o} \beta_s(f(d)) \mathbf{1}(p^{(t)}(d) \ne H_c^{(t+1)}(d))
                     + \sum_{d \in H_p} \beta_s(f(d)) \mathbf{1}(p^{(t)}(d) \ne H_p^{(t+1)}(d))}
                      {\sum_{d \in D_a} \beta_s(f(d)) / N^{(t+1)}}

    Parameters
    ----------
    states, old_channels, new_channels
        As for `moved_state`.
    n_channels
        The number of channels after the change, :math:`N^{(t+1)}`. To judge the removal of a channel, whose
        fair share is what must move, pass the number before it.

    References
    ----------
    Gedik, §3.4, Equations 10 and 12; §4.2.1, Equation 18.

    Examples
    --------
    >>> relative_migration([5, 3, 2], old_channels=[0, 0, 1], new_channels=[0, 2, 0], n_channels=3)
    1.5
    >>> relative_migration([5, 3, 2], old_channels=[0, 0, 1], new_channels=[0, 2, UNPLACED], n_channels=3)
    0.9
    """
    check_count("n_channels", n_channels)
    moved = moved_state(states, old_channels, new_channels)
    return n_channels * moved / float(np.sum(states)) if moved else 0.0


def routing_agreement(first_channels: ArrayLike, second_channels: ArrayLike) -> float:
    r"""Compute the Jaccard overlap of two routings of the same tuples.

    .. math:: J = \frac{|A \cap B|}{|A \cup B|} = \frac{k}{2n - k}

    where A and B are the sets of pairs (tuple, channel) of the two routings, and k of the n tuples go to the
    same channel in both. The paper reports the overlap without an equation; this is the usual one. The plain
    share of tuples with equal channels is :math:`k / n = 2J / (1 + J)`, so 47 % overlap means that 64 % of
    the tuples went the same way. Routings of no tuples agree completely: 1.

    References
    ----------
    Nasir et al., "The Power of Both Choices: Practical Load Balancing for Distributed Stream Processing
    Engines" (PKG), §V, on global and local load estimation.

    Examples
    --------
    >>> routing_agreement([0, 1, 2], [0, 1, 0])
    0.5
    """
    first = as_integers("first_channels", first_channels)
    second = as_integers("second_channels", second_channels, length=len(first))
    if len(first) == 0:
        return 1.0
    equal = int((first == second).sum())
    return equal / (2 * len(first) - equal)
