"""CLB beside a transcription of Algorithm 2."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics import total_load_variance
from evenkeel.planning import LoadSnapshot
from evenkeel.planning.clb import MOST_PAIRED, Clb, split_by_covariance
from evenkeel.routing import Ragged, RoutingTable
from planning.dealing_problems import random_windows


def algorithm_2(x, n, theta, *, as_printed=False):
    """Algorithm 2 with the documented deviations (as printed, those with cov <= θ leave); gives each series' set."""
    p, m = len(x), len(x[0])

    def mean(values):
        return sum(values) / m

    cov = [
        [mean([a * b for a, b in zip(x[i], x[j], strict=True)]) - mean(x[i]) * mean(x[j]) for j in range(p)]
        for i in range(p)
    ]

    def strong(i, j):
        if cov[i][i] == 0 or cov[j][j] == 0 or cov[i][j] == 0:
            return False
        return cov[i][j] / (math.sqrt(cov[i][i]) * math.sqrt(cov[j][j])) >= theta and cov[i][j] > 0

    s = [list(range(p))]
    while len(s) < n:
        omega = {}
        for members in s:
            for i in members:
                others = [cov[i][j] for j in members if j != i and strong(i, j)]
                if others:
                    omega[i] = sum(others)
        if not omega:
            break
        k = min(omega, key=lambda i: (-omega[i], i))
        s_h = next(members for members in s if k in members)
        leaving = [i for i in s_h if i != k and strong(k, i) != as_printed]
        for i in leaving:
            s_h.remove(i)
        s.append(leaving)
    # What cannot be split by covariance is split by means.
    while len(s) < n:
        large = [members for members in s if len(members) > 1]
        if not large:
            break
        s_h = max(large, key=lambda members: (sum(mean(x[i]) for i in members), -s.index(members)))
        halves, held = ([], []), [0.0, 0.0]
        for i in sorted(s_h, key=lambda i: (-mean(x[i]), i)):
            half = 0 if held[0] <= held[1] else 1
            halves[half].append(i)
            held[half] += mean(x[i])
        s[s.index(s_h)] = halves[0]
        s.append(halves[1])
    labels = [0] * p
    for number, members in enumerate(s):
        for i in members:
            labels[i] = number
    return labels


def random_series(rng, windows):
    p = int(rng.integers(1, 25))
    waves = rng.integers(0, 4, (int(rng.integers(1, 4)), windows))
    own = rng.integers(0, 3, (p, windows)) * (rng.random((p, 1)) < 0.8)
    return (1 + waves[rng.integers(0, len(waves), p)] * rng.integers(0, 4, (p, 1)) + own).astype(float)


def fluctuation(series, labels):
    """Σ_i var(N_i)."""
    return sum(series[np.asarray(labels) == label].sum(axis=0).var() for label in set(labels))


@pytest.mark.parametrize("theta", [0.0, 0.1371, 0.4321, 0.8765])
def test_the_sets_are_those_of_algorithm_2(theta):
    for seed in range(150):
        rng = np.random.default_rng(seed)
        series = random_series(rng, windows=[1, 2, 4, 8][seed % 4])  # so that means are exact
        n = int(rng.integers(1, 9))
        assert split_by_covariance(series, n, theta).tolist() == algorithm_2(series.tolist(), n, theta), seed


def test_as_printed_the_correlated_would_stay_together_against_the_objective():
    published = meant = 0.0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        series = random_series(rng, windows=8)
        published += fluctuation(series, algorithm_2(series.tolist(), 2, 0.3, as_printed=True))
        meant += fluctuation(series, algorithm_2(series.tolist(), 2, 0.3))
    assert meant < 0.8 * published


def windows_of(series):
    """One snapshot per column, of slots only."""
    series = np.asarray(series, float)
    state = np.ones(len(series), np.int64)
    return [LoadSnapshot(loads, loads, state, [], [], [], []) for loads in series.T]


def stream(seed, slots=120, windows=24):
    """Slots in three waves, with very different loads."""
    rng = np.random.default_rng(seed)
    size = (1 + rng.pareto(3, slots)) * 100
    phase = rng.integers(0, 3, slots) * 2 * np.pi / 3
    times = np.arange(windows)[None, :] / 3
    return size[:, None] * (1 + 0.6 * np.sin(times + phase[:, None])) * rng.uniform(0.8, 1.2, (slots, windows))


@pytest.mark.parametrize("seed", range(10))
def test_balancing_means_clearly_beats_the_published_form_in_overall_imbalance(seed):
    windows = windows_of(stream(seed))
    table = RoutingTable.even(6, 120)
    published, means = Clb().plan(windows, table), Clb(balance_means=True).plan(windows, table)
    assert means.own_after < 0.5 * published.own_after
    assert means.own_after < means.own_before
    assert means.own_after == pytest.approx(total_load_variance([w.per_channel(means.table) for w in windows]))


def test_the_published_form_steadies_channels_of_noisy_slots_at_the_price_of_their_means():
    ratios, imbalance_raised = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        series = rng.pareto(1.5, (120, 1)) * 100 * rng.uniform(0.5, 1.5, (120, 24))
        table = RoutingTable.even(6, 120)
        plan = Clb().plan(windows_of(series), table)
        before, after = (fluctuation(series, t.slot_channels.tolist()) for t in (table, plan.table))
        ratios.append(after / before)
        imbalance_raised += plan.own_after > plan.own_before
    assert max(ratios) <= 1
    assert np.median(ratios) < 0.9
    assert imbalance_raised > 10


def test_where_slots_move_in_clear_waves_the_published_form_would_gather_a_wave_and_so_does_nothing():
    series, table = stream(0), RoutingTable.even(6, 120)
    gathered = split_by_covariance(series, 6, 0.0)
    assert sorted(np.bincount(gathered).tolist())[:2] == [1, 1]
    assert fluctuation(series, gathered.tolist()) > fluctuation(series, table.slot_channels.tolist())
    assert Clb().plan(windows_of(series), table).table is table
    assert Clb(balance_means=True).plan(windows_of(series), table).table is not table


def test_the_published_form_does_not_see_unequal_means():
    # Two pairs that swing a little against each other, on channels of equal mean load.
    series = 100 + np.array([[1, -1, 1, -1], [1, -1, 1, -1], [-1, 1, -1, 1], [-1, 1, -1, 1]])
    table = RoutingTable([0, 0, 1, 1], channels=2)
    published, means = (Clb(balance_means=option).plan(windows_of(series), table) for option in (False, True))
    assert sorted(np.bincount(published.table.slot_channels).tolist()) == [1, 3]
    assert published.own_after > 1000 * published.own_before
    assert means.own_after == 0


@pytest.mark.parametrize("balance_means", [False, True])
def test_any_windows_give_a_valid_plan_that_its_own_measure_does_not_regret(balance_means):
    for seed in range(120):
        windows, table, channels = random_windows(seed, windows=1 + seed % 5)
        plan = Clb(balance_means=balance_means).plan(windows, table, channels)
        assert plan.table.channels == channels
        if balance_means and channels == table.channels:
            assert plan.own_after <= plan.own_before * (1 + 1e-9)


@pytest.mark.parametrize("windows", [1, 5])
def test_windows_that_are_all_alike_tell_nothing_apart(windows):
    series = np.repeat([[3.0], [2.0], [0.1], [7.0]], windows, axis=1)
    table = RoutingTable([0, 0, 1, 1], channels=2)
    plan = Clb().plan(windows_of(series), table)
    assert plan.table is table
    assert "no better" in plan.reasons[-1]
    grown = Clb().plan(windows_of(series), table, 4)
    assert sorted(grown.table.slot_channels.tolist()) == [0, 1, 2, 3]


def test_balancing_means_leaves_what_is_balanced():
    table = RoutingTable([0, 1, 0, 1], channels=2)
    plan = Clb(balance_means=True).plan(windows_of([[3, 2], [3, 2], [1, 5], [1, 5]]), table)
    assert plan.table is table


@pytest.mark.parametrize("balance_means", [False, True])
def test_sets_take_the_channels_that_keep_most_state_in_place(balance_means):
    series = np.array([[9, 1, 9, 1], [9, 1, 9, 1], [1, 9, 1, 9], [1, 9, 1, 9]], float)
    state = np.array([1000, 1, 1, 1])
    windows = [LoadSnapshot(loads, loads, state, [], [], [], []) for loads in series.T]
    plan = Clb(balance_means=balance_means).plan(windows, RoutingTable([1, 1, 0, 0], channels=2))
    assert plan.table.slot_channels[0] == 1
    assert plan.movement.state_bytes <= 3
    assert plan.own_after < plan.own_before


def test_slots_without_load_stay_and_leave_vanished_channels_in_turn():
    series = np.zeros((8, 3))
    table = RoutingTable([0, 1, 2, 3, 2, 3, 2, 3], channels=4)
    assert Clb().plan(windows_of(series), table).table is table
    shrunk = Clb().plan(windows_of(series), table, 2).table
    assert shrunk.slot_channels.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]


def test_a_split_keys_load_is_seen_when_means_are_balanced():
    snapshot = LoadSnapshot(
        np.full(8, 10.0), np.full(8, 10.0), np.ones(8, int), np.array([5]), [100.0], [100.0], np.array([1])
    )
    table = RoutingTable(np.arange(8) % 4, channels=4, split_hashes=np.array([5]), split_channels=Ragged.of([[0, 1]]))
    plan = Clb(balance_means=True).plan([snapshot] * 3, table)
    assert snapshot.per_channel(plan.table).tolist() == [50.0, 50.0, 40.0, 40.0]


def test_both_objectives_are_told():
    plan = Clb().plan(windows_of(stream(0)), RoutingTable.even(6, 120))
    assert plan.reasons[0].startswith("Σ var(L_j) over 24 windows")
    assert plan.reasons[1].startswith("Σ var(N_i) over 6 channels")


@pytest.mark.parametrize("threshold", [-0.1, 1.0, math.nan])
def test_a_threshold_that_is_no_correlation_is_refused(threshold):
    with pytest.raises(InvalidArgumentError):
        Clb(threshold=threshold)


def test_more_substreams_than_can_be_paired_are_refused_with_a_way_out():
    slots = MOST_PAIRED + 1
    loads = np.arange(1.0, slots + 1)
    snapshot = LoadSnapshot(loads, loads, np.ones(slots, int), [], [], [], [])
    table = RoutingTable.even(4, slots=slots)
    with pytest.raises(InvalidArgumentError, match="balance_means=True takes any number"):
        Clb().plan([snapshot, snapshot], table)
    assert Clb(balance_means=True).plan([snapshot, snapshot], table).after.imbalance < 1
