"""The toy scenario of Gedik §2: eight keys on two, then three channels, with the balances its text reports.

The figure is lost in the text; each placement below is one that yields the reported numbers. They are printed
with two decimals, some cut off and some rounded.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from evenkeel.metrics import (
    ResourceFunction,
    ResourceProfile,
    channel_loads,
    moved_state,
    resource_loads,
    resource_ratios,
)

KEYS = "XZVRUYWL"
FREQUENCIES = np.array([5, 3, 2, 1, 4, 3, 3, 1], dtype=float)
JOIN = ResourceProfile.named("linear", "quadratic", "linear")

COMMUNICATION_2 = "XZVR|UYWL"
COMMUNICATION_3 = "XZ|UY|WVRL"
COMPUTATION_2 = "XZV|UYWRL"
COMPUTATION_3 = "X|UY|ZWVRL"
BOTH_3 = "XRL|UY|ZWV"


def channels_of(placement):
    parts = placement.split("|")
    return np.array([next(i for i, part in enumerate(parts) if key in part) for key in KEYS])


def balances(channels, n_channels):
    _, computation, communication = resource_ratios(resource_loads(FREQUENCIES, channels, n_channels, JOIN))
    return communication, computation


@pytest.mark.parametrize(
    ("placement", "communication", "computation"),
    [
        pytest.param(COMMUNICATION_2, 1.0, 1.11, id="two channels balanced by communication"),
        pytest.param(COMMUNICATION_3, 1.14, 2.26, id="three channels balanced by communication"),
        pytest.param(COMPUTATION_2, 1.2, 1.05, id="two channels balanced by computation, or by both"),
        pytest.param(COMPUTATION_3, 2.0, 1.04, id="three channels balanced by computation"),
        pytest.param(BOTH_3, 1.14, 1.23, id="three channels balanced by both"),
    ],
)
def test_balances_of_the_text(placement, communication, computation):
    n_channels = placement.count("|") + 1
    assert balances(channels_of(placement), n_channels) == pytest.approx((communication, computation), abs=0.01)


def test_loads_of_the_text():
    _, computation, communication = resource_loads(FREQUENCIES, channels_of(COMMUNICATION_2), 2, JOIN)
    assert communication.tolist() == [11, 11]
    assert computation.tolist() == [39, 35]


def test_equation_3_as_printed_does_not_give_the_loads_of_the_text():
    cost = FREQUENCIES * ResourceFunction.QUADRATIC(FREQUENCIES)
    assert channel_loads(channels_of(COMMUNICATION_2), cost, 2).tolist() == [161, 119]


@pytest.mark.parametrize(
    ("before", "after", "cost"),
    [
        pytest.param(COMMUNICATION_2, COMMUNICATION_3, 7, id="keeping communication balanced moves 7"),
        pytest.param(COMPUTATION_2, COMPUTATION_3, 10, id="keeping computation balanced moves 10"),
    ],
)
def test_migration_costs_of_the_text(before, after, cost):
    assert moved_state(FREQUENCIES, channels_of(before), channels_of(after)) == cost


def test_balancing_both_also_moves_keys_between_existing_channels():
    before, after = channels_of(COMPUTATION_2), channels_of(BOTH_3)
    destinations = after[before != after]
    assert {0, 2} <= set(destinations.tolist())


def test_the_seven_moved_cannot_be_u_and_y_as_the_text_says():
    # Of all placements with the reported balances, no two differ in just U and Y. V, R, W, L make 7, too.
    two = [c for c in map(np.array, product(range(2), repeat=8)) if balances(c, 2) == (1, 39 / 35)]
    three = []
    for channels in map(np.array, product(range(3), repeat=8)):
        if np.bincount(channels, weights=FREQUENCIES, minlength=3).min() >= 7:
            three += [channels] if balances(channels, 3) == (8 / 7, 34 / 15) else []
    moved = {"".join(np.array(list(KEYS))[a != b]) for a in two for b in three}
    assert "UY" not in moved
    assert "VRWL" in moved
