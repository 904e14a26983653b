from __future__ import annotations

import numpy as np
import pytest

from evenkeel.planning import LoadSnapshot
from evenkeel.planning.ftlb import Ftlb
from evenkeel.planning.min_mig import MinMig
from evenkeel.routing import Action, Ragged, RoutingTable
from planning import least_load_listings as listings


@pytest.mark.parametrize("replicas", [False, True], ids=["without replicas", "with replicas"])
@pytest.mark.parametrize(("beta", "gamma"), [(1, -1), (0, 1), (2, 0)])
def test_the_same_as_the_listing(replicas, beta, gamma):
    for seed in range(120):
        snapshot, table, theta_max, move_slots = listings.random_case(seed, replicas=replicas)
        case = listings.Case.of(snapshot, table, theta_max, move_slots)
        expected = case.decide(lambda case=case: listings.ftlb(case, beta, gamma, None))
        planner = Ftlb(theta_max=theta_max, move_slots=move_slots, beta=beta, gamma=gamma)
        assert case.is_reached_by(planner.plan(snapshot, table).table) == expected, seed


@pytest.mark.parametrize("table_limit", [0, 4])
def test_the_same_as_the_listing_with_a_bounded_table(table_limit):
    for seed in range(100):
        snapshot, table, theta_max, move_slots = listings.random_case(seed, replicas=True)
        case = listings.Case.of(snapshot, table, theta_max, move_slots)
        expected = case.decide(lambda case=case: listings.ftlb(case, 1, -1, table_limit), table_limit)
        planner = Ftlb(theta_max=theta_max, move_slots=move_slots, table_limit=table_limit)
        assert case.is_reached_by(planner.plan(snapshot, table).table) == expected, seed


def test_without_replicas_it_is_min_mig_with_exchange():
    for seed in range(50):
        snapshot, table, theta_max, _ = listings.random_case(seed)
        ours, theirs = (planner(theta_max=theta_max).plan(snapshot, table) for planner in (Ftlb, MinMig))
        assert ours.table == theirs.table


def spread_over(channels, *, keys=4000, replicas, seed=0):
    rng = np.random.default_rng(seed)
    hashes = np.unique(rng.integers(-(2**62), 2**62, keys))
    counts = np.ceil(1e4 / rng.permutation(np.arange(1.0, len(hashes) + 1)) ** 0.8)
    snapshot = LoadSnapshot.of_keys(hashes, counts, slots=256, state_bytes=rng.integers(1, 100, len(hashes)))
    table = RoutingTable.even(channels, slots=256)
    rows = [
        rng.permutation([other for other in range(channels) if other != home])[:replicas].tolist()
        for home in table.slot_channels.tolist()
    ]
    return snapshot, table.evolve(slot_backups=Ragged.of(rows))


@pytest.mark.parametrize("theta_max", [0.02, 0.1])
@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_no_channel_ends_overloaded(theta_max, replicas):
    snapshot, table = spread_over(10, replicas=replicas)
    plan = Ftlb(theta_max=theta_max).plan(snapshot, table)
    assert plan.before.skewness > 1 + theta_max
    assert plan.after.skewness <= 1 + theta_max + 1e-9


def test_roles_are_switched_and_more_replicas_mean_less_movement():
    sent = []
    for replicas in (0, 1, 3):
        snapshot, table = spread_over(10, replicas=replicas)
        plan = Ftlb(theta_max=0.02).plan(snapshot, table)
        assert (plan.movement.switches > 0) == (replicas > 0)
        sent.append(plan.movement.state_bytes)
    assert sent[0] > sent[1] > sent[2]


def test_a_switch_of_roles_sends_nothing_and_leaves_a_backup_behind():
    snapshot = LoadSnapshot.of_keys(np.array([0, 4, 8, 1, 2]), [6, 5, 1, 4, 5], slots=4)
    table = RoutingTable.even(3, slots=4).with_pins([4], [0]).evolve(pin_hashes=[4], pin_channels=[0])
    table = table.evolve(pin_backups=Ragged.of([[1]]))
    plan = Ftlb(theta_max=0.3).plan(snapshot, table)
    assert plan.moves.actions.tolist() == [Action.SWITCH]
    assert plan.movement.state_bytes == 0
    assert plan.table.home(np.array([4])).tolist() == [1]
    assert plan.table.backups(np.array([4])).tolist() == [[0]]
    assert "1 by a switch of roles" in plan.reasons[0]


def test_no_backup_beside_its_active_copy():
    for seed in range(60):
        snapshot, table, theta_max, _ = listings.random_case(seed, replicas=True, splits=False)
        new = Ftlb(theta_max=theta_max).plan(snapshot, table).table
        everything = np.union1d(snapshot.key_hashes, table.pin_hashes)
        homes, backups = new.home(everything), new.backups(everything)
        assert not (homes[backups.rows] == backups.channels).any()


def test_gamma_spares_replicated_keys_or_takes_them_first():
    snapshot = LoadSnapshot.of_keys(np.array([0, 2, 1]), [5, 5, 2], slots=2)
    table = RoutingTable.even(3, slots=2).with_pins([0, 2], [0, 0])
    table = table.evolve(pin_backups=Ragged.of([[], [2]]))
    assert Ftlb(theta_max=0.3, gamma=1).plan(snapshot, table).moves.ids.tolist() == [0]
    assert Ftlb(theta_max=0.3, gamma=-1).plan(snapshot, table).moves.ids.tolist() == [2]


def test_a_heavy_key_is_exchanged_for_lighter_ones():
    # Channel 0 has to give up its 6; no channel has room for it, but channel 1 can make room by giving up its 1 and 2.
    snapshot = LoadSnapshot.of_keys(np.arange(6), [6, 6, 1, 2, 3, 0], slots=8, state_bytes=[1, 9, 1, 1, 1, 0])
    table = RoutingTable(np.array([0, 0, 1, 1, 1, 1, 1, 1]), 2)
    plan = Ftlb(theta_max=0).plan(snapshot, table)
    assert sorted(snapshot.per_channel(plan.table)) == [9, 9]


def test_what_no_channel_can_take_goes_where_the_least_stays():
    # Two keys above the average on one channel: each ends alone on a channel, whatever lighter was there.
    snapshot = LoadSnapshot.of_keys(np.arange(12), [50, 50] + [3] * 10, slots=16)
    table = RoutingTable(np.array([0, 0] + [1, 2] * 7), 4)
    plan = Ftlb(theta_max=0.02).plan(snapshot, table)
    assert sorted(snapshot.per_channel(plan.table)) == [15, 15, 50, 50]
    assert "2 channels stay overloaded" in " ".join(plan.reasons)


def test_when_a_channel_vanishes_its_replicated_keys_are_switched():
    snapshot, table = spread_over(6, replicas=2)
    plan = Ftlb(theta_max=0.1).plan(snapshot, table, 5)
    assert plan.after.skewness <= 1.1 + 1e-9
    gone = np.flatnonzero(table.slot_channels == 5)
    slots = plan.moves.ids[~plan.moves.is_key]
    switched = slots[plan.moves.actions[~plan.moves.is_key] == Action.SWITCH]
    assert set(gone.tolist()) <= set(switched.tolist())  # two backups each: at least one is left
    assert plan.movement.percent < MinMig(theta_max=0.1).plan(snapshot, table, 5).movement.percent / 2
