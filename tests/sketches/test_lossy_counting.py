"""Lossy counting against its listing, and the laws it promises."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.sketches import LossyCounting

LONGS = np.iinfo(np.int64)
streams = st.lists(st.sampled_from([LONGS.min, LONGS.max, -1, 0, *range(1, 9)]), max_size=120)
epsilons = st.sampled_from([0.9, 0.5, 0.3, 0.1, 0.07, 0.02])


def listing(stream, epsilon):
    """The algorithm as the paper tells it, item by item; entries as key: (appearance count, error count)."""
    width = math.ceil(1 / epsilon)
    entries = {}
    for n, key in enumerate(stream, start=1):
        window = (n - 1) // width + 1
        count, error = entries.get(key, (0, window - 1))
        entries[key] = (count + 1, error)
        if n % width == 0:
            entries = {k: (c, e) for k, (c, e) in entries.items() if c + e > window}
    return entries


def observed(stream, epsilon):
    sketch = LossyCounting(epsilon)
    sketch.observe(np.array(stream, np.int64))
    return sketch


def entries_of(sketch):
    keys, counts, errors = (column.tolist() for column in sketch.entries())
    return dict(zip(keys, zip(counts, errors, strict=True), strict=True))


def zipf(seed, items=50_000, keys=20_000):
    return np.random.default_rng(seed).zipf(1.2, items) % keys


@given(streams, epsilons)
def test_it_holds_what_the_listing_holds_in_the_same_order(stream, epsilon):
    assert list(entries_of(observed(stream, epsilon)).items()) == list(listing(stream, epsilon).items())


@pytest.mark.parametrize("epsilon", [0.1, 0.01, 0.0003], ids="epsilon is {}".format)
def test_it_holds_what_the_listing_holds_on_a_long_stream_that_needs_more_room(epsilon):
    stream = np.random.default_rng(5).integers(LONGS.min, LONGS.max, 20_000)[zipf(5)]
    assert entries_of(observed(stream, epsilon)) == listing(stream.tolist(), epsilon)


@given(streams, epsilons, st.lists(st.integers(0, 120)))
def test_how_the_stream_is_cut_into_arrays_does_not_matter(stream, epsilon, cuts):
    sketch = LossyCounting(epsilon)
    for piece in np.split(np.array(stream, np.int64), sorted(cuts)):
        sketch.observe(piece)
    assert sketch.to_arrow().equals(observed(stream, epsilon).to_arrow(), check_metadata=True)


def check_promises(sketch, stream):
    """Bounds of all counts, of the error and of the number of entries, and no false negatives or far positives."""
    truth = Counter(stream)
    total = len(stream)
    assert sketch.total == total
    assert sketch.error_bound <= sketch.epsilon * total
    assert len(sketch) <= sketch.size_bound
    held = entries_of(sketch)
    for key in truth.keys() | held.keys():
        count, error = held.get(key, (0, sketch.error_bound))
        assert error <= sketch.error_bound
        assert count <= truth[key] <= count + error
        assert sketch.estimate([key]).tolist() == [count]
    for delta in (sketch.epsilon, sketch.epsilon + (1 - sketch.epsilon) / 3, 1.0):
        found = set(sketch.frequent(delta).keys.tolist())
        assert found >= {key for key, count in truth.items() if count > delta * total}
        assert all(truth[key] >= (delta - sketch.epsilon) * total * (1 - 1e-12) for key in found)
    for threshold in range(sketch.error_bound + 1, sketch.error_bound + 5):
        found = set(sketch.heavy_keys(threshold).keys.tolist())
        assert found >= {key for key, count in truth.items() if count >= threshold}


@given(streams, epsilons)
def test_promises_hold(stream, epsilon):
    check_promises(observed(stream, epsilon), stream)


@given(st.lists(streams, min_size=2, max_size=5), epsilons, epsilons, st.randoms(use_true_random=False))
def test_promises_hold_for_merges_of_any_shape_and_for_what_follows(parts, epsilon, other_epsilon, random):
    sketches = [(observed(part, random.choice([epsilon, other_epsilon])), part) for part in parts]
    while len(sketches) > 1:
        (one, seen), (two, seen_too) = (sketches.pop(random.randrange(len(sketches))) for _ in range(2))
        before = one.to_arrow(), two.to_arrow()
        merged = one.merge(two)
        assert (one.to_arrow(), two.to_arrow()) == before
        assert entries_of(merged) == entries_of(two.merge(one))
        check_promises(merged, seen + seen_too)
        more = parts[0]
        merged.observe(np.array(more, np.int64))
        sketches.append((merged, seen + seen_too + more))
    check_promises(*sketches[0])


@pytest.mark.parametrize("epsilon", [0.1, 0.01, 0.001], ids="epsilon is {}".format)
@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(np.arange(50_000), id="every key is new"),
        pytest.param(np.arange(50_000) // 2, id="every key comes twice"),
        pytest.param(np.zeros(50_000, np.int64), id="one key only"),
        pytest.param(np.sort(zipf(3)), id="skewed and sorted"),
        pytest.param(np.sort(-zipf(3)), id="skewed and sorted, heavy keys last"),
    ],
)
def test_memory_stays_within_the_bound_at_every_moment(stream, epsilon):
    sketch = LossyCounting(epsilon)
    most = 0
    for piece in np.array_split(stream, 101):
        sketch.observe(piece)
        windows = sketch.total * epsilon
        assert len(sketch) <= sketch.size_bound <= (math.log(windows + 1) + 1) / epsilon + 1
        most = max(most, int(math.log(windows + 1) / epsilon + 1 / epsilon) + 1)
        assert len(sketch._arrays[2]) <= max(1024, 2 * most)


def test_the_bound_is_nearly_reached_by_keys_that_come_just_often_enough():
    width, windows = 100, 8
    stream, fresh = [], 0
    alive = []
    for _ in range(windows):
        # Keys of older windows come once to stay, new ones twice.
        new = list(range(fresh, fresh + (width - len(alive)) // 2))
        fresh += len(new)
        stream += (alive + new + new + [-1] * width)[:width]
        alive += new
        alive = alive[: width - 2]
    sketch = observed(stream, 1 / width)
    assert 0.3 * sketch.size_bound < len(sketch) <= sketch.size_bound


def test_heavy_keys_come_by_falling_count_and_then_by_key():
    sketch = observed([3, 3, 1, 1, -2, 2, 2, 2], 0.01)
    keys, counts, errors = sketch.heavy_keys(threshold=1)
    assert keys.tolist() == [2, 1, 3, -2]
    assert counts.tolist() == [3, 2, 2, 1]
    assert errors.tolist() == [0, 0, 0, 0]


def test_the_papers_slip_would_keep_what_must_leave():
    # Window 1 is [7, 8]: both have count 1 and error 0, and 1 + 0 <= 1.
    assert len(observed([7, 8], 0.5)) == 0
