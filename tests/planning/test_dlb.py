"""DLB beside a transcription of Algorithm 1."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from evenkeel.errors import InvalidArgumentError
from evenkeel.planning import LoadSnapshot
from evenkeel.planning.dlb import DlbH, DlbL
from evenkeel.routing import RoutingTable
from planning.dealing_problems import as_lists, random_problem, settle_by_hand

POLICIES = pytest.mark.parametrize("planner", [DlbH, DlbL], ids=["heaviest", "lightest"])


def squared_score(loads):
    """(std / mean)² + 1, exactly: the loads are multiples of a half."""
    halves = [int(2 * load) for load in loads]
    total = sum(halves)
    return Fraction(len(halves) * sum(load * load for load in halves), total * total) if total else Fraction(1)


def algorithm_1(keys_load, keys_map, eng_load, theta, policy, *, reset=True, improving=True):
    """Algorithm 1 line by line.

    As printed, the temporary loads are not reset for the next engine, and the heaviest key is taken whether or not it
    helps; gives the map and the engine loads that the algorithm believes in.
    """
    keys_map, eng_load = list(keys_map), list(eng_load)
    bound = (Fraction(theta) / 100) ** 2 + 1
    imb_score = squared_score(eng_load)
    while imb_score > bound:
        engines = sorted(range(len(eng_load)), key=lambda e: (-eng_load[e], e))
        e_min = min(range(len(eng_load)), key=lambda e: (eng_load[e], e))
        temp = list(eng_load)
        for e_loaded in engines:
            if e_loaded == e_min:
                return keys_map, eng_load
            if reset:
                temp = list(eng_load)
            keys = [k for k in range(len(keys_load)) if keys_map[k] == e_loaded and keys_load[k] > 0]
            if policy is DlbH:
                keys.sort(key=lambda k: (-keys_load[k], k))
                if improving:
                    keys = [k for k in keys if _moved(temp, keys_load[k], e_loaded, e_min)[1] < imb_score]
            else:
                keys.sort(key=lambda k: (keys_load[k], k))
            if not keys:
                continue
            temp, new_score = _moved(temp, keys_load[keys[0]], e_loaded, e_min)
            if new_score < imb_score:
                keys_map[keys[0]] = e_min
                eng_load, imb_score = temp, new_score
                break
    return keys_map, eng_load


def _moved(loads, load, source, target):
    after = list(loads)
    after[source] -= load
    after[target] += load
    return after, squared_score(after)


@POLICIES
@pytest.mark.parametrize("keys", ["tracked", "pinned"])
def test_it_is_algorithm_1(planner, keys):
    for seed in range(250):
        snapshot, table, channels = random_problem(seed)
        items, loads, homes, fixed_for = as_lists(snapshot, table, keys)
        theta = [0, 1.7, 15, 40][seed % 4]
        settled, held = settle_by_hand(loads, homes, fixed_for, channels)
        expected, _ = algorithm_1(loads, settled, held, theta, planner)
        plan = planner(threshold=theta, keys=keys).plan(snapshot, table, channels)
        assert plan.table == items.table_with(expected, channels), seed


@pytest.mark.parametrize(
    ("planner", "printed"),
    [(DlbL, {"reset": False}), (DlbH, {"improving": False}), (DlbH, {"reset": False, "improving": False})],
    ids=["temporary loads kept", "the heaviest whether it helps or not", "both"],
)
def test_as_printed_it_gives_up_too_early(planner, printed):
    worse = better = 0
    for seed in range(250):
        snapshot, table, _ = random_problem(seed, resize=False)
        _, loads, homes, fixed_for = as_lists(snapshot, table, "tracked")
        _, held = settle_by_hand(loads, homes, fixed_for, table.channels)
        _, published = algorithm_1(loads, homes, held, 5, planner, **printed)
        _, meant = algorithm_1(loads, homes, held, 5, planner)
        worse += squared_score(published) > squared_score(meant)
        better += squared_score(published) < squared_score(meant)
    assert worse > 5
    assert worse > 3 * better


@POLICIES
@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-7, 1e15], ids=lambda scale: f"loads around {scale:g}")
def test_the_score_never_gets_worse_and_it_ends_with_any_floats(planner, scale):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        loads = rng.pareto(1.1, 300) * scale
        snapshot = LoadSnapshot.of_keys(np.arange(300), loads, slots=32, state_bytes=np.ones(300, int))
        table = RoutingTable(rng.integers(0, 7, 32) ** 2 // 7, channels=7)
        plan = planner(threshold=0).plan(snapshot, table)
        assert plan.own_after <= plan.own_before
        again = planner(threshold=0).plan(snapshot, plan.table)
        assert again.own_after <= plan.own_after


def test_the_heavy_policy_moves_fewer_keys_than_the_light_one():
    loads = 1e4 / np.arange(1, 3001)
    snapshot = LoadSnapshot.of_keys(np.arange(3000), loads, slots=64, state_bytes=np.ones(3000, int))
    table = RoutingTable(np.arange(64) ** 2 // 64 // 8, channels=8)
    heavy, light = DlbH().plan(snapshot, table), DlbL().plan(snapshot, table)
    assert heavy.movement.moves < light.movement.moves / 2
    assert light.own_after < light.own_before


def test_many_equal_keys_over_many_blocks_are_dealt_evenly():
    hashes = np.arange(20_000)
    snapshot = LoadSnapshot.of_keys(hashes, np.ones(20_000), slots=16)
    table = RoutingTable(np.zeros(16, np.int32), channels=5)
    for planner in (DlbH, DlbL):
        plan = planner(threshold=0).plan(snapshot, table)
        assert snapshot.per_channel(plan.table).tolist() == [4000.0] * 5
        assert len(plan.moves) == 16_000


@POLICIES
def test_what_is_even_enough_stays(planner):
    snapshot = LoadSnapshot.of_keys(np.arange(8), np.array([5, 5, 5, 5, 5, 5, 5, 4]), slots=8)
    table = RoutingTable.even(4, 8)
    plan = planner().plan(snapshot, table)
    assert plan.table is table
    assert "no more than the 15 % allowed" in plan.reasons[0]


@POLICIES
def test_a_hot_key_over_the_average_is_said_to_be_out_of_reach(planner):
    snapshot = LoadSnapshot.of_keys(np.arange(4), np.array([100, 1, 1, 1]), slots=4)
    plan = planner().plan(snapshot, RoutingTable.even(2, 4))
    assert any("out of reach" in reason for reason in plan.reasons)


@POLICIES
@pytest.mark.parametrize("options", [{"threshold": -1}, {"threshold": float("nan")}, {"keys": "slots"}])
def test_senseless_options_are_refused(planner, options):
    with pytest.raises(InvalidArgumentError):
        planner(**options)
