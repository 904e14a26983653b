from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.metrics import (
    Resource,
    ResourceFunction,
    ResourceProfile,
    channel_loads,
    relative_imbalance,
    relative_imbalances,
    resource_loads,
    resource_ratios,
)

PLACED_KEYS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50)), min_size=1, max_size=20)
TOLERANCES = st.floats(1, 4)


@pytest.mark.parametrize(
    ("name", "load"),
    [
        pytest.param("constant", lambda _: 1, id="constant is one per key"),
        pytest.param("linear", lambda x: x, id="linear is the frequency"),
        pytest.param("quadratic", lambda x: x * x, id="quadratic is the square of the frequency"),
    ],
)
def test_resource_function(name, load):
    assert ResourceFunction(name)([0.0, 0.5, 3.0]).tolist() == [load(0.0), load(0.5), load(3.0)]


@given(PLACED_KEYS)
def test_loads_sum_the_resource_function_over_the_keys_of_a_channel(keys):
    profile = ResourceProfile.named("constant", "quadratic", "linear")
    functions = [lambda _: 1, lambda x: x**2, lambda x: x]
    expected = [[sum(f(x) for c, x in keys if c == channel) for channel in range(3)] for f in functions]
    loads = resource_loads([x for _, x in keys], [c for c, _ in keys], 3, profile)
    assert loads.tolist() == expected


@given(PLACED_KEYS)
def test_equation_3_as_printed_holds_for_a_cost_per_tuple(keys):
    channels, frequencies = [c for c, _ in keys], np.array([x for _, x in keys], dtype=float)
    per_tuple = ResourceFunction.LINEAR(frequencies)
    printed = channel_loads(channels, frequencies * per_tuple, 3)
    ours = resource_loads(frequencies, channels, 3, ResourceProfile.named(computation="quadratic"))[1]
    assert ours.tolist() == printed.tolist()


@given(st.lists(st.lists(st.integers(1, 1000), min_size=4, max_size=4), min_size=3, max_size=3), TOLERANCES)
def test_relative_imbalance_is_that_of_equation_11(loads, tolerance):
    profile = ResourceProfile.named(tolerance=tolerance)
    ratios = [max(row) / min(row) for row in loads]
    product = math.prod(ratio / tolerance for ratio in ratios)
    assert resource_ratios(loads).tolist() == ratios
    assert relative_imbalances(loads, profile).tolist() == [ratio / tolerance for ratio in ratios]
    assert relative_imbalance(loads, profile) == pytest.approx(product ** (1 / 3))


@given(TOLERANCES, TOLERANCES, TOLERANCES)
def test_relative_imbalance_is_one_at_the_limit(state, computation, communication):
    linear = ResourceFunction.LINEAR
    profile = ResourceProfile(Resource(linear, state), Resource(linear, computation), Resource(linear, communication))
    loads = [[resource.tolerance, 1.0, 1.0] for resource in profile]
    assert relative_imbalance(loads, profile) == 1


def test_an_idle_channel_is_infinitely_imbalanced():
    assert relative_imbalance([[1, 0], [1, 1], [1, 1]], ResourceProfile.named()) == math.inf


def test_an_unknown_resource_function_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'linear'"):
        ResourceProfile.named(state="linaer")


@pytest.mark.parametrize("tolerance", [0.99, math.nan, math.inf], ids=["below one", "NaN", "infinite"])
def test_a_tolerance_that_cannot_be_met_is_refused(tolerance):
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        Resource(ResourceFunction.LINEAR, tolerance)


def test_loads_need_a_row_for_each_resource():
    with pytest.raises(InvalidArgumentError, match="state, computation and communication"):
        resource_ratios([[1, 2], [1, 2]])
