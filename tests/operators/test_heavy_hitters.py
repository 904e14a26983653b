"""Heavy hitters against exact counts: the guarantees hold however the stream is cut, split and merged."""

from __future__ import annotations

import os
from collections import Counter
from datetime import date
from decimal import Decimal
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators import fold
from evenkeel.operators.heavy_hitters import HeavyHitters, item_buckets
from evenkeel.routing import make_router
from operators.harness import groups_of, run, run_split

ROW = st.tuples(st.integers(0, 1), st.integers(0, 12) | st.none())
STREAM = st.lists(st.lists(ROW, max_size=25), min_size=1, max_size=5)
SCHEMA = pa.schema([("key", pa.int64()), ("word", pa.int64())])
few = settings(max_examples=20)


def tables(batches):
    return [pa.Table.from_pylist([{"key": key, "word": word} for key, word in b], SCHEMA) for b in batches]


def exact(batches, key):
    return Counter(word for b in batches for k, word in b if k == key and word is not None)


def check_guarantees(state, truth, capacity):
    """What the class promises, of one summary."""
    total, bound = sum(truth.values()), state["bound"]
    held = {entry["item"]: entry for entry in state["items"]}
    assert len(held) == len(state["items"]) <= capacity
    assert state["total"] == total
    assert bound * capacity <= total
    for item, entry in held.items():
        assert entry["count"] - entry["error"] <= truth[item] <= entry["count"]
        assert 0 <= entry["error"] <= bound <= entry["count"]
    assert all(count <= bound for item, count in truth.items() if item not in held)
    assert sum(entry["count"] for entry in state["items"]) <= total
    assert bound == 0 or len(held) == capacity
    if len(truth) <= capacity:
        assert {item: (entry["count"], entry["error"]) for item, entry in held.items()} == {
            item: (count, 0) for item, count in truth.items()
        }


@few
@given(STREAM, st.integers(1, 15))
def test_guarantees_hold_for_any_cut_into_batches(batches, capacity):
    states = run(HeavyHitters("word", capacity, k=1), tables(batches)).states
    for (key,), state in states.items():
        check_guarantees(state, exact(batches, key), capacity)


@few
@given(STREAM, st.integers(1, 15), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
def test_guarantees_hold_for_any_split(batches, capacity, channels, every, seed):
    operator = HeavyHitters("word", capacity, k=1)
    states = run_split(operator, tables(batches), channels=channels, every=every, seed=seed).states
    for (key,), state in states.items():
        check_guarantees(state, exact(batches, key), capacity)


@few
@given(st.lists(st.lists(ROW, max_size=20), min_size=3, max_size=3), st.integers(1, 15))
def test_merging_is_commutative_and_nulls_are_neutral_and_below_capacity_it_is_all_exact(parts, capacity):
    operator = HeavyHitters("word", capacity, k=1)
    every = [(0, None), (1, None)]
    a, b, c = (operator.lift(groups_of(table)) for table in tables([every + part for part in parts]))
    assert operator.merge(a, b).equals(operator.merge(b, a))
    nulls = pa.Table.from_pylist([{}] * 2, a.schema)
    assert operator.merge(a, nulls).equals(a)
    left, right = operator.merge(operator.merge(a, b), c), operator.merge(a, operator.merge(b, c))
    keys = groups_of(tables([every])[0]).keys["key"].to_pylist()
    for states in (left, right):  # associative for the guarantees …
        for key, state in zip(keys, states.to_pylist(), strict=True):
            check_guarantees(state, exact(parts, key), capacity)
    if capacity >= 13:  # … and bit for bit while everything fits
        assert left.equals(right)
        assert left.equals(operator.lift(groups_of(tables([every + list(chain(*parts))])[0])))


@few
@given(STREAM, st.integers(1, 8), st.integers(1, 8))
def test_the_k_best_and_which_of_them_are_certain(batches, capacity, k):
    k = min(k, capacity)
    outcome = run(HeavyHitters("word", capacity, k=k), tables(batches))
    for key, state in outcome.states.items():
        truth = exact(batches, key[0])
        rows = outcome.of(*key)
        shown = rows[len(rows) - min(k, len(state["items"])) :]
        assert [row["rank"] for row in shown] == list(range(1, len(shown) + 1))
        best = sorted(truth.values(), reverse=True)
        for row in shown:
            entry = {"item": row["word"], "count": row["count"], "error": row["error"]}
            assert entry == state["items"][row["rank"] - 1]
            rival = state["items"][k]["count"] if len(state["items"]) > k else state["bound"]
            assert row["guaranteed"] == (row["count"] - row["error"] >= rival)
            if row["guaranteed"]:
                assert truth[row["word"]] >= best[min(k, len(best)) - 1]


@few
@given(STREAM, st.integers(2, 8))
def test_no_item_above_the_threshold_is_missed(batches, capacity):
    threshold = 1 / capacity + 0.01
    outcome = run(HeavyHitters("word", capacity, threshold=threshold), tables(batches))
    last = run(HeavyHitters("word", capacity, k=capacity), tables(batches)).states
    for key, state in last.items():
        truth = exact(batches, key[0])
        wanted = threshold * sum(truth.values())
        expected = [entry["item"] for entry in state["items"] if entry["count"] > wanted]
        rows = outcome.of(*key)
        shown = rows[len(rows) - len(expected) :]
        assert [row["word"] for row in shown] == expected
        assert {item for item, count in truth.items() if count > wanted} <= set(expected)
        assert all(truth[row["word"]] > wanted for row in shown if row["guaranteed"])


@few
@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 50)), max_size=40), st.integers(1, 12))
def test_weights_are_added_up(rows, capacity):
    truth = Counter()
    for item, weight in rows:
        truth[item] += weight or 0
    truth = +truth
    table = pa.table(
        {
            "key": pa.array([0] * len(rows), pa.int64()),
            "item": pa.array([i for i, _ in rows], pa.int64()),
            "bytes": pa.array([w for _, w in rows], pa.int64()),
        }
    )
    states = run(HeavyHitters("item", capacity, k=1, weight="bytes"), [table[:20], table[20:]]).states
    for state in states.values():
        check_guarantees(state, truth, capacity)


@pytest.mark.parametrize(
    "items",
    [
        ["b", "a", "b"],
        [b"x", b"", b"x"],
        [2, 1, 2],
        [2.5, 1.5, 2.5],
        [True, False, True],
        [date(2020, 1, 2), date(2020, 1, 1), date(2020, 1, 2)],
        [Decimal("2.5"), Decimal("1.5"), Decimal("2.5")],
    ],
    ids=["text", "binary", "integers", "floats", "booleans", "dates", "decimals"],
)
def test_items_of_many_types(items):
    outcome = run(HeavyHitters("item", 4, k=2), [pa.table({"key": [0, 0, 0], "item": items})])
    assert [(row["item"], row["count"]) for row in outcome.of(0)] == [(items[0], 2), (items[1], 1)]


def test_what_is_refused():
    with pytest.raises(InvalidArgumentError, match="either k or threshold"):
        HeavyHitters("word", 10)
    with pytest.raises(InvalidArgumentError, match="k must not exceed the capacity of 10; got 11"):
        HeavyHitters("word", 10, k=11)
    with pytest.raises(InvalidArgumentError, match="Raise the capacity"):
        HeavyHitters("word", 10, threshold=0.05)
    with pytest.raises(InvalidArgumentError, match="clash"):
        HeavyHitters("count", 10, k=1)
    with pytest.raises(UnknownNameError, match="Did you mean 'word'"):
        HeavyHitters("wrod", 10, k=1).state_schema(SCHEMA)
    with pytest.raises(UnsupportedTypeError, match="only plain values"):
        HeavyHitters("word", 10, k=1).state_schema(pa.schema([("word", pa.list_(pa.int64()))]))
    with pytest.raises(UnsupportedTypeError, match="whole numbers"):
        HeavyHitters("key", 10, k=1, weight="w").state_schema(SCHEMA.append(pa.field("w", pa.float64())))
    rows = pa.table({"key": [0], "word": [1], "w": [-1]})
    with pytest.raises(InvalidArgumentError, match="holds -1"):
        run(HeavyHitters("word", 10, k=1, weight="w"), [rows])


def summaries(name, words, channels, capacity, batches=5):
    """One summary per channel, of items dealt out by their own hash; and the router."""
    operator = HeavyHitters("word", capacity, k=1)
    router = make_router(name, channels)
    found = [[] for _ in range(channels)]
    for part in np.array_split(words, batches):
        route = router.route(part)
        for channel in range(channels):
            mine = part[route == channel]
            found[channel].append(pa.table({"key": np.zeros(len(mine), np.int64), "word": mine}))
    return [run(operator, batch).states[0,] for batch in found], router


def claim(words, channels, capacity):
    """Check each grouping's estimate against exact counts; return the mean bound of the 50 most frequent items."""
    truth = Counter(words.tolist())
    frequent = [word for word, _ in truth.most_common(50)]
    bounds = {}
    for name in ("key_grouping", "pkg", "shuffle"):
        states, router = summaries(name, words, channels, capacity)
        held = [{entry["item"]: entry for entry in state["items"]} for state in states]
        reach = router.reachable(np.array(frequent))
        of_name = []
        for word, channels_of in zip(frequent, reach.tolist(), strict=True):
            mine = set(channels_of)
            assert all(word not in held[channel] for channel in range(channels) if channel not in mine)
            estimate = sum(held[channel][word]["count"] for channel in mine if word in held[channel])
            bound = sum(states[channel]["bound"] for channel in mine)
            assert abs(estimate - truth[word]) <= bound
            of_name.append(bound)
            assert len(mine) <= {"key_grouping": 1, "pkg": 2, "shuffle": channels}[name]
        bounds[name] = np.mean(of_name)
    return bounds


@pytest.mark.parametrize("channels", [8, 32])
def test_an_items_error_comes_from_two_summaries_under_pkg_and_from_all_under_shuffle_grouping(channels):
    """§VI-C: the bound is a sum of two terms instead of N, whatever N is."""
    words = np.random.default_rng(3).zipf(1.1, 40_000) % 20_000
    bounds = claim(words, channels, capacity=100)
    assert bounds["pkg"] < bounds["shuffle"] * 4 / channels
    assert bounds["key_grouping"] <= bounds["shuffle"]


def test_buckets_of_items_bring_the_claim_to_the_merge_stage():
    """Keyed by bucket and split in two, the merged summary's bound is that of its two parts and the cut."""
    channels, capacity = 16, 50
    words = np.random.default_rng(4).zipf(1.1, 30_000) % 20_000
    buckets = item_buckets(words, 64)
    router = make_router("pkg", channels)
    operator = HeavyHitters("word", capacity, k=1)
    rows = pa.table({"bucket": buckets, "word": words})
    route = router.route(buckets)
    parts = []
    for channel in range(channels):
        groups = groups_of(rows.filter(pa.array(route == channel)), ["bucket"])
        parts.append(
            pa.table(
                [*groups.keys.columns, *operator.lift(groups).columns],
                names=["bucket", *operator.state_schema(rows.schema).names],
            )
        )
    handed = pa.concat_tables(parts)
    groups = groups_of(handed, ["bucket"])
    assert groups.counts.max() == 2
    merged = fold(operator, handed.drop_columns("bucket"), groups.key_of, len(groups))
    for bucket, state in zip(groups.keys["bucket"].to_pylist(), merged.to_pylist(), strict=True):
        check_guarantees(state, Counter(words[buckets == bucket].tolist()), capacity)
    assert max(merged["bound"].to_pylist()) < len(words) / capacity / 10  # of one summary for all


def test_real_words():
    folder = os.environ.get("EVENKEEL_DATA")
    if folder is None:
        pytest.skip("EVENKEEL_DATA names no folder with congress2021_words.parquet")
    words = pq.read_table(Path(folder) / "congress2021_words.parquet", columns=["key"])["key"][:300_000]
    rows = pa.table({"key": pa.array(np.zeros(len(words), np.int64)), "word": words})
    states = run(HeavyHitters("word", 1_000, k=10), [rows[i : i + 50_000] for i in range(0, len(rows), 50_000)]).states
    truth = Counter(words.to_pylist())
    check_guarantees(states[0,], truth, 1_000)
    best = [entry["item"] for entry in states[0,]["items"][:10]]
    assert best == [word for word, _ in truth.most_common(10)]
