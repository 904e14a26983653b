"""How unevenly the channels of a keyed stage are loaded: the measures of the five papers.

All take one load per channel, and none depends on the order of the channels. Channels that carry nothing
at all are perfectly balanced, and so is a single channel; equal loads are reported as perfect balance
exactly, without the rounding of a mean. `evenkeel.metrics.over_windows` makes any of them a time series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics._checks import FloatArray, as_loads, scaled_to_unit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def imbalance(loads: ArrayLike) -> float:
    r"""Tell by how much the fullest channel exceeds the average one.

    .. math:: I(t) = \max_i L_i(t) - \operatorname{avg}_i L_i(t)

    Zero exactly when all channels are equally loaded; at most :math:`(1 - 1/N) \sum_i L_i`.

    References
    ----------
    Nasir et al., "The Power of Both Choices: Practical Load Balancing for Distributed Stream Processing
    Engines" (PKG), §II.

    Examples
    --------
    >>> imbalance([4, 1, 1])
    2.0
    """
    return float(_excess_of_fullest(as_loads("loads", loads)))


def imbalance_fraction(loads: ArrayLike) -> float:
    """Tell the imbalance as a fraction of the total load, from 0 to 1 - 1/N; 0 where there is no load.

    References
    ----------
    PKG, §V, Figure 3.

    Examples
    --------
    >>> imbalance_fraction([2, 0])
    0.5
    """
    scaled = scaled_to_unit(as_loads("loads", loads))
    total = float(scaled.sum())
    return float(_excess_of_fullest(scaled)) / total if total > 0 else 0.0


def average_imbalance(loads_by_window: ArrayLike) -> float:
    """Average the imbalance over time: the mean of :math:`I(t)` over the rows of windows x channels.

    The paper's loads are cumulative (all tuples up to t); loads of each window alone are as welcome, and
    then it is the average imbalance within a window.

    References
    ----------
    PKG, §V, Table II.

    Examples
    --------
    >>> average_imbalance([[2, 0], [3, 3]])
    0.5
    """
    return float(_excess_of_fullest(as_loads("loads_by_window", loads_by_window, ndim=2)).mean())


def average_imbalance_fraction(cumulative_loads: ArrayLike) -> float:
    """Divide the average imbalance by the number of tuples of the whole stream.

    The rows must be cumulative, as the paper defines load, so that the last one tells the total. 0 where
    there is no load.

    References
    ----------
    PKG, §V, Figures 2 and 4.

    Examples
    --------
    >>> average_imbalance_fraction([[2, 0], [3, 3]])
    0.08333333333333333
    """
    loads = as_loads("cumulative_loads", cumulative_loads, ndim=2)
    if (np.diff(loads, axis=0) < 0).any():
        raise InvalidArgumentError(
            "cumulative_loads must not shrink from one row to the next; "
            "pass np.cumsum(loads_by_window, axis=0) for loads of each window alone.",
            name="cumulative_loads",
        )
    total = float(loads[-1].sum())
    return float(_excess_of_fullest(loads).mean()) / total if total > 0 else 0.0


def load_variance(loads: ArrayLike) -> float:
    r"""Compute the (population) variance of the loads of the channels.

    .. math:: var(L_t) = \frac{1}{n} \sum_{i=1}^n (l_{it} - \bar{l}_t)^2

    References
    ----------
    Guo and Zhou (ELB/CLB), §2.2, Equation 1.

    Examples
    --------
    >>> load_variance([4, 1, 1])
    2.0
    """
    return float(_variance(as_loads("loads", loads)))


def total_load_variance(loads_by_window: ArrayLike) -> float:
    r"""Add up the variances of all windows: the overall imbalance that MCLB minimises.

    .. math:: \hbar(F) = \sum_{j=1}^m var(L_j)

    References
    ----------
    Guo and Zhou (ELB/CLB), §2.2.

    Examples
    --------
    >>> total_load_variance([[4, 1, 1], [3, 3, 3]])
    2.0
    """
    return float(_variance(as_loads("loads_by_window", loads_by_window, ndim=2)).sum())


def relative_std_percent(loads: ArrayLike) -> float:
    r"""Compute the relative standard deviation of the loads, in percent.

    .. math:: imbScore = 100 \cdot std(L) / mean(L)

    The paper leaves open which deviation; it is the population's here, as the channels are all there are.
    0 where there is no load; at most :math:`100 \sqrt{N - 1}`, with all load on one channel.

    References
    ----------
    Zacheilas et al., "Dynamic Load Balancing Techniques for Distributed Complex Event Processing Systems"
    (DLB), §3.1, Equation 2.

    Examples
    --------
    >>> relative_std_percent([2, 0])
    100.0
    """
    scaled = scaled_to_unit(as_loads("loads", loads))
    mean = float(scaled.mean())
    return 100 * float(np.sqrt(_variance(scaled))) / mean if mean > 0 else 0.0


def balance_indicators(loads: ArrayLike) -> FloatArray:
    r"""Tell for each channel how far it is from the average load, relative to the average.

    .. math:: \theta(d) = |L(d) - \bar{L}| / \bar{L}

    All 0 where there is no load.

    References
    ----------
    Fang et al., "Integrating workload balancing and fault tolerance in distributed stream processing
    system" (FTLB), §2, Equation 3.

    Examples
    --------
    >>> balance_indicators([3, 1, 2])
    array([0.5, 0.5, 0. ])
    """
    scaled = scaled_to_unit(as_loads("loads", loads))
    if scaled.max() == scaled.min():
        return np.zeros_like(scaled)
    mean = float(scaled.mean())
    return np.abs(scaled - mean) / mean


def within_balance_bounds(loads: ArrayLike, *, upper: float, lower: float = 0.0) -> NDArray[np.bool_]:
    r"""Tell for each channel whether its balance indicator lies within the administrator's bounds.

    .. math:: \theta_{min} \le \theta(d) \le \theta_{max}

    A ``lower`` (:math:`\theta_{min}`) above 0, taken literally, refuses channels that carry exactly the
    average load; the paper's planners use :math:`\theta_{max}` alone, hence the default.

    References
    ----------
    Fang et al. (FTLB), §2.

    Examples
    --------
    >>> within_balance_bounds([3, 1, 2], upper=0.2)
    array([False, False,  True])
    """
    if not 0 <= lower <= upper:
        raise InvalidArgumentError(
            f"The bounds must be 0 <= lower <= upper, got lower={lower} and upper={upper}.",
            lower=lower,
            upper=upper,
        )
    indicators = balance_indicators(loads)
    return (lower <= indicators) & (indicators <= upper)


def skewness(loads: ArrayLike) -> float:
    r"""Divide the load of the fullest channel by the average load.

    .. math:: \max_d L(d) / \bar{L}

    From 1 (balanced, or no load at all) to N. A batch takes that many times the time of a balanced one.

    References
    ----------
    Fang et al. (FTLB), §5, Figure 7.

    Examples
    --------
    >>> skewness([4, 1, 1])
    2.0
    """
    scaled = scaled_to_unit(as_loads("loads", loads))
    fullest = float(scaled.max())
    return 1.0 if fullest == scaled.min() else fullest / float(scaled.mean())


def max_min_ratio(loads: ArrayLike) -> float:
    r"""Divide the load of the fullest channel by that of the emptiest.

    .. math:: r = \max_i L(i) / \min_i L(i)

    1 when balanced (also without any load), infinite as soon as one channel is idle and another is not.

    References
    ----------
    Gedik, "Partitioning functions for stateful data parallelism in stream processing", §3.1, Equations 2,
    4 and 6.

    Examples
    --------
    >>> max_min_ratio([39, 35]), max_min_ratio([1, 0]), max_min_ratio([0, 0])
    (1.1142857142857143, inf, 1.0)
    """
    checked = as_loads("loads", loads)
    fullest, emptiest = float(checked.max()), float(checked.min())
    if fullest == emptiest:
        return 1.0
    return fullest / emptiest if emptiest > 0 else float("inf")


def _excess_of_fullest(loads: FloatArray) -> FloatArray:
    """Take max minus mean over the last axis; exactly 0 for equal loads, whose mean may be off by a bit."""
    fullest = loads.max(axis=-1)
    excess = np.maximum(fullest - loads.mean(axis=-1), 0.0)
    return np.where(fullest == loads.min(axis=-1), 0.0, excess)


def _variance(loads: FloatArray) -> FloatArray:
    """Compute the variance over the last axis; exactly 0 for equal loads."""
    return np.where(loads.max(axis=-1) == loads.min(axis=-1), 0.0, loads.var(axis=-1))
