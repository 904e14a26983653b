from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.metrics import (
    ResourceProfile,
    UtilityFunction,
    allowed_deviation,
    balance_penalties,
    balance_penalty,
    combined_objective,
)

LINEAR = ResourceProfile.named("linear", "linear", "linear")
PENALTIES = st.floats(0, 1e6)
LITERAL_UTILITIES = {
    "A": lambda rho, _gamma: rho,
    "APM": lambda rho, gamma: rho + gamma,
    "APLM": lambda rho, gamma: rho + math.log(1 + gamma),
    "ATM": lambda rho, gamma: rho * (1 + gamma),
    "ATLM": lambda rho, gamma: rho * (1 + math.log(1 + gamma)),
}


def resource_rows(low):
    row = st.lists(st.integers(low, 1000), min_size=4, max_size=4)
    return st.lists(row, min_size=3, max_size=3)


def literal_penalty(loads, tolerance):
    mean = sum(loads) / len(loads)
    return (max(loads) - min(loads)) / (allowed_deviation(tolerance, len(loads)) * mean)


@given(resource_rows(1), st.floats(1.01, 4))
def test_penalties_are_those_of_equation_19(rows, tolerance):
    profile = ResourceProfile.named("linear", "quadratic", "linear", tolerance=tolerance)
    expected = [literal_penalty(loads, tolerance) for loads in rows]
    assert balance_penalties(rows, profile) == pytest.approx(expected)
    assert balance_penalty(rows, profile) == pytest.approx(math.prod(expected) ** (1 / 3))


@given(resource_rows(1))
def test_constant_resources_are_left_out_of_the_mean(rows):
    state, _, communication = (literal_penalty(loads, 1.2) for loads in rows)
    assert balance_penalty(rows, ResourceProfile.named()) == pytest.approx(math.sqrt(state * communication))


@given(resource_rows(0), st.randoms())
def test_order_of_channels_does_not_matter_to_the_penalty(rows, random):
    shuffled = [random.sample(loads, len(loads)) for loads in rows]
    assert balance_penalties(shuffled, LINEAR) == pytest.approx(balance_penalties(rows, LINEAR))


@given(resource_rows(0), st.floats(1e-6, 1e6))
def test_the_unit_does_not_matter_to_the_penalty(rows, factor):
    scaled = np.array(rows) * factor
    assert balance_penalties(scaled, LINEAR) == pytest.approx(balance_penalties(rows, LINEAR))


def test_a_placement_with_an_empty_channel_still_has_a_finite_penalty():
    assert 0 < balance_penalty([[1, 0], [1, 0], [1, 0]], LINEAR) < math.inf


@pytest.mark.parametrize(
    ("loads", "profile", "expected"),
    [
        pytest.param([[0, 0]] * 3, LINEAR, 0, id="nothing placed yet is balanced"),
        pytest.param([[5]] * 3, LINEAR, 0, id="one channel is balanced"),
        pytest.param([[2, 2]] * 3, ResourceProfile.named(tolerance=1.0), 0, id="equal loads need no tolerance"),
        pytest.param([[3, 1]] * 3, ResourceProfile.named(tolerance=1.0), math.inf, id="a gap where none is allowed"),
        pytest.param(
            [[3, 1], [1, 1], [1, 1]],
            ResourceProfile.named(tolerance=1.0),
            math.inf,
            id="a forbidden gap is not excused by the balance of another resource",
        ),
        pytest.param(
            [[3, 1]] * 3,
            ResourceProfile.named(*["constant"] * 3),
            0,
            id="constant resources alone need no balance",
        ),
    ],
)
def test_balance_penalty_of(loads, profile, expected):
    assert balance_penalty(loads, profile) == expected


@pytest.mark.parametrize("name", LITERAL_UTILITIES)
@given(balance=PENALTIES, migration=PENALTIES)
def test_utility_is_that_of_the_paper(name, balance, migration):
    utility = UtilityFunction(name)(balance, migration)
    assert type(utility) is float
    assert utility == pytest.approx(LITERAL_UTILITIES[name](balance, migration))


@pytest.mark.parametrize("name", LITERAL_UTILITIES)
@given(st.lists(st.tuples(PENALTIES, PENALTIES), max_size=5))
def test_utility_of_many_candidates_is_that_of_each(name, candidates):
    balance, migration = np.reshape(candidates, (-1, 2)).T
    utility = UtilityFunction(name)
    assert utility(balance, migration) == pytest.approx([utility(b, m) for b, m in candidates])


@pytest.mark.parametrize("utility", UtilityFunction)
@given(balance=PENALTIES, migration=PENALTIES, more=PENALTIES)
def test_utility_never_improves_with_a_higher_penalty(utility, balance, migration, more):
    assert utility(balance + more, migration) >= utility(balance, migration)
    assert utility(balance, migration + more) >= utility(balance, migration)


@given(PENALTIES, PENALTIES)
def test_combined_objective_is_that_of_equation_13(imbalance, migration):
    assert combined_objective(imbalance, migration) == imbalance * (1 + migration)


def test_an_infinite_imbalance_stays_infinite():
    assert combined_objective(math.inf, 0) == math.inf


@pytest.mark.parametrize(
    ("balance", "migration"),
    [
        pytest.param(-1.0, 0.0, id="a negative balance penalty"),
        pytest.param(math.nan, 0.0, id="a balance penalty that is not a number"),
        pytest.param(0.0, -1.0, id="a negative migration penalty"),
        pytest.param(0.0, math.inf, id="an infinite migration penalty"),
    ],
)
def test_utility_refuses(balance, migration):
    with pytest.raises(InvalidArgumentError):
        UtilityFunction.BALANCE(balance, migration)


def test_an_unknown_utility_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Known: A, APLM, APM, ATLM, ATM"):
        UtilityFunction("B")
