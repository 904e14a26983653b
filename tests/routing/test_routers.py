"""Every router against its literal, slow self, and all of them against what a router promises."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.hashing import hash_keys, mix64
from evenkeel.metrics import imbalance_fraction, routing_agreement
from evenkeel.routing import ROUTERS, RoutingTable, make_router
from evenkeel.routing.routers import OffGreedy, PartialKeyGrouping
from evenkeel.routing.routers.base import choice_seeds
from evenkeel.routing.routers.universal_hash import universal_hash

FEW_KEYS = st.lists(st.integers(-5, 5), max_size=60)


def zipf(tuples: int, keys: int, skew: float, seed: int = 0) -> np.ndarray:
    shares = 1 / np.arange(1, keys + 1) ** skew
    ranks = np.searchsorted(np.cumsum(shares / shares.sum()), np.random.default_rng(seed).random(tuples))
    return hash_keys(np.minimum(ranks, keys - 1))


def candidates(key_hash: int, seed: int, choices: int, channels: int) -> list[int]:
    """H₁(k) … H_d(k), one at a time."""
    found = []
    for choice_seed in choice_seeds(seed, choices).tolist():
        # mix64 adds its own constant for seed 0; the kernels' mixing does not.
        start = ((key_hash % 2**64) + choice_seed - 0x9E3779B97F4A7C15) % 2**64
        found.append((int(mix64(np.array([start], np.uint64))[0]) >> 32) * channels >> 32)
    return found


def least(loads: list[int], among: list[int]) -> int:
    return min(among, key=lambda channel: loads[channel])


# -- what every router promises -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROUTERS)
class TestEveryRouter:
    def test_tuples_go_only_where_they_can_be_found(self, name):
        keys = zipf(3000, 200, 1.2)
        router = make_router(name, 7, sources=2)
        channels = router.route(keys, np.arange(len(keys)) % 2)
        assert (make_router(name, 7, sources=2).reachable(keys) == channels[:, np.newaxis]).any(axis=1).all()

    def test_every_tuple_gets_a_channel_that_exists(self, name):
        for channels in (1, 2, 7):
            routed = make_router(name, channels).route(zipf(3000, 500, 1.2))
            assert routed.dtype == np.int32
            assert routed.min() >= 0
            assert routed.max() < channels

    def test_it_repeats_itself(self, name):
        hashes = zipf(3000, 500, 1.2)
        first, second = make_router(name, 5, seed=3), make_router(name, 5, seed=3)
        for part in np.array_split(hashes, 4):
            np.testing.assert_array_equal(first.route(part), second.route(part))

    def test_it_keeps_keys_together_exactly_if_it_says_so(self, name):
        hashes = zipf(20_000, 300, 1.2)
        router = make_router(name, 6)
        routed = np.concatenate([router.route(part) for part in np.array_split(hashes, 3)])
        channels_of = defaultdict(set)
        for key_hash, channel in zip(hashes.tolist(), routed.tolist(), strict=True):
            channels_of[key_hash].add(channel)
        together = all(len(channels) == 1 for channels in channels_of.values())
        assert together == router.keeps_keys_together

    def test_a_stream_may_come_in_any_pieces(self, name):
        hashes = zipf(2000, 100, 1.0)
        whole, pieces = make_router(name, 4), make_router(name, 4)
        if isinstance(whole, OffGreedy):
            whole.fit(hashes)
            pieces.fit(hashes)
        expected = whole.route(hashes)
        parts = [pieces.route(part) for part in np.split(hashes, [0, 1, 1, 700, 2000])]
        np.testing.assert_array_equal(np.concatenate(parts), expected)

    def test_a_column_of_keys_will_do(self, name):
        words = ["a", "b", None, "a", ""]
        np.testing.assert_array_equal(make_router(name, 4).route(words), make_router(name, 4).route(hash_keys(words)))

    def test_the_input_is_left_alone(self, name):
        hashes = zipf(100, 10, 1.0)
        before = hashes.copy()
        make_router(name, 4).route(hashes)
        np.testing.assert_array_equal(hashes, before)

    def test_it_is_documented_and_known_by_its_name(self, name):
        router = ROUTERS[name]
        assert router.name == name
        assert isinstance(router.keeps_keys_together, bool)
        assert router.__doc__
        assert name in router.__module__ or name in ("potc", "pkg")

    @pytest.mark.parametrize("options", [{"channels": 0}, {"channels": 2, "sources": 0}], ids=["channels", "sources"])
    def test_nonsense_is_refused(self, name, options):
        with pytest.raises(InvalidArgumentError, match="at least 1; got 0"):
            make_router(name, **options)
        with pytest.raises(InvalidArgumentError, match="comes from source 1"):
            make_router(name, 2).route([1, 2], sources=[0, 1])
        with pytest.raises(InvalidArgumentError, match="1 entries for 2 tuples"):
            make_router(name, 2).route([1, 2], sources=[0])


def test_an_unknown_router_comes_with_a_hint():
    with pytest.raises(UnknownNameError, match="Did you mean 'shuffle'"):
        make_router("shufle", 2)


def test_importing_the_room_compiles_nothing():
    code = "import sys, evenkeel.routing; print('numba' in sys.modules, 'pyspark' in sys.modules)"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == "False False"


# -- each against its literal self ----------------------------------------------------------------------------------


@given(FEW_KEYS, st.integers(1, 5), st.integers(1, 4), st.integers(0, 3))
@settings(max_examples=60)
def test_partial_key_grouping_takes_the_least_loaded_candidate(keys, channels, choices, seed):
    loads = [0] * channels
    expected = []
    for key in keys:
        expected.append(least(loads, candidates(key, seed, choices, channels)))
        loads[expected[-1]] += 1
    router = PartialKeyGrouping(channels, choices=choices, seed=seed)
    assert router.route(np.array(keys, np.int64)).tolist() == expected
    assert router.loads.tolist() == loads


@given(FEW_KEYS, st.data(), st.sampled_from(["global", "local", "probing"]))
@settings(max_examples=80)
def test_the_three_views_of_the_loads(keys, data, view):
    channels, sources = 4, 3
    senders = data.draw(st.lists(st.integers(0, sources - 1), min_size=len(keys), max_size=len(keys)))
    probe_every = data.draw(st.integers(1, 7)) if view == "probing" else 0
    loads = [0] * channels
    views = [loads if view == "global" else [0] * channels for _ in range(sources)]
    expected = []
    for sent, (key, source) in enumerate(zip(keys, senders, strict=True), start=1):
        channel = least(views[source], candidates(key, 0, 2, channels))
        loads[channel] += 1
        if view != "global":
            views[source][channel] += 1
        expected.append(channel)
        if probe_every and sent % probe_every == 0:
            views = [list(loads) for _ in range(sources)]
    router = PartialKeyGrouping(channels, sources=sources, view=view, probe_every=probe_every)
    assert router.route(np.array(keys, np.int64), senders).tolist() == expected


@given(FEW_KEYS, st.integers(1, 5), st.integers(0, 3))
@settings(max_examples=60)
def test_static_choices_are_made_once(keys, channels, seed):
    loads, chosen, expected = [0] * channels, {}, []
    for key in keys:
        if key not in chosen:
            chosen[key] = least(loads, candidates(key, seed, 2, channels))
        expected.append(chosen[key])
        loads[chosen[key]] += 1
    router = make_router("potc", channels, seed=seed)
    assert router.route(np.array(keys, np.int64)).tolist() == expected
    assert router.keys_held == len(chosen)


@given(FEW_KEYS, st.integers(1, 5))
@settings(max_examples=60)
def test_on_line_greedy_gives_a_new_key_to_the_least_loaded_channel(keys, channels):
    loads, chosen, expected = [0] * channels, {}, []
    for key in keys:
        if key not in chosen:
            chosen[key] = least(loads, list(range(channels)))
        expected.append(chosen[key])
        loads[chosen[key]] += 1
    assert make_router("on_greedy", channels).route(np.array(keys, np.int64)).tolist() == expected


def test_a_sticky_router_holds_more_keys_than_it_first_had_room_for():
    hashes = hash_keys(np.arange(20_000))
    for name in ("potc", "on_greedy"):
        router = make_router(name, 3)
        first = router.route(hashes)
        assert router.keys_held == 20_000
        np.testing.assert_array_equal(router.route(hashes), first)


@given(FEW_KEYS, st.integers(1, 5))
@settings(max_examples=60)
def test_off_line_greedy_deals_the_most_frequent_first(keys, channels):
    counts = {key: keys.count(key) for key in keys}
    loads, place = [0] * channels, {}
    for key in sorted(counts, key=lambda key: (-counts[key], key)):
        place[key] = least(loads, list(range(channels)))
        loads[place[key]] += counts[key]
    hashes = np.array(keys, np.int64)
    assert OffGreedy(channels).route(hashes).tolist() == [place[key] for key in keys]
    fitted = OffGreedy(channels).fit(np.array(list(counts), np.int64), list(counts.values()))
    assert fitted.route(hashes).tolist() == [place[key] for key in keys]


def test_off_line_greedy_routes_unseen_keys_by_hash_and_wants_distinct_ones_with_counts():
    router = OffGreedy(4).fit(np.array([1, 2]), [5, 5])
    assert router.route(np.array([99])).tolist() == RoutingTable.even(4).route(np.array([99])).tolist()
    with pytest.raises(InvalidArgumentError, match="distinct"):
        OffGreedy(4).fit(np.array([1, 1]), [5, 5])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30), st.integers(1, 9), st.integers(0, 50))
def test_the_universal_hash_is_the_formula(values, channels, seed):
    prime = 2**61 - 1
    rng = np.random.default_rng(seed)
    a, b = (int(rng.integers(low, prime, dtype=np.uint64)) for low in (1, 0))
    expected = [(a * (value % 2**64 % prime) + b) % prime % channels for value in values]
    assert universal_hash(np.array(values, np.int64), channels, seed).tolist() == expected


@pytest.mark.parametrize(("x", "y"), [(0, 1), (5, -5), (2**40, 3)], ids=["neighbours", "signs", "far apart"])
def test_two_keys_collide_no_more_often_than_by_chance(x, y):
    channels, seeds = 16, 5000
    pair = np.array([x, y])
    hits = sum(len(set(universal_hash(pair, channels, seed).tolist())) == 1 for seed in range(seeds))
    # At most 1/N by 2-universality; five standard deviations of chance on top.
    assert hits / seeds <= 1 / channels + 5 * np.sqrt(1 / channels / seeds)


def test_shuffling_is_even_for_every_source():
    senders = np.random.default_rng(1).integers(0, 3, 1000)
    routed = make_router("shuffle", 4, sources=3).route(np.zeros(1000, np.int64), senders)
    for source in range(3):
        loads = np.bincount(routed[senders == source], minlength=4)
        assert loads.max() - loads.min() <= 1


# -- D-Choices and W-Choices ----------------------------------------------------------------------------------------


def slow_enough_choices(shares: list[float], channels: int, tolerance: float) -> int:
    head = sum(shares)
    for d in range(max(2, int(np.ceil(shares[0] * channels))), channels):

        def fits(h: int, d: int = d) -> bool:
            reached = channels - channels * ((channels - 1) / channels) ** (h * d)
            share = reached / channels
            load = sum(shares[:h]) + share**d * sum(shares[h:]) + share**2 * (1 - head)
            return load <= reached * (1 / channels + tolerance) + 1e-12

        if all(fits(h) for h in range(1, len(shares) + 1)):
            return d
    return channels


@given(
    st.lists(st.floats(0.001, 1), min_size=1, max_size=8),
    st.floats(0.05, 1),
    st.integers(2, 40),
)
def test_the_number_of_choices_is_the_least_that_is_enough(weights, head, channels):
    from evenkeel.routing._kernels import enough_choices

    shares = np.sort(np.array(weights) / sum(weights) * head)[::-1].copy()
    found = enough_choices(shares, channels, 1e-4)
    # Rounding may tip a constraint that holds with equality either way.
    assert found in (slow_enough_choices(list(shares), channels, t) for t in (1e-4, 1e-4 - 1e-9))


@pytest.mark.parametrize("name", ["d_choices", "w_choices"])
def test_hot_keys_are_spread_and_cold_keys_have_two_channels(name):
    hashes = zipf(200_000, 5000, 1.4)
    router = make_router(name, 50)
    routed = router.route(hashes)
    spread = {}
    for key_hash in np.unique(hashes):
        spread[key_hash] = len(np.unique(routed[hashes == key_hash]))
    hottest = np.bincount(np.unique(hashes, return_inverse=True)[1]).argmax()
    assert spread[np.unique(hashes)[hottest]] > 10
    counts = np.unique(hashes, return_counts=True)[1]
    never_hot = np.unique(hashes)[counts < 10]
    assert max(spread[key_hash] for key_hash in never_hot) <= 2
    loads = np.bincount(routed, minlength=50)
    two_choices = np.bincount(make_router("pkg", 50).route(hashes), minlength=50)
    assert imbalance_fraction(loads) < imbalance_fraction(two_choices) / 20


def test_d_choices_needs_fewer_channels_for_its_hot_keys_than_there_are():
    router = make_router("d_choices", 50)
    router.route(zipf(100_000, 5000, 1.0))
    assert 2 < router.choices[0] < 50
    assert make_router("w_choices", 50).choices[0] == 50


@pytest.mark.parametrize(
    "options",
    [{"threshold": 0}, {"threshold": 1}, {"tolerance": -1}, {"refresh_every": 0}],
    ids=["no threshold", "everything", "negative tolerance", "no refresh"],
)
def test_impossible_settings_of_d_choices_are_refused(options):
    with pytest.raises(InvalidArgumentError):
        make_router("d_choices", 4, **options)


@pytest.mark.parametrize(
    "options",
    [{"choices": 0}, {"view": "wide"}, {"view": "probing"}, {"probe_every": 5}],
    ids=["no choices", "an unknown view", "probing never", "probing without being asked"],
)
def test_impossible_settings_of_partial_key_grouping_are_refused(options):
    with pytest.raises(InvalidArgumentError):
        make_router("pkg", 4, **options)


# -- the shapes of the paper ------------------------------------------------------------------------------------------


def test_more_freedom_means_better_balance():
    """The order of the paper's Table II: hashing, then static choices, then key splitting."""
    hashes = zipf(200_000, 20_000, 0.9)

    def average(name):
        fractions = [
            imbalance_fraction(np.bincount(make_router(name, 10, seed=seed).route(hashes), minlength=10))
            for seed in range(5)
        ]
        return np.mean(fractions)

    hashing = imbalance_fraction(np.bincount(make_router("key_grouping", 10).route(hashes), minlength=10))
    assert average("potc") < hashing / 5
    assert average("pkg") < average("potc") / 5
    assert average("shuffle") <= average("pkg")


def test_local_estimation_balances_as_well_as_global_though_it_chooses_otherwise():
    hashes = zipf(200_000, 20_000, 0.9)
    senders = np.random.default_rng(5).integers(0, 5, len(hashes))
    routed = {view: make_router("pkg", 10, sources=5, view=view).route(hashes, senders) for view in ("global", "local")}
    fractions = {view: imbalance_fraction(np.bincount(r, minlength=10)) for view, r in routed.items()}
    assert fractions["local"] < 1e-3
    assert fractions["global"] <= fractions["local"]
    assert routing_agreement(routed["global"], routed["local"]) < 0.9


def test_two_choices_fail_beyond_the_bound_of_the_hottest_key():
    """Once N exceeds 2/p₁ the imbalance is at least p₁/2 − 1/N of all tuples, whoever chooses."""
    hashes = zipf(100_000, 2000, 1.2)
    share = np.unique(hashes, return_counts=True)[1].max() / len(hashes)
    channels = int(4 / share)
    loads = np.bincount(make_router("pkg", channels).route(hashes), minlength=channels)
    assert imbalance_fraction(loads) >= share / 2 - 1 / channels
