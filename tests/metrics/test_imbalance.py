from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics import (
    average_imbalance,
    average_imbalance_fraction,
    balance_indicators,
    imbalance,
    imbalance_fraction,
    load_variance,
    max_min_ratio,
    over_windows,
    relative_std_percent,
    skewness,
    total_load_variance,
    within_balance_bounds,
)

LOADS = st.lists(st.integers(0, 10**9), min_size=1, max_size=20)
REAL_LOADS = st.lists(st.floats(0, 1e12), min_size=1, max_size=20)
WINDOWS = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 10**6), min_size=n, max_size=n), min_size=1, max_size=8)
)

# What each measure says of perfect balance.
PERFECT = {
    imbalance: 0.0,
    imbalance_fraction: 0.0,
    load_variance: 0.0,
    relative_std_percent: 0.0,
    skewness: 1.0,
    max_min_ratio: 1.0,
}
RELATIVE = [imbalance_fraction, relative_std_percent, skewness, max_min_ratio]


def by_name(measure):
    return measure.__name__


def literal_imbalance(loads):
    return max(loads) - sum(loads) / len(loads)


def literal_variance(loads):
    mean = sum(loads) / len(loads)
    return sum((load - mean) ** 2 for load in loads) / len(loads)


@given(LOADS)
def test_imbalance_is_max_minus_average(loads):
    assert imbalance(loads) == pytest.approx(literal_imbalance(loads), rel=1e-9, abs=1e-6)


@given(LOADS.filter(any))
def test_imbalance_fraction_divides_by_the_total(loads):
    assert imbalance_fraction(loads) == pytest.approx(literal_imbalance(loads) / sum(loads), abs=1e-12)
    assert 0 <= imbalance_fraction(loads) <= 1 - 1 / len(loads) + 1e-12


@given(LOADS)
def test_variance_is_that_of_equation_1(loads):
    assert load_variance(loads) == pytest.approx(literal_variance(loads), rel=1e-9, abs=1e-3)


@given(LOADS.filter(any))
def test_relative_std_is_that_of_equation_2(loads):
    expected = 100 * math.sqrt(literal_variance(loads)) / (sum(loads) / len(loads))
    assert relative_std_percent(loads) == pytest.approx(expected, rel=1e-9, abs=1e-5)
    assert relative_std_percent(loads) <= 100 * math.sqrt(len(loads) - 1) * (1 + 1e-12)


@given(LOADS.filter(any))
def test_balance_indicators_are_those_of_equation_3(loads):
    mean = sum(loads) / len(loads)
    assert balance_indicators(loads) == pytest.approx([abs(load - mean) / mean for load in loads], abs=1e-12)


@given(LOADS.filter(any))
def test_skewness_is_max_over_average_and_at_most_the_number_of_channels(loads):
    assert skewness(loads) == pytest.approx(max(loads) / (sum(loads) / len(loads)))
    assert 1 <= skewness(loads) <= len(loads) * (1 + 1e-12)


@given(LOADS.filter(all))
def test_max_min_ratio_is_max_over_min(loads):
    assert max_min_ratio(loads) == max(loads) / min(loads)


@pytest.mark.parametrize("measure", PERFECT, ids=by_name)
@given(loads=st.lists(st.integers(0, 1000), min_size=1, max_size=12))
def test_balance_is_perfect_exactly_when_all_loads_are_equal(measure, loads):
    assert (measure(loads) == PERFECT[measure]) == (len(set(loads)) == 1)


@pytest.mark.parametrize("measure", PERFECT, ids=by_name)
@given(load=st.floats(0, 1e100), n_channels=st.integers(1, 30))
def test_equal_loads_leave_no_rounding_error(measure, load, n_channels):
    assert measure([load / n_channels] * n_channels) == PERFECT[measure]


@pytest.mark.parametrize("measure", PERFECT, ids=by_name)
@given(loads=REAL_LOADS)
def test_no_measure_is_better_than_perfect(measure, loads):
    assert measure(loads) >= PERFECT[measure]


@pytest.mark.parametrize("measure", PERFECT, ids=by_name)
@given(loads=LOADS, random=st.randoms())
def test_order_of_channels_does_not_matter(measure, loads, random):
    shuffled = random.sample(loads, len(loads))
    assert measure(shuffled) == pytest.approx(measure(loads), rel=1e-9)


@pytest.mark.parametrize("measure", RELATIVE, ids=by_name)
@given(loads=LOADS, factor=st.floats(1e-6, 1e6))
def test_relative_measures_do_not_depend_on_the_unit(measure, loads, factor):
    scaled = [load * factor for load in loads]
    assert measure(scaled) == pytest.approx(measure(loads), rel=1e-9, abs=1e-12)


@given(loads=LOADS, factor=st.floats(1e-3, 1e3))
def test_absolute_measures_grow_with_the_unit(loads, factor):
    scaled = [load * factor for load in loads]
    assert imbalance(scaled) == pytest.approx(factor * imbalance(loads), rel=1e-6, abs=1e-4)
    assert load_variance(scaled) == pytest.approx(factor**2 * load_variance(loads), rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("measure", RELATIVE, ids=by_name)
def test_loads_too_small_for_a_mean_are_measured_all_the_same(measure):
    assert measure([5e-324, 0.0, 0.0]) == pytest.approx(measure([1.0, 0.0, 0.0]))


def test_an_idle_channel_makes_the_ratio_infinite():
    assert max_min_ratio([7, 0]) == math.inf


def test_channels_without_any_load_have_indicators_of_zero():
    assert balance_indicators([0, 0, 0]).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        pytest.param({"upper": 0.5}, [True, True, True], id="a bound that is met exactly is met"),
        pytest.param({"upper": 0.4}, [False, False, True], id="channels above and below average may be out"),
        pytest.param({"upper": 0.5, "lower": 0.1}, [True, True, False], id="a lower bound refuses the average"),
    ],
)
def test_within_balance_bounds(bounds, expected):
    assert within_balance_bounds([3, 1, 2], **bounds).tolist() == expected


@given(WINDOWS)
def test_average_imbalance_is_the_mean_over_time(windows):
    expected = sum(literal_imbalance(loads) for loads in windows) / len(windows)
    assert average_imbalance(windows) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(WINDOWS)
def test_average_imbalance_fraction_divides_by_the_whole_stream(windows):
    cumulative = np.cumsum(windows, axis=0)
    total = int(np.sum(windows))
    expected = average_imbalance(cumulative) / total if total else 0
    assert average_imbalance_fraction(cumulative) == pytest.approx(expected, abs=1e-12)


@given(WINDOWS)
def test_total_variance_is_the_sum_over_windows(windows):
    expected = sum(literal_variance(loads) for loads in windows)
    assert total_load_variance(windows) == pytest.approx(expected, rel=1e-9, abs=1e-3)


@pytest.mark.parametrize("measure", PERFECT, ids=by_name)
@given(windows=WINDOWS)
def test_over_windows_measures_each_window_alone(measure, windows):
    assert over_windows(measure, windows).tolist() == [measure(loads) for loads in windows]


@pytest.mark.parametrize("measure", [*PERFECT, balance_indicators], ids=by_name)
@pytest.mark.parametrize(
    "loads",
    [
        pytest.param([], id="no channels"),
        pytest.param([1.0, -1.0], id="a negative load"),
        pytest.param([1.0, math.nan], id="a load that is not a number"),
        pytest.param([1.0, math.inf], id="an infinite load"),
        pytest.param([[1.0, 2.0]], id="several windows for a measure of one"),
        pytest.param(["a", "b"], id="text"),
        pytest.param(3.0, id="a scalar"),
    ],
)
def test_measures_refuse(measure, loads):
    with pytest.raises(InvalidArgumentError, match="loads must"):
        measure(loads)


@pytest.mark.parametrize("measure", [average_imbalance, average_imbalance_fraction, total_load_variance], ids=by_name)
@pytest.mark.parametrize(
    "windows",
    [
        pytest.param([1.0, 2.0], id="a single window"),
        pytest.param(np.empty((0, 3)), id="no windows"),
        pytest.param([[1.0, 2.0], [1.0]], id="windows of different lengths"),
    ],
)
def test_measures_over_time_refuse(measure, windows):
    with pytest.raises(InvalidArgumentError):
        measure(windows)


def test_loads_that_are_not_cumulative_are_refused_with_a_hint():
    with pytest.raises(InvalidArgumentError, match=r"np\.cumsum"):
        average_imbalance_fraction([[2, 0], [1, 3]])


@pytest.mark.parametrize("bounds", [(-0.1, 0.5), (0.5, 0.4), (0.0, math.nan)], ids=["negative", "crossed", "NaN"])
def test_bounds_that_make_no_sense_are_refused(bounds):
    lower, upper = bounds
    with pytest.raises(InvalidArgumentError, match="0 <= lower <= upper"):
        within_balance_bounds([1, 2], lower=lower, upper=upper)
