"""Sliding lossy counting: which items it covers, and that it answers as one counter over them would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.sketches import LossyCounting, SlidingLossyCounting

streams = st.lists(st.integers(-4, 4), max_size=80)
windows = st.integers(4, 23)
counters = st.integers(2, 5)


def listing(stream, window, epsilon, counters):
    """Staggered tumbling counters, item by item; gives the one in use after each item, and its stream."""
    starts = {number * window // (counters - 1) for number in range(len(stream) + counters)}
    alive = [(LossyCounting(epsilon), [])]
    for n, key in enumerate(stream, start=1):
        for counter, seen in alive:
            counter.observe([key])
            seen.append(key)
        if n in starts:
            alive = [*alive, (LossyCounting(epsilon), [])][-counters:]
        yield alive[0]


@given(streams, windows, counters)
def test_it_covers_and_answers_what_the_listing_does_after_every_item(stream, window, counters):
    sketch = SlidingLossyCounting(window, 0.2, counters)
    for n, (counter, seen) in enumerate(listing(stream, window, 0.2, counters), start=1):
        sketch.observe(stream[n - 1 : n])
        assert sketch.total == n
        assert sketch.covered == len(seen)
        assert seen == stream[n - len(seen) : n]
        assert sketch.in_use.to_arrow().equals(counter.to_arrow(), check_metadata=True)


@given(st.integers(0, 500), st.integers(1, 60), counters)
def test_the_counter_in_use_covers_between_one_window_and_one_step_more(items, window, counters):
    window = max(window, counters - 1)
    sketch = SlidingLossyCounting(window, 0.1, counters)
    sketch.observe(np.zeros(items, np.int64))
    if items < window:
        assert sketch.covered == items
    else:
        assert window <= sketch.covered <= window * (1 + 1 / (counters - 1))


@given(streams, windows, counters, st.lists(st.integers(0, 80)))
def test_how_the_stream_is_cut_into_arrays_does_not_matter(stream, window, counters, cuts):
    whole, pieces = SlidingLossyCounting(window, 0.2, counters), SlidingLossyCounting(window, 0.2, counters)
    whole.observe(np.array(stream, np.int64))
    for piece in np.split(np.array(stream, np.int64), sorted(cuts)):
        pieces.observe(piece)
    assert whole.to_arrow().equals(pieces.to_arrow(), check_metadata=True)


def test_three_counters_reach_one_and_a_half_windows_as_in_the_papers_figure():
    sketch = SlidingLossyCounting(window=100, epsilon=0.1)
    covered = []
    for _ in range(400):
        sketch.observe([1])
        covered.append(sketch.covered)
    assert covered[:149] == list(range(1, 150))
    assert set(covered[149:]) == set(range(100, 150))


def test_it_forgets_keys_that_come_no_more():
    rng = np.random.default_rng(11)
    sketch = SlidingLossyCounting(window=2000, epsilon=0.01, counters=5)
    sketch.observe(rng.integers(0, 5, 10_000))
    sketch.observe(rng.integers(100, 105, 2_500))
    assert sorted(sketch.frequent(0.1).keys.tolist()) == [100, 101, 102, 103, 104]
    assert sketch.estimate(np.arange(5)).tolist() == [0] * 5
    assert sketch.heavy_keys(1).keys.tolist() == sketch.frequent(0.1).keys.tolist()


@pytest.mark.parametrize("counters", [2, 3, 6], ids="{} counters".format)
def test_memory_stays_within_that_of_its_counters(counters):
    window, epsilon = 5_000, 0.01
    sketch = SlidingLossyCounting(window, epsilon, counters)
    rng = np.random.default_rng(1)
    for _ in range(40):
        sketch.observe(rng.zipf(1.3, 1_000))
        windows = epsilon * window * (1 + 1 / (counters - 1))
        assert len(sketch) <= sketch.size_bound <= counters * (np.log(windows + 1) + 1) / epsilon


@given(streams, streams)
def test_a_merge_is_of_what_both_cover(stream, other_stream):
    one, two = SlidingLossyCounting(10, 0.2), SlidingLossyCounting(20, 0.2, 4)
    one.observe(np.array(stream, np.int64))
    two.observe(np.array(other_stream, np.int64))
    merged = one.merge(two)
    assert merged.total == one.covered + two.covered
    seen = stream[len(stream) - one.covered :] + other_stream[len(other_stream) - two.covered :]
    for key in range(-4, 5):
        assert seen.count(key) - merged.error_bound <= merged.estimate([key])[0] <= seen.count(key)
