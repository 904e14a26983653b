from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics import (
    efficiency,
    fraction_of_ideal,
    ideal_time_ms,
    skewness,
    speed_up,
    summarise_latency,
)

LATENCIES = st.lists(st.floats(0, 1e6), min_size=1, max_size=300)
COUNTED = st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 40)), max_size=30)
TIMES = st.floats(1e-3, 1e6)


def literal_quantile(latencies, percent):
    """Take the least latency that at least ``percent`` of all do not exceed, in whole numbers."""
    ordered = sorted(latencies)
    return next(x for k, x in enumerate(ordered, start=1) if 100 * k >= percent * len(ordered))


@given(LATENCIES)
def test_summary_is_that_of_the_sorted_latencies(latencies):
    summary = summarise_latency(latencies)
    assert summary.count == len(latencies)
    assert summary.mean_ms == pytest.approx(math.fsum(latencies) / len(latencies))
    assert summary.median_ms == literal_quantile(latencies, 50)
    assert summary.p95_ms == literal_quantile(latencies, 95)
    assert summary.p99_ms == literal_quantile(latencies, 99)
    assert summary.max_ms == max(latencies)


@given(COUNTED)
def test_counts_stand_for_repetition(counted):
    latencies, counts = [x for x, _ in counted], [n for _, n in counted]
    summary, repeated = summarise_latency(latencies, counts), summarise_latency(np.repeat(latencies, counts))
    assert summary.count == repeated.count
    assert summary.mean_ms == pytest.approx(repeated.mean_ms, nan_ok=True)
    for field in ("median_ms", "p95_ms", "p99_ms", "max_ms"):
        assert getattr(summary, field) == pytest.approx(getattr(repeated, field), rel=0, nan_ok=True)


@given(LATENCIES, st.randoms())
def test_order_of_tuples_does_not_matter(latencies, random):
    shuffled = summarise_latency(random.sample(latencies, len(latencies)))
    assert shuffled.p95_ms == summarise_latency(latencies).p95_ms


@given(LATENCIES)
def test_quantiles_are_ordered_and_the_mean_lies_within(latencies):
    summary = summarise_latency(latencies)
    assert min(latencies) <= summary.median_ms <= summary.p95_ms <= summary.p99_ms <= summary.max_ms
    assert min(latencies) <= summary.mean_ms <= summary.max_ms


@pytest.mark.parametrize(
    "arguments",
    [pytest.param(([],), id="no tuples at all"), pytest.param(([3.0], [0]), id="no tuple that counts")],
)
def test_nothing_is_summarised_as_not_a_number(arguments):
    summary = summarise_latency(*arguments)
    assert summary.count == 0
    assert all(math.isnan(x) for x in (summary.mean_ms, summary.median_ms, summary.p95_ms, summary.max_ms))


def test_latencies_stay_in_the_order_they_came():
    latencies = np.array([3.0, 1.0, 2.0])
    summarise_latency(latencies)
    assert latencies.tolist() == [3.0, 1.0, 2.0]


@given(TIMES, TIMES)
def test_speed_up_is_the_ratio_of_mean_latencies_and_of_throughputs(baseline, measured):
    assert speed_up(baseline, measured) == pytest.approx(baseline / measured)
    assert speed_up(baseline, measured) == pytest.approx((1 / measured) / (1 / baseline))


@given(TIMES, st.integers(1, 100))
def test_linear_speed_up_is_fully_efficient(time, n_channels):
    assert efficiency(speed_up(time, time / n_channels), n_channels) == pytest.approx(1)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=20))
def test_fraction_of_ideal_is_average_over_busiest(busy):
    assert ideal_time_ms(busy) == pytest.approx(math.fsum(busy) / len(busy))
    assert fraction_of_ideal(busy) == pytest.approx(ideal_time_ms(busy) / max(busy))
    assert fraction_of_ideal(busy) == pytest.approx(1 / skewness(busy))
    assert fraction_of_ideal(busy, elapsed_ms=max(busy)) == pytest.approx(fraction_of_ideal(busy))


def test_no_work_takes_the_ideal_time():
    assert fraction_of_ideal([0, 0]) == 1


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda: summarise_latency([-1.0]), id="a negative latency"),
        pytest.param(lambda: summarise_latency([math.nan]), id="a latency that is not a number"),
        pytest.param(lambda: summarise_latency([1.0], [1, 2]), id="more counts than latencies"),
        pytest.param(lambda: summarise_latency([1.0], [-1]), id="a negative count"),
        pytest.param(lambda: summarise_latency([1.0], [0.5]), id="half a tuple"),
        pytest.param(lambda: speed_up(1.0, 0.0), id="a run that took no time"),
        pytest.param(lambda: speed_up(math.nan, 1.0), id="a baseline that is not a number"),
        pytest.param(lambda: efficiency(1.0, 0), id="the efficiency of no channels"),
        pytest.param(lambda: efficiency(-1.0, 2), id="a negative speed-up"),
        pytest.param(lambda: ideal_time_ms([]), id="the ideal time of no channels"),
        pytest.param(lambda: fraction_of_ideal([1.0], elapsed_ms=0.0), id="a batch that took no time"),
    ],
)
def test_refuses(call):
    with pytest.raises(InvalidArgumentError):
        call()
