"""ELB beside a transcription of Algorithm 1."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from evenkeel.errors import InvalidArgumentError
from evenkeel.planning import LoadSnapshot
from evenkeel.planning.elb import Elb
from evenkeel.routing import RoutingTable
from planning.dealing_problems import as_lists, random_problem


def algorithm_1(loads, homes, fixed_for, asked, *, bounds=None, tolerance=0.1, whole_excess=False):
    """Algorithm 1 line by line, with the documented deviations; gives the number of channels and the homes."""
    y, f = loads, list(homes)
    # Phase 1: preparing
    w = sum(y) + sum(fixed_for(1))
    if bounds:
        v, u = bounds
        pi = max(1, math.ceil(Fraction(2) * Fraction(w) / Fraction(u + v)))
        middle, slack = (u + v) / 2, (u - v) / 2
    else:
        pi = asked
        middle, slack = w / pi, w / pi * tolerance
    mean = w / pi
    held = [fixed_for(pi)[c] + sum(y[i] for i in range(len(y)) if f[i] == c) for c in range(pi)]
    overloaded = [c for c in range(pi) if held[c] > mean]
    underloaded = [c for c in range(pi) if c not in overloaded]
    queue = []
    # Phase 2: identifying
    for j in overloaded:
        theta = min(held[j] - mean, slack)
        s_k = [i for i in range(len(y)) if f[i] == j and y[i] > 0]
        while True:
            fitting = [i for i in s_k if y[i] < theta]
            if not fitting:
                break
            s_i = min(fitting, key=lambda i: (-y[i], i))
            queue.append(s_i)
            held[j] -= y[s_i]
            theta = min(held[j] - mean, slack) if whole_excess else theta - y[s_i]
            s_k.remove(s_i)
    removed = [i for i in range(len(y)) if f[i] >= pi]
    queue += [i for i in removed if y[i] > 0]
    # Phase 3: reassigning
    while queue:
        s_i = min(queue, key=lambda i: (-y[i], i))
        queue.remove(s_i)
        o_j = min(underloaded or range(pi), key=lambda c: (held[c], c))
        f[s_i] = o_j
        held[o_j] += y[s_i]
        if held[o_j] >= middle and o_j in underloaded:
            underloaded.remove(o_j)
    for turn, i in enumerate(i for i in removed if y[i] == 0):
        f[i] = turn % pi
    return pi, f


@pytest.mark.parametrize("whole_excess", [False, True], ids=["theta shrinks as printed", "the whole excess is shed"])
@pytest.mark.parametrize("keys", ["pinned", "tracked"])
def test_it_is_algorithm_1_for_the_number_of_channels_asked_for(keys, whole_excess):
    for seed in range(250):
        snapshot, table, channels = random_problem(seed)
        items, loads, homes, fixed_for = as_lists(snapshot, table, keys)
        tolerance = [0.0, 0.1, 0.5, 2.0][seed % 4]
        planner = Elb(tolerance=tolerance, keys=keys, whole_excess=whole_excess)
        _, expected = algorithm_1(loads, homes, fixed_for, channels, tolerance=tolerance, whole_excess=whole_excess)
        assert planner.plan(snapshot, table, channels).table == items.table_with(expected, channels), seed


@pytest.mark.parametrize("keys", ["pinned", "tracked"])
def test_it_is_algorithm_1_with_bounds_that_decide_the_number_of_channels(keys):
    grown = shrunk = 0
    for seed in range(250):
        snapshot, table, channels = random_problem(seed)
        rng = np.random.default_rng(seed)
        v, u = (float(bound) for bound in np.sort(rng.integers(1, 100, 2)))
        items, loads, homes, fixed_for = as_lists(snapshot, table, keys)
        pi, expected = algorithm_1(loads, homes, fixed_for, channels, bounds=(v, u), whole_excess=True)
        plan = Elb(lower=v, upper=u, keys=keys).plan(snapshot, table, channels)
        assert plan.table == items.table_with(expected, pi), seed
        assert plan.table.channels == pi
        grown, shrunk = grown + (pi > table.channels), shrunk + (pi < table.channels)
    assert min(grown, shrunk) > 20


@pytest.mark.parametrize("whole_excess", [False, True])
def test_it_moves_only_from_channels_over_the_average_to_those_under_it(whole_excess):
    moved = 0
    for seed in range(200):
        snapshot, table, _ = random_problem(seed, resize=False)
        loads = snapshot.per_channel(table)
        plan = Elb(tolerance=1.0, whole_excess=whole_excess).plan(snapshot, table)
        assert (loads[plan.moves.sources] > loads.mean()).all()
        assert (loads[plan.moves.targets] <= loads.mean()).all()
        assert plan.own_after <= plan.own_before * (1 + 1e-12)
        moved += len(plan.moves)
    assert moved > 100


def slots_of(*loads):
    return LoadSnapshot(loads, loads, np.ones(len(loads), int), [], [], [], [])


def test_equal_loads_stay_where_they_are():
    snapshot, table = slots_of(1.1, 2.2, 2.2, 1.1, 3.3), RoutingTable([0, 0, 1, 1, 2], channels=3)
    plan = Elb(whole_excess=True, tolerance=1).plan(snapshot, table)
    assert plan.table is table
    assert plan.changes_nothing


def test_every_channel_ends_in_the_range_where_substreams_are_fine_and_the_whole_excess_may_leave():
    rng = np.random.default_rng(5)
    loads = rng.integers(1, 6, 400).astype(float)
    table = RoutingTable(rng.integers(0, 8, 400) ** 2 // 8, channels=8)
    plan = Elb(whole_excess=True).plan(slots_of(*loads), table)
    after = slots_of(*loads).per_channel(plan.table)
    assert np.abs(after / after.mean() - 1).max() <= 0.1


def test_as_printed_no_channel_sheds_more_than_half_the_range_in_one_window():
    loads = np.ones(100)
    table = RoutingTable(np.zeros(100, np.int32), channels=2)
    printed = Elb(tolerance=0.1, whole_excess=False).plan(slots_of(*loads), table)
    whole = Elb(tolerance=0.1).plan(slots_of(*loads), table)
    assert printed.movement.moves == 4  # under 0.1 · 50
    assert whole.movement.moves == 49  # under the excess of 50
    for _ in range(30):
        printed = Elb(tolerance=0.1, whole_excess=False).plan(slots_of(*loads), printed.table)
    assert printed.after.skewness < 1.1


def test_a_whole_ratio_adds_no_channel_by_rounding():
    loads = [0.1] * 30  # their float sum is a hair over 3
    assert sum(loads) * 10 / 3 != 10
    table = RoutingTable(np.zeros(30, np.int32), channels=1)
    assert Elb(lower=0.2, upper=0.4).plan(slots_of(*loads), table).table.channels == 10
    assert Elb(lower=0.2, upper=0.3999).plan(slots_of(*loads), table).table.channels == 11


def test_the_channels_with_the_highest_numbers_vanish_even_if_others_carry_less():
    snapshot, table = slots_of(1, 9, 5), RoutingTable([0, 1, 2], channels=3)
    plan = Elb(lower=5, upper=10).plan(snapshot, table)
    assert plan.table.slot_channels.tolist() == [0, 1, 0]
    assert plan.table.channels == 2


def test_when_all_are_full_the_least_loaded_of_all_takes_the_rest():
    # 2w / (u + v) is 1 but for a rounding error, so one channel is to take all; it is full after the second substream.
    snapshot, table = slots_of(0.5, 0.5, 1e-10), RoutingTable([0, 1, 1], channels=2)
    plan = Elb(lower=0.5, upper=1.5).plan(snapshot, table)
    assert plan.table.slot_channels.tolist() == [0, 0, 0]


def test_a_substream_over_half_the_range_stays_and_is_reported():
    snapshot, table = slots_of(100, 1, 1, 1), RoutingTable([0, 0, 0, 1], channels=2)
    plan = Elb().plan(snapshot, table)
    assert plan.table.slot_channels[0] == 0
    assert any("1 substreams are heavier than (u - v)/2" in reason for reason in plan.reasons)


def test_the_bounds_override_the_number_of_channels_asked_for():
    snapshot, table = slots_of(*[1.0] * 40), RoutingTable.even(4, 40)
    assert Elb(lower=4, upper=6).plan(snapshot, table, 2).table.channels == 8
    assert Elb(lower=30, upper=50).plan(snapshot, table, 2).table.channels == 1
    assert Elb(lower=1e6, upper=1e7).plan(snapshot, table).table.channels == 1


@pytest.mark.parametrize(
    "options",
    [
        {"lower": 1.0},
        {"upper": 1.0},
        {"lower": 2, "upper": 1},
        {"lower": 0, "upper": 0},
        {"lower": -1, "upper": 1},
        {"lower": 0, "upper": math.inf},
        {"tolerance": -0.1},
        {"tolerance": math.nan},
        {"keys": "all"},
    ],
)
def test_senseless_options_are_refused(options):
    with pytest.raises(InvalidArgumentError):
        Elb(**options)


def test_a_load_that_asks_for_absurdly_many_channels_is_refused():
    with pytest.raises(InvalidArgumentError, match="higher bounds"):
        Elb(lower=0, upper=1e-9).plan(slots_of(1e6), RoutingTable.even(1, 1))
