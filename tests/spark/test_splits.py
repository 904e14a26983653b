"""Strategies that look at every tuple: split keys come together again, and nothing else changes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.errors import IncompatibleCheckpointError, InvalidArgumentError, UnknownNameError
from evenkeel.operators import Count, PerKey, Sum
from evenkeel.routing import make_router
from evenkeel.spark.api import stream
from spark.engine_helpers import Remember, expected, file_stream, write_batches, zipf_words

pytestmark = pytest.mark.spark


@pytest.fixture
def place(tmp_path):
    return {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}


def run(spark, directory, place, operator, **options):
    sink = Remember()
    query = stream(file_stream(spark, directory), key="word").apply(operator, **options).start(sink, **place)
    query.process_all_available()
    query.stop()
    return query, sink


@pytest.mark.parametrize("strategy", ["pkg", "shuffle", "w_choices", "universal_hash", "key_grouping"])
def test_results_are_those_of_key_grouping(spark, tmp_path, place, strategy):
    tables = [zipf_words(2000, 100, seed) for seed in range(3)]
    write_batches(tmp_path / "in", tables)
    query, sink = run(spark, tmp_path / "in", place, Sum("value"), strategy=strategy, channels=4)
    assert sink.latest("sum") == expected(tables)[1]
    held = [report["loads"]["held_keys"] for report in query.history[-1]["reports"][-1]]
    assert sum(sum(keys) for keys in held) == len(expected(tables)[1])


def test_pkg_evens_what_key_grouping_cannot(spark, tmp_path, place):
    rng = np.random.default_rng(1)
    words = np.where(rng.random(6000) < 0.25, "hot", rng.integers(0, 500, 6000).astype(str))
    write_batches(tmp_path / "in", [pa.table({"word": words, "value": np.ones(6000, np.int64)})])
    query, sink = run(spark, tmp_path / "in", place, Count(), strategy="pkg", channels=4)
    rows = [report["rows"] for report in query.history[0]["reports"][0]]
    assert max(rows) < 1.05 * 6000 / 4
    assert sink.latest("count") == Counter(words.tolist())


def test_partial_states_are_handed_on_every_so_often(spark, tmp_path, place):
    tables = [zipf_words(1000, 60, seed) for seed in range(6)]
    write_batches(tmp_path / "in", tables)
    query, sink = run(spark, tmp_path / "in", place, Count(), strategy="pkg", channels=3, aggregate_every=3)
    assert sorted(batch for batch in sink.batches if sink.batches[batch]) == [2, 5]
    assert sink.latest("count") == expected(tables)[0]
    traffic = [sum(report["rows"] for report in batch["reports"][1]) for batch in query.history]
    assert [rows > 0 for rows in traffic] == [False, False, True] * 2
    # In between, the parts are counters of the channels: at most two per key.
    counters = sum(sum(report["loads"]["held_keys"]) for report in query.history[1]["reports"][0])
    keys = len(expected(tables[:2])[0])
    assert keys < counters <= 2 * keys


def test_combining_before_the_shuffle_changes_nothing_but_the_traffic(spark, tmp_path, place):
    tables = [zipf_words(3000, 50, seed) for seed in range(3)]
    write_batches(tmp_path / "in", tables)
    query, sink = run(spark, tmp_path / "in", place, Sum("value"), channels=3, combine=True)
    assert sink.latest("sum") == expected(tables)[1]
    assert sum(report["rows"] for report in query.history[0]["reports"][0]) <= 2 * 50


def test_the_strategy_and_the_channels_may_change_at_a_restart(spark, tmp_path, place):
    tables = [zipf_words(500, 60, seed) for seed in range(14)]
    ways = [
        {"strategy": "keel", "channels": 4},
        {"strategy": "pkg", "channels": 3, "aggregate_every": 2},
        {"strategy": "pkg", "channels": 5, "aggregate_every": 2},  # with partial states that must move and merge
        {"strategy": "readj", "channels": 2},
        {"strategy": "universal_hash", "channels": 3},
        {"strategy": make_router("universal_hash", 4, seed=7), "channels": 4},
        {"strategy": "keel", "channels": 6, "combine": True},
    ]
    batches = [2, 3, 1, 2, 2, 2, 2]
    sink = Remember()
    done = 0
    for way, count in zip(ways, batches, strict=True):
        write_batches(tmp_path / "in", tables[done : done + count], done)
        done += count
        flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(Count(), **way)
        query = flow.start(sink, **place)
        query.process_all_available()
        query.stop()
        assert query.table.channels == way["channels"]
    assert done == len(tables)
    assert sink.latest("count") == expected(tables)[0]


def test_partial_results_are_not_left_behind(spark, tmp_path, place):
    write_batches(tmp_path / "in", [zipf_words(200, 20, 0)])
    run(spark, tmp_path / "in", place, Count(), strategy="pkg", channels=2, aggregate_every=5)
    with pytest.raises(IncompatibleCheckpointError, match=r"partial results.*aggregate_every=1"):
        run(spark, tmp_path / "in", place, Count(), strategy="keel", channels=2)


NUMBER = pa.schema([("n", pa.int64())])


def how_many(key, rows, state):
    return {"n": len(rows)}, [{"n": len(rows)}]


PER_KEY = PerKey(how_many, state=NUMBER, output=NUMBER)


def test_an_operator_that_does_not_merge_is_not_split_unless_one_insists(spark, tmp_path, place):
    rows = spark.createDataFrame(pa.table({"word": ["a"] * 100}))
    keyed = stream(rows, key="word")
    with pytest.raises(InvalidArgumentError, match=r"'pkg' splits keys.*'per_key' do not merge.*'keel'"):
        keyed.apply(PER_KEY, strategy="pkg", channels=4)
    parts = []
    flow = keyed.apply(PER_KEY, strategy="pkg", channels=4, split_results="partial")
    flow.start(lambda results, _: parts.extend(row["n"] for row in results.collect()), **place)
    assert sum(parts) == 100
    assert len(parts) == 2


def test_probing_rows_reach_every_part_of_their_key(spark, place):
    words = [f"word{i % 30}" for i in range(600)]
    rows = pa.table({"word": [*words, *words[:30]], "asks": [False] * 600 + [True] * 30})
    found = []

    def answer(key, rows, state):
        seen = sum(not row["asks"] for row in rows)
        return {"n": seen}, [{"n": seen} for row in rows if row["asks"]]

    operator = PerKey(answer, state=NUMBER, output=NUMBER)
    flow = stream(spark.createDataFrame(rows), key="word").apply(
        operator, strategy="pkg", channels=4, split_results="partial", probe="asks"
    )
    flow.start(lambda results, _: found.extend(results.collect()), **place)
    totals = Counter()
    for row in found:
        totals[row["word"]] += row["n"]
    assert totals == Counter(words)
    assert 30 < len(found) <= 60  # both channels of a key answer, where it has two


def test_mistakes_are_told_at_once(spark):
    keyed = stream(spark.createDataFrame(zipf_words(10, 5, 0)), key="word")
    with pytest.raises(UnknownNameError, match="Did you mean 'keel'"):
        keyed.apply(Count(), strategy="keeel")
    with pytest.raises(InvalidArgumentError, match="remembers a choice for each key"):
        keyed.apply(Count(), strategy="potc")
    with pytest.raises(InvalidArgumentError, match="for 3 channels, the stage has 8"):
        keyed.apply(Count(), strategy=make_router("pkg", 3))
    with pytest.raises(InvalidArgumentError, match="does not merge"):
        keyed.apply(PER_KEY, combine=True)
    with pytest.raises(InvalidArgumentError, match="looks at every tuple"):
        keyed.apply(Count(), strategy="pkg", combine=True)
    with pytest.raises(InvalidArgumentError, match="strategies that split keys"):
        keyed.apply(Count(), aggregate_every=3)
    with pytest.raises(InvalidArgumentError, match="look at every tuple"):
        keyed.apply(Count(), probe="value")
