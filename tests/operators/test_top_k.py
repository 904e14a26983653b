"""Top-k beside sorting a dictionary; the streaming top-k word count under three groupings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators import Count, fold
from evenkeel.operators.top_k import TopK
from evenkeel.routing import make_router
from operators.harness import groups_of, run, run_split
from operators.routed import RoutedStage

SCHEMA = pa.schema([("key", pa.int64()), ("word", pa.string()), ("count", pa.int64())])
ROW = st.tuples(st.integers(0, 2), st.sampled_from([*"abcdef", None]), st.none() | st.integers(-3, 9))
STREAM = st.lists(st.lists(ROW, max_size=12), min_size=1, max_size=4)
few = settings(max_examples=15)


def tables(batches):
    return [pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in b], SCHEMA) for b in batches]


def literal(rows, k):
    """The ranking of each key, from scratch."""
    best: dict = {}
    for key, word, count in rows:
        if word is not None and count is not None:
            held = best.setdefault(key, {})
            held[word] = max(count, held.get(word, count))
    return {key: sorted(held.items(), key=lambda pair: (-pair[1], pair[0]))[:k] for key, held in best.items()}


def rankings(outcome):
    """What a consumer who keeps the last ranking of each key holds."""
    shown: dict = {}
    for (key,), row in outcome.outputs:
        if row["rank"] == 1:
            shown[key] = []
        assert row["rank"] == len(shown[key]) + 1
        shown[key].append((row["word"], row["count"]))
    return shown


@few
@given(STREAM, st.integers(1, 4))
def test_the_last_ranking_is_the_one_from_scratch(batches, k):
    assert rankings(run(TopK(k), tables(batches))) == literal([row for b in batches for row in b], k)


@few
@given(STREAM, st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 9))
def test_split_keys_give_the_same_ranking(batches, k, channels, every, seed):
    split = run_split(TopK(k), tables(batches), channels=channels, every=every, seed=seed)
    assert rankings(split) == literal([row for b in batches for row in b], k)


@few
@given(STREAM, st.integers(1, 3))
def test_a_ranking_is_given_exactly_when_it_changed(batches, k):
    seen, before, wanted = [], {}, []
    for b in batches:
        seen += b
        after = literal(seen, k)
        changed = [key for key in after if after[key] != before.get(key)]
        wanted += sorted((key, len(seen), word) for key in changed for word, _ in after[key])
        before = after
    outputs, length = [], 0
    for number, b in enumerate(batches):
        length += len(b)
        done = run(TopK(k), tables(batches[: number + 1])).outputs
        outputs += sorted((key[0], length, row["word"]) for key, row in done[len(outputs) :])
    assert outputs == wanted


@few
@given(st.lists(ROW, max_size=20), st.lists(ROW, max_size=20), st.lists(ROW, max_size=20))
def test_merging_is_associative_and_commutative_and_lifting_is_merging(one, two, three):
    operator = TopK(2)
    # A first row of every key, so that all batches have the same keys.
    every = [(key, None, None) for key in range(3)]
    a, b, c = (operator.lift(groups_of(table)) for table in tables([every + one, every + two, every + three]))
    left = operator.merge(operator.merge(a, b), c)
    assert left.equals(operator.merge(a, operator.merge(c, b)))
    assert left.equals(operator.lift(groups_of(tables([every + one + two + three])[0])))
    nulls = pa.Table.from_pylist([{}] * 3, left.schema)
    assert operator.merge(left, nulls).equals(left)
    assert operator.merge(nulls, left).equals(left)


def test_items_may_have_several_columns_and_values_may_be_floats():
    rows = pa.table(
        {"key": [1, 1, 1, 1], "a": ["x", "x", "y", None], "b": [1, 2, 1, 7], "v": [0.5, 2.5, float("nan"), 1]}
    )
    outcome = run(TopK(3, by="v", item=["a", "b"]), [rows])
    assert [tuple(row.values()) for row in outcome.of(1)] == [(1, "x", 2, 2.5), (2, None, 7, 1.0), (3, "x", 1, 0.5)]


def test_the_extremes_of_a_long_have_an_order():
    low, high = -(2**63), 2**63 - 1
    rows = pa.table({"key": [1, 1, 1], "word": ["low", "high", "none"], "count": [low, high, 0]})
    assert [row["word"] for row in run(TopK(3), [rows]).of(1)] == ["high", "none", "low"]


def test_what_is_refused():
    with pytest.raises(InvalidArgumentError, match="k must be a whole number of at least 1; got 0"):
        TopK(0)
    with pytest.raises(InvalidArgumentError, match="other than by"):
        TopK(1, by="word")
    with pytest.raises(InvalidArgumentError, match="clash"):
        TopK(1, item="rank")
    with pytest.raises(UnknownNameError, match="Did you mean 'count'"):
        TopK(1, by="coumt").state_schema(SCHEMA)
    with pytest.raises(UnsupportedTypeError, match="must hold numbers"):
        TopK(1, by="word", item="count").state_schema(SCHEMA)
    with pytest.raises(UnsupportedTypeError, match="only plain values"):
        TopK(1).state_schema(pa.schema([("word", pa.list_(pa.string())), ("count", pa.int64())]))


def zipf_words(seed, words):
    return np.random.default_rng(seed).zipf(1.3, words) % 500


@pytest.mark.parametrize("aggregate_every", [1, 4])
def test_streaming_top_k_word_count_costs_what_the_paper_says(aggregate_every):
    """§II-A and §III-A: K counters under key grouping, up to 2K under PKG, up to W·K under shuffle grouping."""
    channels, k = 8, 10
    batches = [zipf_words(seed, 2_000) for seed in range(8)]
    truth = Counter(np.concatenate(batches).tolist())
    wanted = sorted(truth.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    most_held, rows_merged = {}, {}
    for name in ("key_grouping", "pkg", "shuffle"):
        rows = pa.schema([("word", pa.int64())])
        merge_stage, count = {}, Count()
        held, through, ranked = 0, 0, []
        router = make_router(name, channels)
        partial = RoutedStage(count, rows, ["word"], router)
        for number, words in enumerate(batches, 1):
            partial.feed(pa.table({"word": words}))
            held = max(held, partial.keys_held())
            if number % aggregate_every:
                continue
            handed = partial.parts()
            partial = RoutedStage(count, rows, ["word"], router)  # what is handed on is forgotten
            through += len(handed)
            groups = groups_of(handed, ["word"])
            merged = fold(count, handed.select(["count"]), groups.key_of, len(groups))["count"].to_pylist()
            for word, more in zip(groups.keys["word"].to_pylist(), merged, strict=True):
                merge_stage[word] = merge_stage.get(word, 0) + more
            touched = groups.keys["word"].to_pylist()
            ranked.append(
                pa.table({"all": [0] * len(touched), "word": touched, "count": [merge_stage[w] for w in touched]})
            )
        assert merge_stage == truth
        last = [tuple(row.values()) for row in run(TopK(k), ranked, ["all"]).of(0)[-k:]]
        assert last == [(rank, word, number) for rank, (word, number) in enumerate(wanted, 1)]
        most_held[name], rows_merged[name] = held, through
    for cost in (most_held, rows_merged):
        assert cost["key_grouping"] < cost["pkg"] <= 2 * cost["key_grouping"]
        assert cost["pkg"] < cost["shuffle"] <= channels * cost["key_grouping"]
    if aggregate_every > 1:  # the longer counters are kept, the more of them there are in shuffle grouping
        assert most_held["shuffle"] > 2 * most_held["key_grouping"]
