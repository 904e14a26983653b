"""CLB: substreams that rise and fall together are kept apart, for many windows to come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel import metrics
from evenkeel.errors import InvalidArgumentError
from evenkeel.planning import dealing
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.routing import RoutingTable

__all__ = ["Clb"]

NOISE = 1e-9  # deviations and correlations below this are rounding
PASSES = 20
MOST_PAIRED = 16_384  # substreams; their covariances take 2 GB


@dataclass(frozen=True, slots=True)
class Clb(Planner):
    """Split the substreams into N sets so that those with strongly correlated loads are in different ones.

    Each substream has a series of loads, one per window. At first all are in one set. In every run the substream with
    the largest weight ω (the sum of its strong covariances within its set) is chosen, and its set is split: those with
    a strong covariance to it leave together, the weakly and the negatively correlated stay. After N - 1 runs there are
    N sets. Meant to be called once in many windows, so that the cost of moving state is spread over them.

    Guarantee: every run parts at least one strongly correlated pair, so that it ends with at most N sets. What the sets
    minimise, greedily, is Σ_i var(N_i): how much each channel's load varies over time. It stands for the overall
    imbalance Σ_j var(L_j) over the windows only while all channels have the same mean load: the published form does not
    see unequal means, and may make them worse. ``balance_means`` sees them. Both sums are told in the reasons. Where
    the form's own sum would not fall, all stays as it is. That happens to the published form where loads move in a few
    clear waves: all of a wave leave together, run after run, all but the chosen one, and so stay together.

    Cost: O(p²·m) for p substreams and m windows by matrix product, O(p²) for all runs together, and 8p² bytes, so that
    more than 16,384 substreams are refused. With ``balance_means`` O(p·N·m) per pass, at most 20 of them, and no
    matrix. 1,000 slots, 24 windows and 32 channels take some 20 ms.

    Parameters
    ----------
    threshold
        From which correlation on a covariance is strong (θ), 0 ≤ θ < 1.
    balance_means
        Minimise Σ_j var(L_j) itself: deal the series out, the largest (by its sum of squares) first, each to the
        channel where it adds least to the sum of squared loads of all windows, then move single substreams while that
        lowers the sum. It is the same greedy idea with E[XY] = cov(X, Y) + E[X]·E[Y] in place of the covariance.

    Notes
    -----
    Ties: the lower item (slots, then pinned keys by hash), the lower channel. Deviations from Algorithm 2:

    - Those with cov ≥ θ to the chosen substream leave; the listing's ≤ would keep the correlated together, against
      the text and the objective.
    - θ is compared with the correlation, cov / (σ_i σ_j), as a bound from 0 to 1 must be; weights add up covariances.
      A correlation of 0 is never strong, not even for θ = 0.
    - ω is always the sum of the strong covariances within the substream's own set. The listing's updates forget the
      condition that its initialisation has.
    - Sets that no strong covariance can split are split by their mean loads, the heaviest set first, until there are N.
      With one window, or windows that are all alike, there is nothing to tell substreams apart by, and the published
      form leaves all as it is, unless the number of channels changes.
    - The paper ignores where substreams were. Sets are unordered, so each gets the channel's number that keeps most
      state in place (maximum matching): a saving that costs nothing.
    - Substreams without load in all windows stay where they are; from vanished channels they are dealt out in turn.
      Split keys stay; the published form does not look at them.

    References
    ----------
    Q. Guo and Y. Zhou, Stateful Load Balancing for Parallel Stream Processing, §4, Algorithm 2.

    Examples
    --------
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> windows = [
    ...     LoadSnapshot(loads, loads, np.ones(4, int), [], [], [], [])
    ...     for loads in ([9, 9, 1, 1], [1, 1, 9, 9], [9, 9, 1, 1], [1, 1, 9, 9])
    ... ]
    >>> table = RoutingTable([0, 0, 1, 1], channels=2)
    >>> for planner in (Clb(), Clb(balance_means=True)):
    ...     plan = planner.plan(windows, table)
    ...     print(plan.table.slot_channels, plan.own_before, plan.own_after)
    [1 0 1 1] 256.0 164.0
    [0 1 0 1] 256.0 0.0
    """

    name = "clb"
    measure = "total_load_variance"
    threshold: float = 0.0
    balance_means: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise InvalidArgumentError(
                f"threshold is a correlation and must be 0 <= threshold < 1; got {self.threshold}.",
                threshold=self.threshold,
            )

    def propose(self, problem: Problem) -> Proposal:
        """Split the substreams into sets and give each set a channel."""
        windows = [Items.of(snapshot, problem.table, "pinned") for snapshot in problem.snapshots]
        items, channels = windows[-1], problem.channels
        series = np.stack([window.loads for window in windows], axis=1)
        fixed = np.stack([window.fixed_for(channels) for window in windows], axis=1)
        active = np.flatnonzero(series.any(axis=1))

        homes = items.homes.astype(np.int32)
        idle = homes >= channels
        idle[active] = False
        homes[idle] = np.arange(int(idle.sum())) % channels
        if self.balance_means:
            sets = deal_by_squares(series[active], fixed)
            # On top of split keys' loads the channels are no longer alike, and may not change their numbers.
            free = not fixed.any()
        else:
            sets, free = split_by_covariance(series[active], channels, self.threshold), True
        if free:
            sets = _numbered(sets, items.homes[active], items.state_bytes[active], channels)
        homes[active] = sets

        now = np.stack([window.fixed_for(problem.table.channels) for window in windows], axis=1)
        before = _held(series, items.homes, now)
        after = _held(series, homes, fixed)
        own = _imbalance if self.balance_means else _fluctuation
        reasons = (
            f"Σ var(L_j) over {len(windows)} windows: {_imbalance(before):g} → {_imbalance(after):g}.",
            f"Σ var(N_i) over {channels} channels: {_fluctuation(before):g} → {_fluctuation(after):g}.",
        )
        if not problem.resizes and own(after) >= own(before) * (1 - NOISE):
            return Proposal(problem.table, (*reasons, "The new sets would be no better; all stays as it is."))
        return Proposal(items.table_with(homes, channels), reasons)

    def score(self, problem: Problem, table: RoutingTable) -> float:
        """Measure the overall imbalance: the variance of the channels' loads, added up over the windows."""
        return metrics.total_load_variance([snapshot.per_channel(table) for snapshot in problem.snapshots])


def split_by_covariance(series: NDArray[np.float64], sets: int, threshold: float) -> NDArray[np.int32]:
    """Give each series (a row) its set, by Algorithm 2; see :class:`Clb`."""
    if len(series) > MOST_PAIRED:
        raise InvalidArgumentError(
            f"As published, clb compares all pairs of substreams: {len(series):,} slots and pins with load would take "
            f"{8e-9 * len(series) ** 2:.0f} GB. It takes up to {MOST_PAIRED:,}; balance_means=True takes any number.",
            substreams=len(series),
        )
    from evenkeel.planning import _kernels

    means = series.mean(axis=1)
    centred = series - means[:, None]
    deviations = np.sqrt((centred * centred).mean(axis=1))
    centred[deviations <= NOISE * means] = 0.0
    deviations[deviations <= NOISE * means] = 0.0
    covariance = centred @ centred.T
    covariance /= max(1, series.shape[1])
    _kernels.keep_strong(covariance, deviations, max(threshold, NOISE))
    labels = np.zeros(len(series), np.int64)
    made = _kernels.split_sets(covariance, sets, labels)
    return _split_by_means(means, labels.astype(np.int32), made, sets)


def _split_by_means(means: NDArray[np.float64], labels: NDArray[np.int32], made: int, sets: int) -> NDArray[np.int32]:
    """Halve the heaviest set of two or more, again and again, until there are enough."""
    while made < sets:
        sizes = np.bincount(labels, minlength=made)
        heaviest = np.where(sizes > 1, np.bincount(labels, weights=means, minlength=made), -1.0).argmax()
        if sizes[heaviest] < 2:
            break
        members = np.flatnonzero(labels == heaviest)
        half = np.zeros(len(members), np.int32)
        dealing.deal(dealing.heaviest_first(means[members]), means[members], np.zeros(2), half)
        labels[members[half == 1]] = made
        made += 1
    return labels


def deal_by_squares(series: NDArray[np.float64], fixed: NDArray[np.float64]) -> NDArray[np.int32]:
    """Give each series (a row) a channel so that the sum of squared loads, over channels and windows, is small."""
    from evenkeel.planning import _kernels

    # Squares of very large loads would overflow; the choice does not depend on the unit.
    unit = max(float(series.max(initial=0.0)), float(fixed.max(initial=0.0))) or 1.0
    scaled, held = series / unit, fixed / unit
    order = np.argsort(-(scaled * scaled).sum(axis=1), kind="stable")
    homes = np.zeros(len(series), np.int32)
    _kernels.deal_series(order, scaled, held, homes)
    _kernels.improve_series(order, scaled, held, homes, PASSES)
    return homes


def _numbered(
    sets: NDArray[np.int32], homes: NDArray[np.int32], state_bytes: NDArray[np.int64], channels: int
) -> NDArray[np.int32]:
    """Number the sets as channels so that most state stays; an item without state counts as a byte."""
    from scipy.optimize import linear_sum_assignment

    there = homes < channels
    pairs = sets[there].astype(np.int64) * channels + homes[there]
    overlap = np.bincount(pairs, weights=state_bytes[there] + 1.0, minlength=channels * channels)
    _, numbers = linear_sum_assignment(overlap.reshape(channels, channels), maximize=True)
    return numbers.astype(np.int32)[sets]


def _held(series: NDArray[np.float64], homes: NDArray[np.int32], fixed: NDArray[np.float64]) -> NDArray[np.float64]:
    """The load of each channel (row) in each window."""
    loads = [np.bincount(homes, weights=window, minlength=len(fixed)) for window in series.T]
    return fixed + np.stack(loads, axis=1)


def _imbalance(held: NDArray[np.float64]) -> float:
    return metrics.total_load_variance(held.T)


def _fluctuation(held: NDArray[np.float64]) -> float:
    return metrics.total_load_variance(held)
