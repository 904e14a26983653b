"""Slow drift is caught and noise is not."""

from __future__ import annotations

import numpy as np
import pytest

from control.streams import stored_and_read, with_hot_key, zipf, zipf_window
from evenkeel.control import DriftDetector, DriftOptions
from evenkeel.control.divergence import compare
from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import hash_keys
from evenkeel.planning import LoadSnapshot

KEYS = 2000


def detector() -> DriftDetector:
    return DriftDetector(DriftOptions())


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.4], ids="zipf {}".format)
@pytest.mark.parametrize("renewed", [False, True], ids=["one reference for ever", "a new reference at each alarm"])
def test_a_stationary_stream_raises_an_alarm_in_under_one_percent_of_windows(exponent, renewed):
    rng, drift, popularity = np.random.default_rng(11), detector(), zipf(KEYS, exponent)
    alarms = 0
    for _ in range(1000):
        window = zipf_window(rng, popularity, 5000)
        if drift.observe(window).passes:
            alarms += 1
            if renewed:
                drift.renew(window)
    assert alarms < 10


def test_bursts_of_tuples_are_learnt_to_be_noise():
    rng, drift, popularity = np.random.default_rng(12), detector(), zipf(KEYS, 1.0)
    hashes = hash_keys(np.arange(KEYS))
    alarms = 0
    for _ in range(500):
        counts = rng.negative_binomial(popularity * 5000 / 0.8, 1 / 1.8)  # variance 1.8 times that of Poisson counts
        window = LoadSnapshot.of_keys(hashes, counts, slots=512, track=100)
        if drift.observe(window).passes:
            alarms += 1
            drift.renew(window)
    assert alarms < 5


def test_a_change_of_volume_is_no_drift():
    rng, drift, popularity = np.random.default_rng(13), detector(), zipf(KEYS, 1.0)
    volumes = 5000 * 2.0 ** rng.uniform(-2, 2, size=300)
    assert sum(drift.observe(zipf_window(rng, popularity, volume)).passes for volume in volumes) < 3


@pytest.mark.parametrize(("tuples", "within"), [(5_000, 14), (20_000, 8), (200_000, 3)])
def test_a_drift_of_one_percent_per_window_is_caught_in_time(tuples, within):
    for seed in range(10):
        rng, drift = np.random.default_rng(seed), detector()
        before, after = zipf(KEYS, 1.0), rng.permutation(zipf(KEYS, 1.0))
        for _ in range(20):
            drift.observe(zipf_window(rng, before, tuples))
        for windows in range(1, within + 1):
            share = 0.01 * windows
            answer = drift.observe(zipf_window(rng, (1 - share) * before + share * after, tuples))
            if answer.passes:
                break
        assert answer.passes, f"seed {seed}: {answer.reason}"


def test_what_no_single_window_shows_adds_up():
    only_slow = DriftOptions(sudden_z=1e9, false_peaks=1e-300)
    only_sudden = DriftOptions(patience_z=1e9, false_peaks=1e-300)
    needed: dict[DriftOptions, list[int]] = {only_slow: [], only_sudden: []}
    for options, windows in needed.items():
        for seed in range(10):
            rng, drift = np.random.default_rng(seed), DriftDetector(options)
            before, after = zipf(KEYS, 0.5), rng.permutation(zipf(KEYS, 0.5))
            for _ in range(10):
                drift.observe(zipf_window(rng, before, 5000))
            shares = (min(1.0, 0.01 * number) for number in range(1, 200))
            mixed = (zipf_window(rng, (1 - share) * before + share * after, 5000) for share in shares)
            windows.append(next(number for number, window in enumerate(mixed, 1) if drift.observe(window).passes))
    assert np.median(needed[only_slow]) < np.median(needed[only_sudden])


@pytest.mark.parametrize("known", [True, False], ids=["a key that was tracked", "a key that was never tracked"])
def test_a_sudden_hot_key_is_caught_at_once(known):
    for seed in range(20):
        rng, drift, popularity = np.random.default_rng(seed), detector(), zipf(KEYS, 1.0)
        for _ in range(5):
            drift.observe(zipf_window(rng, popularity, 5000))
        answer = drift.observe(zipf_window(rng, with_hot_key(popularity, 2 if known else 1500, 0.05), 5000))
        assert answer.passes
        assert "rose" in answer.reason


def test_after_a_plan_the_new_distribution_is_the_normal_one():
    rng, drift = np.random.default_rng(3), detector()
    old, new = zipf(KEYS, 1.0), with_hot_key(zipf(KEYS, 1.0), 1500, 0.2)
    for _ in range(5):
        drift.observe(zipf_window(rng, old, 5000))
    window = zipf_window(rng, new, 5000)
    assert drift.observe(window).passes
    drift.renew(window)
    assert not any(drift.observe(zipf_window(rng, new, 5000)).passes for _ in range(50))


def test_the_distance_is_nothing_for_equals_and_all_for_strangers():
    hashes = hash_keys(np.arange(20))
    one = LoadSnapshot.of_keys(hashes[:10], np.full(10, 1000), slots=997, track=0)
    two = LoadSnapshot.of_keys(hashes[10:], np.full(10, 1000), slots=997, track=0)
    assert compare(one, one).chi_square == 0
    assert compare(one, two).share() == pytest.approx(1, abs=1e-3)


def test_an_empty_window_is_no_drift():
    drift = detector()
    empty = LoadSnapshot.of_keys([], [], slots=8)
    assert not drift.observe(empty).passes
    assert not drift.observe(LoadSnapshot.of_keys(["a"], [5], slots=8)).passes
    assert not drift.observe(empty).passes


def test_a_detector_continues_from_where_it_was_stored():
    rng, first = np.random.default_rng(5), detector()
    popularity = zipf(KEYS, 1.0)
    for _ in range(6):
        first.observe(zipf_window(rng, popularity, 3000))
    second = detector()
    second.restore(stored_and_read(first.snapshot()))
    for _ in range(20):
        popularity = 0.98 * popularity + 0.02 * rng.permutation(popularity)
        window = zipf_window(rng, popularity, 3000)
        assert first.observe(window) == second.observe(window)


@pytest.mark.parametrize("wrong", [{"sudden_z": -1}, {"share": 2}, {"false_peaks": 0}, {"patience_z": -1}], ids=str)
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        DriftOptions(**wrong)
