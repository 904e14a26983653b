from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics import (
    UNPLACED,
    amortised_movement,
    moved_state,
    moved_state_percent,
    relative_migration,
    routing_agreement,
)

CHANNELS = st.integers(0, 3)
ITEMS = st.lists(st.tuples(st.integers(0, 10**6), CHANNELS, st.integers(UNPLACED, 3)), max_size=20)
ROUTED = st.lists(st.tuples(CHANNELS, CHANNELS), max_size=30)


def columns(rows, n):
    return [[row[i] for row in rows] for i in range(n)]


@given(ITEMS)
def test_moved_state_is_that_of_the_items_that_change_channel(items):
    expected = sum(state for state, old, new in items if new not in {old, UNPLACED})
    assert moved_state(*columns(items, 3)) == expected


@given(ITEMS)
def test_percentage_and_relative_migration_divide_by_all_state(items):
    states, old, new = columns(items, 3)
    moved, total = moved_state(states, old, new), sum(states)
    assert moved_state_percent(states, old, new) == pytest.approx(100 * moved / total if total else 0)
    assert relative_migration(states, old, new, 4) == pytest.approx(moved / (total / 4) if total else 0)


@given(ITEMS)
def test_nothing_moves_where_nothing_changes(items):
    states, old, _ = columns(items, 3)
    assert moved_state(states, old, old) == 0


@given(ITEMS)
def test_moving_back_moves_as_much(items):
    states, old, new = columns([item for item in items if item[2] != UNPLACED], 3)
    assert moved_state(states, old, new) == moved_state(states, new, old)


@given(ITEMS.filter(bool), st.integers(1, 1000))
def test_relative_migration_does_not_depend_on_the_unit_of_state(items, factor):
    states, old, new = columns(items, 3)
    scaled = [state * factor for state in states]
    assert relative_migration(scaled, old, new, 4) == pytest.approx(relative_migration(states, old, new, 4))


def test_moving_one_fair_share_to_a_new_channel_is_a_relative_migration_of_one():
    assert relative_migration([2, 2, 2], old_channels=[0, 0, 1], new_channels=[0, 2, 1], n_channels=3) == 1


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 99), CHANNELS)),
    st.data(),
)
def test_relative_migration_with_unplaced_keys_is_the_migration_penalty_of_equation_18(old_keys, data):
    no_longer_tracked = data.draw(st.sets(st.sampled_from(sorted(old_keys)))) if old_keys else set()
    still_tracked = sorted(set(old_keys) - no_longer_tracked)
    placed = data.draw(st.sets(st.sampled_from(still_tracked))) if still_tracked else set()
    hashed = {key: data.draw(CHANNELS) for key in no_longer_tracked}
    pinned = {key: data.draw(CHANNELS) for key in placed}

    numerator = sum(old_keys[d][0] for d in no_longer_tracked if old_keys[d][1] != hashed[d])
    numerator += sum(old_keys[d][0] for d in placed if old_keys[d][1] != pinned[d])
    denominator = sum(state for state, _ in old_keys.values()) / 4
    expected = numerator / denominator if denominator else 0

    states, old = columns(list(old_keys.values()), 2)
    new = [(hashed | pinned).get(key, UNPLACED) for key in old_keys]
    assert relative_migration(states, old, new, 4) == pytest.approx(expected)


@given(st.lists(st.floats(0, 100), max_size=10), st.integers(1, 200))
def test_amortised_movement_spreads_the_sum_over_all_windows(moved, n_windows):
    assert amortised_movement(moved, n_windows=n_windows) == pytest.approx(math.fsum(moved) / n_windows)


def test_amortised_percentage_of_the_paper():
    # 48.4 % per migration and one every 24 of 120 windows. The text counts five, which would be 2.0 %; 1.6 % is four.
    assert amortised_movement([48.4] * 4, n_windows=120) == pytest.approx(1.6, abs=0.05)


@given(ROUTED)
def test_agreement_is_the_jaccard_overlap_of_tuple_and_channel(routed):
    first = {(i, a) for i, (a, _) in enumerate(routed)}
    second = {(i, b) for i, (_, b) in enumerate(routed)}
    expected = len(first & second) / len(first | second) if routed else 1
    assert routing_agreement(*columns(routed, 2)) == expected


@given(ROUTED)
def test_agreement_is_symmetric_and_complete_with_itself(routed):
    first, second = columns(routed, 2)
    assert routing_agreement(first, second) == routing_agreement(second, first)
    assert routing_agreement(first, first) == 1


def test_agreement_of_the_paper_means_that_two_thirds_go_the_same_way():
    second = np.zeros(1000, dtype=np.int64)
    second[639:] = 1
    assert routing_agreement(np.zeros(1000, dtype=np.int64), second) == pytest.approx(0.47, abs=0.001)


@pytest.mark.parametrize(
    ("states", "old", "new"),
    [
        pytest.param([1, 2], [0], [0, 1], id="too few old channels"),
        pytest.param([1, 2], [0, 0], [0], id="too few new channels"),
        pytest.param([-1], [0], [1], id="negative state"),
        pytest.param([math.nan], [0], [1], id="state that is not a number"),
        pytest.param([1], [UNPLACED], [1], id="an item that was nowhere"),
        pytest.param([1], [0], [-2], id="a channel that cannot exist"),
        pytest.param([1], [0.5], [1], id="half a channel"),
    ],
)
def test_moved_state_refuses(states, old, new):
    with pytest.raises(InvalidArgumentError):
        moved_state(states, old, new)


def test_counts_below_one_are_refused():
    with pytest.raises(InvalidArgumentError, match="n_windows must be at least 1"):
        amortised_movement([1.0], n_windows=0)
    with pytest.raises(InvalidArgumentError, match="n_channels must be at least 1"):
        relative_migration([1], [0], [1], 0)


def test_routings_of_different_lengths_are_refused():
    with pytest.raises(InvalidArgumentError, match="one entry per item"):
        routing_agreement([0, 1], [0])
