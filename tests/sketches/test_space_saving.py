"""Space-saving against its listing, and the laws it promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.sketches import SpaceSaving

LONGS = np.iinfo(np.int64)
keys = st.sampled_from([LONGS.min, LONGS.max, -1, 0, *range(1, 12)])
streams = st.lists(st.tuples(keys, st.integers(1, 5)), max_size=100)
capacities = st.integers(1, 12)


def listing(stream, capacity):
    """The algorithm as published, item by item; entries as key: [count, error], in the order of their slots."""
    entries = {}
    for key, weight in stream:
        if key in entries:
            entries[key][0] += weight
        elif len(entries) < capacity:
            entries[key] = [weight, 0]
        else:
            least, victim = min((count, key) for key, (count, _) in entries.items())
            # The newcomer takes the victim's slot.
            entries = {
                (key if k == victim else k): ([least + weight, least] if k == victim else entry)
                for k, entry in entries.items()
            }
    return entries


def observed(stream, capacity):
    sketch = SpaceSaving(capacity)
    sketch.observe(np.array([k for k, _ in stream], np.int64), np.array([w for _, w in stream], np.int64))
    return sketch


def entries_of(sketch):
    keys, counts, errors = (column.tolist() for column in sketch.entries())
    return {key: [count, error] for key, count, error in zip(keys, counts, errors, strict=True)}


@given(streams, capacities)
def test_it_holds_what_the_listing_holds_in_the_same_slots(stream, capacity):
    assert list(entries_of(observed(stream, capacity)).items()) == list(listing(stream, capacity).items())


@pytest.mark.parametrize("capacity", [1, 2, 63, 64, 65, 300], ids="capacity {}".format)
def test_it_holds_what_the_listing_holds_on_a_long_skewed_stream(capacity):
    rng = np.random.default_rng(capacity)
    stream = rng.integers(LONGS.min, LONGS.max, 2_000)[rng.zipf(1.1, 4_000) % 2_000]
    weights = rng.integers(1, 4, len(stream))
    sketch = SpaceSaving(capacity)
    sketch.observe(stream, weights)
    assert entries_of(sketch) == listing(zip(stream.tolist(), weights.tolist(), strict=True), capacity)


@given(streams, capacities)
def test_no_weights_mean_ones(stream, capacity):
    plain = SpaceSaving(capacity)
    plain.observe(np.array([key for key, _ in stream], np.int64))
    assert entries_of(plain) == listing([(key, 1) for key, _ in stream], capacity)


@given(streams, capacities, st.lists(st.integers(0, 100)))
def test_how_the_stream_is_cut_into_arrays_does_not_matter(stream, capacity, cuts):
    sketch = SpaceSaving(capacity)
    keys = np.array([key for key, _ in stream], np.int64)
    weights = np.array([weight for _, weight in stream], np.int64)
    for piece, of_piece in zip(np.split(keys, sorted(cuts)), np.split(weights, sorted(cuts)), strict=True):
        sketch.observe(piece, of_piece)
    assert sketch.to_arrow().equals(observed(stream, capacity).to_arrow(), check_metadata=True)


@given(streams, capacities)
def test_the_step_for_one_key_gives_its_new_count(stream, capacity):
    from evenkeel._kernels.compile import compiled
    from evenkeel.sketches import _kernels

    step = compiled(_kernels.observe_one.py_func)
    sketch = SpaceSaving(capacity)
    for n, (key, weight) in enumerate(stream, start=1):
        count = step(*sketch._arrays, np.int64(key), weight)
        assert count == listing(stream[:n], capacity)[key][0]
        assert count == sketch.estimate([key])[0]


def check_promises(sketch, stream):
    truth = Counter()
    for key, weight in stream:
        truth[key] += weight
    total = truth.total()
    assert sketch.total == total
    held = entries_of(sketch)
    assert len(held) == len(sketch) <= sketch.capacity == sketch.size_bound
    assert sum(count for count, _ in held.values()) <= total
    assert sketch.error_bound <= total / sketch.capacity
    if len(held) == sketch.capacity:
        assert sketch.error_bound <= min(count for count, _ in held.values()) <= total / sketch.capacity
    else:
        assert sketch.error_bound == 0
    for key in truth.keys() | held.keys() | {-77}:
        count, error = held.get(key, (sketch.error_bound, sketch.error_bound))
        assert error <= sketch.error_bound
        assert count - error <= truth[key] <= count
        assert sketch.estimate([key]).tolist() == [count]
    found = set(sketch.heavy_keys(sketch.error_bound + 1).keys.tolist())
    assert found >= {key for key, weight in truth.items() if weight > sketch.error_bound}
    for delta in (1 / sketch.capacity, 0.5, 1.0):
        found = set(sketch.frequent(delta).keys.tolist())
        assert found >= {key for key, w in truth.items() if w >= delta * total and w > sketch.error_bound}


@given(streams, capacities)
def test_promises_hold(stream, capacity):
    check_promises(observed(stream, capacity), stream)


@given(streams, capacities)
def test_counts_of_a_sketch_that_was_never_merged_add_up_to_the_total(stream, capacity):
    sketch = observed(stream, capacity)
    assert sketch.entries().counts.sum() == sketch.total


@given(st.lists(streams, min_size=2, max_size=5), st.data())
def test_promises_hold_for_merges_of_any_shape_and_for_what_follows(parts, data):
    sketches = [(observed(part, data.draw(capacities)), part) for part in parts]
    while len(sketches) > 1:
        (one, seen), (two, seen_too) = (sketches.pop(data.draw(st.integers(0, len(sketches) - 1))) for _ in range(2))
        before = one.to_arrow(), two.to_arrow()
        merged = one.merge(two)
        assert (one.to_arrow(), two.to_arrow()) == before
        assert merged.to_arrow().equals(two.merge(one).to_arrow(), check_metadata=True)
        check_promises(merged, seen + seen_too)
        more = data.draw(streams)
        merged.observe(np.array([k for k, _ in more], np.int64), np.array([w for _, w in more], np.int64))
        sketches.append((merged, seen + seen_too + more))
    check_promises(*sketches[0])


def test_merging_sketches_that_were_never_full_loses_nothing():
    one, two = SpaceSaving(4), SpaceSaving(4)
    one.observe([1, 1, 2])
    two.observe([2, 3, 4])
    merged = one.merge(two)
    assert merged.error_bound == 0
    assert entries_of(merged) == {1: [2, 0], 2: [2, 0], 3: [1, 0], 4: [1, 0]}


def test_the_bound_of_a_merge_is_the_largest_count_it_dropped():
    one, two = SpaceSaving(2), SpaceSaving(2)
    one.observe([1, 1, 1, 1, 2, 2])
    two.observe([3, 3, 3, 4])
    merged = one.merge(two)
    assert entries_of(merged) == {1: [4, 0], 3: [3, 0]}
    assert merged.error_bound == 2
    assert merged.estimate([2, 4, 9]).tolist() == [2, 2, 2]


def test_memory_is_fixed_from_the_start():
    sketch = SpaceSaving(100)
    before = [array.ctypes.data for array in sketch._arrays]
    sketch.observe(np.arange(10_000))
    assert [array.ctypes.data for array in sketch._arrays] == before
    assert sum(array.nbytes for array in sketch._arrays) <= 100 * (32 + 4 * 12) + 24


def test_counts_near_the_largest_integer_do_not_wrap_around():
    sketch = SpaceSaving(1)
    sketch.observe([1, 2], [2**61, 2**61])
    assert sketch.estimate([2]).tolist() == [2**62]
    with pytest.raises(ValueError, match="total below"):
        sketch.observe([3], [2**62])


def test_heavy_keys_come_by_falling_count_and_then_by_key():
    sketch = SpaceSaving(8)
    sketch.observe([3, 3, 1, 1, -2, 2, 2, 2])
    keys, counts, errors = sketch.heavy_keys(threshold=2)
    assert (keys.tolist(), counts.tolist(), errors.tolist()) == ([2, 1, 3], [3, 2, 2], [0, 0, 0])
