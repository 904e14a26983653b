"""Synthetic streams have the distributions that they claim, by χ² and by the papers' own statistics."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise, permutations

import numpy as np
import pytest
from scipy import stats

from evenkeel.routing import RoutingTable
from evenkeel.sim import (
    Bursts,
    Drifting,
    LogNormal,
    Sourced,
    Substreams,
    SwitchingZipf,
    Weighted,
    Zipf,
    ordering,
)
from evenkeel.sim.ordering import ArrivalTimes, shuffled_rows
from evenkeel.sim.popularity import Mixed, Permuted, ZipfKeys
from evenkeel.sim.popularity import Weighted as WeightedKeys

UNLIKELY = 1e-6  # that chance fails a test; seeds are fixed, so it did not


def fits(counts: np.ndarray, shares: np.ndarray) -> bool:
    """Pearson's test, with small cells put together."""
    expected = shares * counts.sum()
    order = np.argsort(-expected)
    groups = np.floor(np.cumsum(expected[order]) / 20)
    observed, hoped = (np.bincount(np.unique(groups, return_inverse=True)[1], weights=side[order])
                       for side in (counts, expected))  # fmt: skip
    return stats.chisquare(observed, hoped * observed.sum() / hoped.sum()).pvalue > UNLIKELY


@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0, 1.5, 3.0])
def test_zipf_drawn_tuple_by_tuple_and_count_by_count(exponent):
    keys = ZipfKeys(1000, exponent)
    shares = np.arange(1, 1001) ** -exponent
    rng = np.random.default_rng(1)
    assert fits(np.bincount(keys.draw(200_000, rng), minlength=1000), shares / shares.sum())
    assert fits(keys.counts(200_000, rng), shares / shares.sum())


def test_zipf_over_a_hundred_million_keys():
    drawn = ZipfKeys(10**8, 1.0).draw(200_000, np.random.default_rng(2))
    assert drawn.min() == 0
    assert drawn.max() < 10**8
    # Of ranks up to k, a share of H(k)/H(10⁸).
    whole = np.log(10**8) + np.euler_gamma
    for bound in (1, 10, 1000, 10**5, 10**7):
        share = (1.0 if bound == 1 else np.log(bound + 0.5) + np.euler_gamma) / whole
        assert abs((drawn < bound).mean() - share) < 5 * np.sqrt(share * (1 - share) / len(drawn))


def test_any_weights_drawn_tuple_by_tuple_and_count_by_count():
    weights = np.concatenate([[0.0, 5.0, 0.0], np.random.default_rng(0).random(300), [0.0]])
    keys = WeightedKeys(weights)
    for counts in (
        np.bincount(keys.draw(100_000, np.random.default_rng(1)), minlength=len(weights)),
        keys.counts(100_000, np.random.default_rng(2)),
    ):
        assert counts[weights == 0].sum() == 0
        assert fits(counts[weights > 0], weights[weights > 0] / weights.sum())


def test_permuted_and_mixed_distributions_say_what_they_draw():
    base = ZipfKeys(50, 1.0)
    permuted = Permuted(base, np.random.default_rng(0).permutation(50).astype(np.int32))
    for keys in (permuted, Mixed(permuted, np.array([3, 7]), 0.4)):
        assert keys.probabilities.sum() == pytest.approx(1)
        for counts in (
            np.bincount(keys.draw(50_000, np.random.default_rng(1)), minlength=50),
            keys.counts(50_000, np.random.default_rng(2)),
        ):
            assert fits(counts, keys.probabilities)


def test_every_order_of_a_window_is_as_likely(monkeypatch):
    orders = sorted(set(permutations([0, 0, 1, 2])))
    for piece in (1 << 20, 2):  # shuffled at once, and tossed into pieces first
        monkeypatch.setattr(ordering, "PIECE", piece)
        found = Counter(tuple(np.concatenate(list(shuffled_rows(np.array([2, 1, 1]), seed))).tolist())
                        for seed in range(2400))  # fmt: skip
        assert stats.chisquare([found[order] for order in orders]).pvalue > UNLIKELY


def test_large_counts_are_halved_fairly(monkeypatch):
    monkeypatch.setattr(ordering, "PIECE", 6000)
    counts = np.array([5000, 1000, 60, 3, 0])
    for seed in range(30):
        pieces = list(shuffled_rows(counts, seed))
        assert np.bincount(np.concatenate(pieces), minlength=5).tolist() == counts.tolist()
        for row in range(3):
            first = int((pieces[0] == row).sum())
            assert stats.binomtest(first, int(counts[row]), len(pieces[0]) / counts.sum()).pvalue > UNLIKELY


def test_poisson_arrivals_are_exponentially_spaced():
    for cut in ([1000], [1, 499, 500]):
        arrivals = ArrivalTimes(5.0, 2.0, 1000, 3, poisson=True)
        times = np.concatenate([arrivals.take(part) for part in cut])
        assert stats.kstest((times - 5) / 2, "uniform").pvalue > UNLIKELY
        assert stats.kstest(np.diff(times) * 500, "expon").pvalue > UNLIKELY


def test_log_normal_keys_are_those_of_table_i():
    for mean, deviation, keys, hottest in ((1.789, 2.366, 16_000, 0.1471), (2.245, 1.133, 1_100, 0.0701)):
        histogram = next(LogNormal(mean, deviation, tuples=10_000_000).windows()).histogram()
        assert histogram.counts.max() / 1e7 == pytest.approx(hottest, abs=5e-4)
        assert len(histogram) == pytest.approx(keys, rel=0.04)


def test_both_kinds_of_substreams_have_one_mean_key_and_rate():
    means, totals = {}, {}
    for kind in ("gaussian", "zipf"):
        histogram = next(Substreams(kind).windows()).histogram()
        numbers = histogram.hashes + 1
        means[kind], totals[kind] = histogram.counts @ numbers / histogram.tuples, histogram.tuples
    assert abs(totals["zipf"] - 600_000) < 5 * np.sqrt(600_000)
    assert abs(totals["gaussian"] - 600_000) < 5 * np.sqrt(600_000)
    assert means["zipf"] == pytest.approx(100 / (1 / np.arange(1, 101)).sum(), rel=0.01)
    assert means["gaussian"] == pytest.approx(means["zipf"], rel=0.01)


def test_the_exponent_is_switched_on_schedule():
    stream = SwitchingZipf(4096, tuples=20_000)
    hottest = [window.histogram().counts.max() / 20_000 for window in islice(stream.windows(), 20)]
    skewed = [number % 15 >= 5 for number in range(20)]
    assert [share > 0.2 for share in hottest] == skewed


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.5])
def test_drift_moves_just_the_share_of_tuples_that_was_asked(rate):
    shares = [keys.probabilities for keys in islice(Drifting(Zipf(2000, 0.8), rate=rate, every=2).popularities(), 9)]
    for number in range(1, 9):
        moved = np.abs(shares[number] - shares[number - 1]).sum() / 2
        if number % 2:
            assert moved == 0
        else:
            assert rate - 1e-12 <= moved <= rate + shares[0].max()
        assert sorted(shares[number].tolist()) == sorted(shares[0].tolist())


def test_drift_across_channels_changes_a_channels_load_by_the_rate():
    table = RoutingTable.even(5, slots=40)
    stream = Drifting(Zipf(3000, 1.0, hashed=False), rate=0.1, across=table)
    homes = table.home(np.arange(3000))
    hottest = ZipfKeys(3000, 1.0).probabilities[0]
    loads = [np.bincount(homes, weights=keys.probabilities) for keys in islice(stream.popularities(), 5)]
    for before, after in pairwise(loads):
        change = np.abs(after - before).max() / (1 / 5)
        assert 0.1 - 1e-9 <= change <= 0.1 + 5 * hottest


def test_a_burst_takes_its_share_and_goes():
    stream = Bursts(Zipf(1000, 0.0, tuples=20_000), share=0.3, every=4, length=2)
    hottest = [window.histogram().counts.max() / 20_000 for window in islice(stream.windows(), 12)]
    assert [share > 0.2 for share in hottest] == [number >= 4 and number % 4 < 2 for number in range(12)]
    assert max(hottest) == pytest.approx(0.3, abs=0.03)
    keys = [window.histogram() for window in islice(stream.windows(), 12)]
    assert keys[4].hashes[keys[4].counts.argmax()] == keys[5].hashes[keys[5].counts.argmax()]
    assert keys[4].hashes[keys[4].counts.argmax()] != keys[8].hashes[keys[8].counts.argmax()]


def test_sources_by_turn_by_key_and_by_share():
    base = Zipf(500, 1.0, tuples=30_000)

    def sent(**options):
        parts = list(next(Sourced(base, 4, **options).windows()).tuples())
        return np.concatenate([part.hashes for part in parts]), np.concatenate([part.sources for part in parts])

    assert np.bincount(sent(by="turn")[1]).tolist() == [7500] * 4
    hashes, sources = sent(by="key")
    assert len(set(zip(hashes.tolist(), sources.tolist(), strict=True))) == len(set(hashes.tolist()))
    shares = np.arange(1, 5) ** -2.0
    assert fits(np.bincount(sent(by="zipf", exponent=2.0)[1]), shares / shares.sum())


def test_weights_of_ones_own():
    counts = next(Weighted([1, 0, 3], tuples=40_000, hashed=False).windows()).histogram()
    assert counts.hashes.tolist() == [0, 2]
    assert counts.counts[1] / 40_000 == pytest.approx(0.75, abs=0.02)
