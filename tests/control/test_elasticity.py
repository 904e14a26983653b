"""As many channels as the load needs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.control import Elasticity
from evenkeel.errors import InvalidArgumentError

BOUNDS = Elasticity(lower=80, upper=120)


def wanted(elasticity: Elasticity, loads: list[float], channels: int, since: int | None = None) -> int:
    return int(elasticity.ask(loads, channels, since).number)


@given(load=st.floats(0, 1e5))
def test_the_number_of_channels_is_that_of_elb(load):
    assert abs(BOUNDS.needed(load) - min(max(1, math.ceil(2 * load / 200)), 1024)) <= (load % 100 < 1e-3)


@given(channels=st.integers(1, 50), share=st.floats(0.8, 1.2))
def test_within_the_bounds_nothing_changes(channels, share):
    assert not BOUNDS.ask([channels * 100 * share], channels).passes


def test_growing_needs_one_window():
    assert wanted(BOUNDS, [400, 1000], 4) == 10


def test_shrinking_needs_several_windows_in_a_row():
    assert wanted(BOUNDS, [1000, 300, 300], 10) == 10
    assert wanted(BOUNDS, [1000, 300, 300, 300], 10) == 3


def test_shrinking_goes_as_far_as_the_fullest_window_allows():
    assert wanted(BOUNDS, [300, 500, 100], 10) == 5


def test_shrinking_waits_after_a_change():
    assert wanted(BOUNDS, [300, 300, 300], 10, since=2) == 10
    assert wanted(BOUNDS, [300, 300, 300], 10, since=3) == 3


def test_one_decision_goes_one_step_at_most():
    stepwise = Elasticity(80, 120, max_step=2)
    assert wanted(stepwise, [5000], 4) == 6
    assert wanted(stepwise, [0, 0, 0], 10) == 8


def test_the_fewest_and_the_most_channels_hold():
    narrow = Elasticity(80, 120, min_channels=3, max_channels=6)
    assert wanted(narrow, [5000], 4) == 6
    assert wanted(narrow, [0, 0, 0], 4) == 3
    assert wanted(narrow, [100], 1) == 3
    assert wanted(narrow, [800], 8) == 6


def test_a_target_is_the_middle_of_its_bounds():
    assert Elasticity.around(100, slack=0.2) == BOUNDS


@given(loads=st.lists(st.floats(0, 1e4), min_size=1, max_size=5), channels=st.integers(1, 60))
def test_once_followed_the_same_load_asks_for_nothing_more(loads, channels):
    first = wanted(BOUNDS, [loads[-1]] * 5, channels)
    again = wanted(BOUNDS, [loads[-1]] * 5, first)
    # Rounding up may leave few channels below the bounds; then they shrink once more, and that is all.
    assert wanted(BOUNDS, [loads[-1]] * 5, again) == again


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower": -1, "upper": 5},
        {"lower": 6, "upper": 5},
        {"lower": 0, "upper": 0},
        {"lower": 1, "upper": 5, "min_channels": 0},
        {"lower": 1, "upper": 5, "min_channels": 4, "max_channels": 3},
        {"lower": 1, "upper": 5, "max_step": 0},
        {"lower": 1, "upper": 5, "shrink_windows": 0},
    ],
    ids=str,
)
def test_bounds_that_cannot_be_met_are_refused(wrong):
    with pytest.raises(InvalidArgumentError):
        Elasticity(**wrong)
