"""MinTable, MinMig and Mixed; and what all planners of the family do alike."""

from __future__ import annotations

import numpy as np
import pytest

from evenkeel.errors import InvalidArgumentError
from evenkeel.planning import Items, LoadSnapshot
from evenkeel.planning.ftlb import Ftlb
from evenkeel.planning.least_load_fit import with_power_costs
from evenkeel.planning.llfd import Llfd
from evenkeel.planning.min_mig import MinMig
from evenkeel.planning.min_table import MinTable
from evenkeel.planning.mixed import Mixed
from evenkeel.routing import ConsistentHashRing, RoutingTable
from planning import least_load_listings as listings

FAMILY = [Llfd, MinTable, MinMig, Mixed, Ftlb]
PLAIN_AND_EXCHANGE = pytest.mark.parametrize("exchange", [False, True], ids=["plain LLFD", "with exchange"])


def zipf(keys, *, slots=64, exponent=1.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    hashes = np.unique(rng.integers(-(2**62), 2**62, 2 * keys + 10))[:keys]
    counts = np.ceil(1e4 / rng.permutation(np.arange(1.0, keys + 1)) ** exponent)
    return LoadSnapshot.of_keys(hashes, counts, slots=slots, state_bytes=rng.integers(1, 100, keys), **options)


@PLAIN_AND_EXCHANGE
def test_min_table_is_the_same_as_its_definition(exchange):
    for seed in range(150):
        snapshot, table, theta_max, move_slots = listings.random_case(seed)
        case = listings.Case.of(snapshot, table, theta_max, move_slots)
        expected = case.decide(lambda case=case: listings.min_table(case, exchange=exchange))
        plan = MinTable(theta_max=theta_max, move_slots=move_slots, exchange=exchange).plan(snapshot, table)
        assert case.is_reached_by(plan.table) == expected, seed


@PLAIN_AND_EXCHANGE
@pytest.mark.parametrize("beta", [0, 1, 2])
def test_min_mig_is_the_same_as_its_definition(exchange, beta):
    for seed in range(100):
        snapshot, table, theta_max, move_slots = listings.random_case(seed)
        case = listings.Case.of(snapshot, table, theta_max, move_slots)
        expected = case.decide(lambda case=case: listings.min_mig(case, beta, exchange=exchange))
        planner = MinMig(theta_max=theta_max, move_slots=move_slots, exchange=exchange, beta=beta)
        assert case.is_reached_by(planner.plan(snapshot, table).table) == expected, seed


@PLAIN_AND_EXCHANGE
@pytest.mark.parametrize("table_limit", [None, 0, 3, 8])
def test_mixed_is_the_same_as_its_definition(exchange, table_limit):
    for seed in range(80):
        snapshot, table, theta_max, move_slots = listings.random_case(seed)
        case = listings.Case.of(snapshot, table, theta_max, move_slots)
        expected = case.decide(lambda case=case: listings.mixed(case, 1, table_limit, exchange=exchange), table_limit)
        planner = Mixed(theta_max=theta_max, move_slots=move_slots, exchange=exchange, table_limit=table_limit)
        assert case.is_reached_by(planner.plan(snapshot, table).table) == expected, seed


def test_min_table_keeps_the_table_shorter_and_min_mig_moves_less():
    snapshot = zipf(2000)
    table = RoutingTable.even(8, slots=64).with_pins(snapshot.key_hashes[::10], snapshot.key_hashes[::10] // 64 % 8)
    by_table, by_state = MinTable(theta_max=0.05).plan(snapshot, table), MinMig(theta_max=0.05).plan(snapshot, table)
    assert len(by_table.table.pin_hashes) < len(by_state.table.pin_hashes)
    assert by_table.movement.state_bytes > by_state.movement.state_bytes
    for plan in (by_table, by_state):
        assert plan.before.skewness > 1.2
        assert plan.after.skewness <= 1.05 + 1e-9


def test_mixed_keeps_its_bound_between_the_two():
    snapshot = zipf(2000)
    table = RoutingTable.even(8, slots=64).with_pins(snapshot.key_hashes[::10], snapshot.key_hashes[::10] // 64 % 8)
    free = MinMig(theta_max=0.05).plan(snapshot, table)
    pins = [len(free.table.pin_hashes)]
    sent = [free.movement.state_bytes]
    assert Mixed(theta_max=0.05).plan(snapshot, table).table == free.table
    for table_limit in (250, 200, 170):
        plan = Mixed(theta_max=0.05, table_limit=table_limit).plan(snapshot, table)
        assert len(plan.table.pin_hashes) <= table_limit
        assert plan.after.skewness <= 1.05 + 1e-9
        assert "sent back" in " ".join(plan.reasons)
        pins.append(len(plan.table.pin_hashes))
        sent.append(plan.movement.state_bytes)
    assert pins == sorted(pins, reverse=True)
    assert sent == sorted(sent)


def test_mixed_says_when_no_table_fits():
    snapshot = zipf(2000)
    plan = Mixed(theta_max=0.01, table_limit=1).plan(snapshot, RoutingTable.even(8, slots=64))
    assert len(plan.table.pin_hashes) > 1
    assert "No table with at most 1 pins" in " ".join(plan.reasons)


@pytest.mark.parametrize("planner", [Mixed(theta_max=9, table_limit=5), Ftlb(theta_max=9, table_limit=5)])
def test_a_table_that_is_too_long_is_reason_enough(planner):
    snapshot = zipf(200)
    table = RoutingTable.even(4, slots=64).with_pins(snapshot.key_hashes[:20], [1] * 20)
    assert len(planner.plan(snapshot, table).table.pin_hashes) <= 5


@pytest.mark.parametrize("planner", [MinTable, MinMig, Mixed])
def test_plain_llfd_overloads_the_channel_that_takes_a_hot_key_and_exchange_does_not(planner):
    snapshot, table = zipf(2000), RoutingTable.even(8, slots=64)
    assert planner(theta_max=0.02, exchange=False).plan(snapshot, table).after.skewness > 1.1
    assert planner(theta_max=0.02).plan(snapshot, table).after.skewness <= 1.02 + 1e-9


# -- what all of them do alike ----------------------------------------------------------------------------------------


@pytest.fixture(params=FAMILY, ids=[planner.name for planner in FAMILY])
def planner(request):
    return request.param


EMPTY = LoadSnapshot.of_keys(np.empty(0, np.int64), [], slots=8)


@pytest.mark.parametrize("channels", [1, 3, 4, 7])
def test_nothing_measured(planner, channels):
    plan = planner().plan(EMPTY, RoutingTable.even(4, slots=8).with_pins([5, 6], [3, 0]), channels)
    assert plan.own_after == 0
    if channels == 4:
        assert plan.changes_nothing


def test_a_balanced_table_is_left_alone(planner):
    snapshot = LoadSnapshot.of_keys(np.arange(8), [10, 9, 11, 10, 0, 0, 1, 0], slots=8)
    table = RoutingTable.even(4, slots=8)
    plan = planner(theta_max=0.2).plan(snapshot, table)
    assert plan.table is table
    assert "No channel is above 1.2 times the average" in plan.reasons[0]


def test_one_channel(planner):
    table = RoutingTable.even(1, slots=64)
    assert planner(theta_max=0).plan(zipf(30), table).table is table


def test_more_channels_than_keys(planner):
    snapshot = LoadSnapshot.of_keys(np.arange(3), [3, 2, 1], slots=4)
    plan = planner(theta_max=0).plan(snapshot, RoutingTable(np.zeros(4, np.int32), 10))
    assert sorted(snapshot.per_channel(plan.table))[-3:] == [1, 2, 3]


def test_one_key_alone_moves_nowhere(planner):
    table = RoutingTable.even(4, slots=8)
    plan = planner(theta_max=0).plan(LoadSnapshot.of_keys(np.array([5]), [7], slots=8), table)
    assert plan.table is table
    assert "more than one channel may carry" in " ".join(plan.reasons)


def test_a_hot_key_over_the_average_gets_a_channel_of_its_own(planner):
    snapshot = LoadSnapshot.of_keys(np.arange(31), [100] + [2] * 30, slots=64)
    plan = planner(theta_max=0.02).plan(snapshot, RoutingTable.even(4, slots=64))
    assert plan.after.imbalance == 100 - 160 / 4
    assert "no placement helps" in " ".join(plan.reasons)
    again = planner(theta_max=0.02).plan(snapshot, plan.table)
    assert again.table is plan.table
    assert "no better: nothing moves" in again.reasons[0]


def test_items_without_load_are_left_where_they_are(planner):
    counts = [40, 30, 20, 10, 0, 0, 0, 0]
    snapshot = LoadSnapshot.of_keys(np.arange(8), counts, slots=8, state_bytes=[5] * 8)
    table = RoutingTable(np.zeros(8, np.int32), 2)
    plan = planner(theta_max=0).plan(snapshot, table)
    assert not plan.changes_nothing
    assert plan.table.home(np.arange(4, 8)).tolist() == [0] * 4
    assert plan.table.slot_channels.tolist() == [0] * 8


def test_keys_that_vanished_from_the_statistics_do_no_harm(planner):
    snapshot = zipf(300)
    table = planner(theta_max=0.05).plan(snapshot, RoutingTable.even(5, slots=64)).table
    plan = planner(theta_max=0.05).plan(zipf(100, seed=1), table)
    assert plan.after.skewness < plan.before.skewness


@pytest.mark.parametrize(("before", "after"), [(4, 6), (6, 4), (5, 1), (1, 5), (3, 12)])
def test_the_number_of_channels_changes(planner, before, after):
    snapshot = zipf(3000, slots=256, exponent=0.7)
    table = RoutingTable.from_ring(ConsistentHashRing(before), 256)
    table = table.with_pins(snapshot.key_hashes[:50], np.arange(50) % before)
    plan = planner(theta_max=0.05).plan(snapshot, table, after)
    assert plan.table.channels == after
    assert plan.after.skewness <= 1.05 + 1e-9


@pytest.mark.parametrize("seed", range(0, 120, 40))
def test_plans_validate_whatever_the_table_and_the_number_of_channels(planner, seed):
    for at in range(seed, seed + 40):
        snapshot, table, theta_max, move_slots = listings.random_case(at, replicas=True, splits=False)
        for channels in (1, table.channels, table.channels + 2, max(1, table.channels - 2)):
            options = {"table_limit": at % 5} if planner in {Mixed, Ftlb} else {}
            plan = planner(theta_max=theta_max, move_slots=move_slots, **options).plan(snapshot, table, channels)
            if channels == table.channels and not options:
                assert plan.after.imbalance <= plan.before.imbalance + 1e-6
            again = planner(theta_max=theta_max, move_slots=move_slots, **options).plan(snapshot, table, channels)
            assert again.table == plan.table, at


def test_inputs_are_not_changed(planner):
    snapshot, table, _, _ = listings.random_case(3)
    items = Items.of(snapshot, table)
    planner(theta_max=0).plan(snapshot, table)
    again = Items.of(snapshot, table)
    assert np.array_equal(items.homes, again.homes)
    assert np.array_equal(items.loads, again.loads)


def test_slots_move_only_if_they_may(planner):
    snapshot = zipf(2000, track=20, exponent=0.5)
    table = RoutingTable(np.arange(64, dtype=np.int32) % 7, 8)
    stay = planner(theta_max=0.05, move_slots=False).plan(snapshot, table)
    assert np.array_equal(stay.table.slot_channels, table.slot_channels)
    move = planner(theta_max=0.05).plan(snapshot, table)
    assert move.after.skewness < stay.after.skewness
    assert move.after.skewness <= 1.05 + 1e-9


def test_costs_may_be_a_power_of_the_counts(planner):
    snapshot = LoadSnapshot.of_keys(np.arange(4), [4, 3, 3, 2], slots=4, costs=[1, 1, 1, 1])
    table = RoutingTable.even(2, slots=4)
    plan = planner(theta_max=0, alpha=2).plan(snapshot, table)
    squares = snapshot.key_counts**2
    loads = np.bincount(plan.table.home(snapshot.key_hashes), weights=squares)
    assert sorted(loads) == [18, 20]
    assert plan.own_after == pytest.approx(1 / 19)


def test_with_power_costs_counts_a_rest_as_many_equal_keys():
    snapshot = LoadSnapshot.of_keys(np.arange(9), [9] + [4] * 8, slots=2, track=1)
    powered = with_power_costs(snapshot, 0.5)
    assert powered.key_costs.tolist() == [3]
    assert powered.slot_costs.tolist() == [8, 8]
    assert with_power_costs(snapshot, None) is snapshot


@pytest.mark.parametrize(
    ("planner", "options", "named"),
    [
        (MinMig, {"beta": -1}, "beta"),
        (Mixed, {"table_limit": -1}, "table_limit"),
        (Mixed, {"theta_max": -1}, "theta_max"),
        (Ftlb, {"beta": float("nan")}, "beta"),
        (Ftlb, {"gamma": float("inf")}, "gamma"),
        (Ftlb, {"table_limit": -3}, "table_limit"),
    ],
)
def test_options_out_of_range_are_refused(planner, options, named):
    with pytest.raises(InvalidArgumentError, match=named):
        planner(**options)


@pytest.mark.parametrize("beta", [0.0, 0.5, 40.0])
def test_no_beta_breaks_the_index(beta):
    rng = np.random.default_rng(0)
    costs = 10.0 ** rng.uniform(-200, 2, 300)
    snapshot = LoadSnapshot.of_keys(np.arange(300), costs, slots=8, state_bytes=rng.integers(0, 3, 300))
    for planner in (MinMig(beta=beta, theta_max=0.3), Ftlb(beta=beta, theta_max=0.3)):
        plan = planner.plan(snapshot, RoutingTable(np.zeros(8, np.int32), 3))
        assert plan.after.imbalance == pytest.approx(costs.max() - costs.sum() / 3)  # the hottest key, alone
