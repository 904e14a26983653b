"""How long tuples take, how much faster more channels are, and how far that is from the ideal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.metrics._checks import as_amounts, as_integers, as_loads, check_count, check_positive
from evenkeel.metrics.imbalance import skewness

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """The latencies of ``count`` tuples in milliseconds; all NaN where ``count`` is 0.

    References
    ----------
    Guo and Zhou, "Stateful Load Balancing for Parallel Stream Processing", §5.2, Table 2.
    """

    count: int
    mean_ms: float
    median_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


def summarise_latency(latencies_ms: ArrayLike, counts: ArrayLike | None = None) -> LatencySummary:
    """Summarise latencies by their mean, quantiles and maximum.

    A quantile q is the least latency that a fraction q of the tuples do not exceed: always one that occurred.
    So the median of an even number of tuples is the lower of the two in the middle. Costs a sort, O(n log n).

    Parameters
    ----------
    latencies_ms
        Latencies in any order.
    counts
        How many tuples had each latency, such as the rows of a micro-batch; one each if left out. The summary
        is that of the latencies repeated so many times.

    Examples
    --------
    >>> summarise_latency([1.0, 9.0], counts=[99, 1])
    LatencySummary(count=100, mean_ms=1.08, median_ms=1.0, p95_ms=1.0, p99_ms=1.0, max_ms=9.0)
    """
    latencies = as_amounts("latencies_ms", latencies_ms)
    if counts is None:
        counts = np.ones(len(latencies), dtype=np.int64)
    weights = as_integers("counts", counts, length=len(latencies))
    order = np.argsort(latencies)
    order = order[weights[order] > 0]
    latencies, reached = latencies[order], np.cumsum(weights[order])
    if len(latencies) == 0:
        return LatencySummary(0, *[float("nan")] * 5)
    count = int(reached[-1])
    # Divided, not multiplied: k/n rounds to the same float as the literal quantile where they are equal.
    median, p95, p99 = latencies[np.searchsorted(reached / count, (0.5, 0.95, 0.99))].tolist()
    mean = np.clip(latencies @ weights[order] / count, latencies[0], latencies[-1])
    return LatencySummary(count, float(mean), median, p95, p99, float(latencies[-1]))


def speed_up(baseline_ms: float, measured_ms: float) -> float:
    r"""Tell how many times faster a run is than the baseline, usually that with one channel.

    .. math:: S_n = \mu_1 / \mu_n

    for mean latencies :math:`\mu`. Throughput being :math:`1 / \mu`, it is the speed-up of throughput, too.

    References
    ----------
    Guo and Zhou, §5.2, Figures 5 and 6.

    Examples
    --------
    >>> speed_up(12.0, 4.0)
    3.0
    """
    check_positive("baseline_ms", baseline_ms)
    check_positive("measured_ms", measured_ms)
    return baseline_ms / measured_ms


def efficiency(achieved_speed_up: float, n_channels: int) -> float:
    r"""Divide a speed-up by the ideal one, which is linear in the number of channels.

    .. math:: E_n = S_n / n

    1 on the line "Ideal" of the paper; above it where more channels also mean more cache or memory.

    References
    ----------
    Guo and Zhou, §5.2, Figure 6.

    Examples
    --------
    >>> efficiency(3.0, n_channels=4)
    0.75
    """
    check_positive("achieved_speed_up", achieved_speed_up)
    check_count("n_channels", n_channels)
    return achieved_speed_up / n_channels


def ideal_time_ms(busy_ms: ArrayLike) -> float:
    r"""Tell how long the work would take if all channels were equally busy: total / N.

    Examples
    --------
    >>> ideal_time_ms([30.0, 10.0])
    20.0
    """
    return float(as_loads("busy_ms", busy_ms).mean())


def fraction_of_ideal(busy_ms: ArrayLike, elapsed_ms: float | None = None) -> float:
    r"""Divide the ideal time by the time that it took.

    .. math:: \frac{\sum_i T_i / N}{\max_i T_i}

    A batch waits for its busiest channel, so that is what it took if nothing else is known: one over the
    `evenkeel.metrics.skewness`, from 1/N to 1, and 1 where there was no work. Pass ``elapsed_ms`` where the
    batch itself was measured, and what was spent outside the channels counts against it.

    Examples
    --------
    >>> fraction_of_ideal([30.0, 10.0])
    0.6666666666666666
    >>> fraction_of_ideal([30.0, 10.0], elapsed_ms=40.0)
    0.5
    """
    if elapsed_ms is None:
        return 1 / skewness(busy_ms)
    check_positive("elapsed_ms", elapsed_ms)
    return ideal_time_ms(busy_ms) / elapsed_ms
