from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics import channel_loads

PLACED_LOADS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1000)), max_size=30)


@given(PLACED_LOADS)
def test_loads_are_those_of_the_assignment_matrix(items):
    channels = [channel for channel, _ in items]
    loads = [load for _, load in items]
    assignment = np.zeros((len(items), 5))
    for item, channel in enumerate(channels):
        assignment[item, channel] = 1
    result = channel_loads(channels, loads, 5)
    assert result.tolist() == (assignment.T @ np.array(loads, dtype=float)).tolist()
    assert result.dtype == np.float64


@given(PLACED_LOADS, st.integers(1, 4))
def test_windows_are_added_up_one_by_one(items, n_windows):
    channels = [channel for channel, _ in items]
    windows = [[load + window for _, load in items] for window in range(n_windows)]
    expected = [channel_loads(channels, loads, 5).tolist() for loads in windows]
    assert channel_loads(channels, np.reshape(windows, (n_windows, len(items))), 5).tolist() == expected


def test_inputs_stay_as_they_were():
    channels, loads = np.array([1, 0]), np.array([2.0, 3.0])
    channel_loads(channels, loads, 2)
    assert (channels.tolist(), loads.tolist()) == ([1, 0], [2.0, 3.0])


@pytest.mark.parametrize(
    ("channels", "loads", "n_channels"),
    [
        pytest.param([0, 2], [1, 1], 2, id="a channel that does not exist"),
        pytest.param([0, -1], [1, 1], 2, id="a negative channel"),
        pytest.param([0.0, 1.0], [1, 1], 2, id="channels that are not integers"),
        pytest.param([[0, 1]], [1, 1], 2, id="channels with two dimensions"),
        pytest.param([0], [1, 1], 2, id="fewer channels than loads"),
        pytest.param([0, 1], [1, -1], 2, id="a negative load"),
        pytest.param([], [], 0, id="no channels to load"),
    ],
)
def test_refuses(channels, loads, n_channels):
    with pytest.raises(InvalidArgumentError):
        channel_loads(channels, loads, n_channels)
