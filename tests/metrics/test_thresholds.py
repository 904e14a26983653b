from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics import (
    ResourceFunction,
    ResourceProfile,
    allowed_deviation,
    balance_indicators,
    max_min_ratio,
    predicted_total_load,
    refined_threshold,
    tracking_threshold,
)

TOLERANCES = st.floats(1.001, 4)
SHARES = st.floats(0.01, 1)
N_CHANNELS = st.integers(2, 100)
N_KEYS = st.integers(20, 10**8)
WEIGHTS = st.lists(st.integers(1, 1000), max_size=20)


@given(TOLERANCES, N_CHANNELS)
def test_allowed_deviation_is_that_of_equation_15(tolerance, n_channels):
    printed = (tolerance - 1) * (1 + tolerance / (n_channels - 1)) ** -1
    assert allowed_deviation(tolerance, n_channels) == pytest.approx(printed)


@given(TOLERANCES, N_CHANNELS)
def test_one_channel_at_the_tolerance_deviates_just_as_allowed(tolerance, n_channels):
    loads = [tolerance] + [1.0] * (n_channels - 1)
    assert balance_indicators(loads).max() == pytest.approx(allowed_deviation(tolerance, n_channels))


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=12))
def test_no_channel_within_the_tolerance_deviates_more_than_allowed(loads):
    allowed = allowed_deviation(max_min_ratio(loads), len(loads))
    assert balance_indicators(loads).max() <= allowed + 1e-9


def test_one_channel_cannot_deviate():
    assert allowed_deviation(1.2, 1) == 0


@pytest.mark.parametrize(
    ("computation", "literal"),
    [
        pytest.param("constant", lambda _s, _t, _n, _d: 1.0, id="constant functions need no tracking"),
        pytest.param("linear", lambda s, t, n, _d: s * t / n, id="linear functions"),
        pytest.param("quadratic", lambda s, t, n, d: math.sqrt(s * t / (d * n)), id="quadratic functions"),
    ],
)
@given(tolerance=TOLERANCES, n_channels=N_CHANNELS, n_keys=N_KEYS, share=SHARES)
def test_threshold_is_that_of_equation_17(computation, literal, tolerance, n_channels, n_keys, share):
    profile = ResourceProfile.named("constant", computation, "constant", tolerance=tolerance)
    theta = allowed_deviation(tolerance, n_channels)
    threshold = tracking_threshold(profile, n_channels=n_channels, n_keys=n_keys, untracked_share=share)
    assert threshold == pytest.approx(literal(share, theta, n_channels, n_keys))


@given(N_CHANNELS, N_KEYS)
def test_threshold_is_the_lowest_of_all_resources(n_channels, n_keys):
    size = {"n_channels": n_channels, "n_keys": n_keys}
    mixed = tracking_threshold(ResourceProfile.named("linear", "quadratic", "constant"), **size)
    linear = tracking_threshold(ResourceProfile.named("linear", "constant", "constant"), **size)
    quadratic = tracking_threshold(ResourceProfile.named("constant", "quadratic", "constant"), **size)
    assert mixed == min(linear, quadratic)


@given(WEIGHTS, st.integers(1, 1000), N_KEYS, st.sampled_from(ResourceFunction))
def test_predicted_load_is_the_sum_of_the_text(weights, rest, n_keys, function):
    total = sum(weights) + rest
    frequencies = [weight / total for weight in weights]
    assume(n_keys > len(weights))
    n_rest = n_keys - len(weights)
    expected = sum(f**function.degree for f in frequencies) + n_rest * ((rest / total) / n_rest) ** function.degree
    assert predicted_total_load(frequencies, function, n_keys=n_keys) == pytest.approx(expected)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=20), st.data())
def test_predicted_quadratic_load_never_exceeds_the_true_one(weights, data):
    # The text calls the even spread of the untracked keys the one that maximises the load; it minimises it.
    frequencies = [weight / sum(weights) for weight in weights]
    tracked = frequencies[: data.draw(st.integers(0, len(frequencies)))]
    predicted = predicted_total_load(tracked, ResourceFunction.QUADRATIC, n_keys=len(frequencies))
    assert predicted <= sum(f * f for f in frequencies) * (1 + 1e-9)


@given(WEIGHTS, st.integers(0, 1000), N_KEYS, N_CHANNELS, SHARES)
def test_refined_threshold_is_higher_and_still_satisfies_equation_16(weights, rest, n_keys, n_channels, share):
    total = sum(weights) + rest
    frequencies = [weight / total for weight in weights]
    settings = {"n_channels": n_channels, "n_keys": n_keys, "untracked_share": share}
    profile = ResourceProfile.named("constant", "quadratic", "constant")
    refined = refined_threshold(frequencies, profile, **settings)
    assert refined >= tracking_threshold(profile, **settings)
    average_load = predicted_total_load(frequencies, ResourceFunction.QUADRATIC, n_keys=n_keys) / n_channels
    allowed = share * allowed_deviation(1.2, n_channels) * max(average_load, 1 / n_keys / n_channels)
    assert refined**2 == pytest.approx(allowed)


@given(WEIGHTS, N_KEYS, N_CHANNELS)
def test_only_quadratic_resources_are_refined(weights, n_keys, n_channels):
    frequencies = [weight / (sum(weights) + 1) for weight in weights]
    size = {"n_channels": n_channels, "n_keys": n_keys}
    profile = ResourceProfile.named("linear", "linear", "linear")
    assert refined_threshold(frequencies, profile, **size) == tracking_threshold(profile, **size)


def test_one_channel_tracks_nothing():
    assert tracking_threshold(ResourceProfile.named(), n_channels=1, n_keys=10) == 1


def test_no_tolerance_tracks_everything():
    assert tracking_threshold(ResourceProfile.named(tolerance=1.0), n_channels=4, n_keys=10) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"untracked_share": 0.0}, id="a share of nothing"),
        pytest.param({"untracked_share": 1.1}, id="a share of more than all"),
        pytest.param({"untracked_share": math.nan}, id="a share that is not a number"),
        pytest.param({"n_channels": 0}, id="no channels"),
        pytest.param({"n_keys": 0}, id="no keys"),
    ],
)
def test_thresholds_refuse(wrong):
    settings = {"n_channels": 4, "n_keys": 10} | wrong
    with pytest.raises(InvalidArgumentError):
        tracking_threshold(ResourceProfile.named(), **settings)
    with pytest.raises(InvalidArgumentError):
        refined_threshold([], ResourceProfile.named(), **settings)


@pytest.mark.parametrize(
    ("frequencies", "n_keys", "message"),
    [
        pytest.param([0.6, 0.6], 5, "add up to at most 1", id="frequencies beyond the whole stream"),
        pytest.param([0.1, 0.1], 1, "number of tracked keys", id="more tracked keys than keys"),
        pytest.param([-0.1], 5, "not be negative", id="a negative frequency"),
    ],
)
def test_refined_threshold_refuses(frequencies, n_keys, message):
    with pytest.raises(InvalidArgumentError, match=message):
        refined_threshold(frequencies, ResourceProfile.named(), n_channels=2, n_keys=n_keys)


@pytest.mark.parametrize(("tolerance", "n_channels"), [(0.9, 2), (math.nan, 2), (1.2, 0)])
def test_allowed_deviation_refuses(tolerance, n_channels):
    with pytest.raises(InvalidArgumentError):
        allowed_deviation(tolerance, n_channels)
