"""Every application on Spark: whatever moves, and in every batch, the results are those of a plain reference."""

from __future__ import annotations

import math
import os
from collections import Counter
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from evenkeel.control import Controller, ControlOptions, CoolDown, Imbalance, RelativeGain, WindowOptions, WorthItsCost
from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import hash_keys
from evenkeel.operators import (
    Aggregate,
    Count,
    Detector,
    FeatureClassCounts,
    FeatureHistograms,
    Groups,
    HeavyHitters,
    NaiveBayesPredict,
    PerKey,
    Reordered,
    Sessions,
    Sum,
    TopK,
    count_rows,
    first_story,
    lsh_keys,
)
from evenkeel.planning import make_planner
from evenkeel.spark import stage
from evenkeel.spark.api import stream
from evenkeel.spark.join import join
from spark.engine_helpers import Forced, file_stream, write_batches

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
MICROS = pa.timestamp("us", "UTC")
EAGER = ControlOptions(
    windows=WindowOptions(batches=1),
    imbalance=Imbalance(1, 1),
    cool_down=CoolDown(0),
    relative_gain=RelativeGain(0),
    worth_its_cost=WorthItsCost(10**9),
)


@pytest.fixture
def place(tmp_path):
    return {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}


def shaking(channels: int = 3) -> dict:
    return {"strategy": Forced([channels, channels + 2, channels - 1, channels + 1]), "channels": channels}


def finish(flow, place):
    """Run over all files that are there, and give the query."""
    query = flow.start("memory", **place)
    query.process_all_available()
    query.stop()
    return query


def was_shaken(query) -> None:
    """State must have moved, or a test of moves says nothing."""
    assert sum(report["imported_bytes"] for batch in query.history for report in batch["reports"][0]) > 0


def rows_of(table: pa.Table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def timed(batch: int, rows: int, keys: int = 40, minutes: int = 60) -> pa.Table:
    """An hour of tuples in any order; the last batch also brings a key whose time is far ahead."""
    rng = np.random.default_rng(batch)
    seconds = 60 * minutes * batch + rng.integers(0, 60 * minutes, rows)
    shares = 1 / np.arange(1, keys + 1)
    words = [f"word{key}" for key in rng.choice(keys, rows, p=shares / shares.sum())]
    times = pa.array([START + timedelta(seconds=int(second)) for second in seconds], MICROS)
    return pa.table({"word": words, "ts": times, "value": rng.integers(0, 100, rows)})


def the_end(batch: int) -> pa.Table:
    """A batch with one tuple, so late that the watermark then passes all others."""
    ahead = pa.array([START + timedelta(days=batch)], MICROS)
    return pa.table({"word": ["the end"], "ts": ahead, "value": pa.array([0])})


# -- sessions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [shaking(), {"strategy": "pkg", "channels": 4}], ids=["moved", "split"])
def test_sessions_are_those_of_sparks_session_window(spark, tmp_path, place, options):
    tables = [*(timed(batch, 300) for batch in range(3)), the_end(7), the_end(8)]
    write_batches(tmp_path / "in", tables)
    summary = Aggregate(n=Count(), total=Sum("value"))
    keyed = stream(file_stream(spark, tmp_path / "in"), key="word", event_time="ts", delay="1 hour")
    query = finish(keyed.apply(Sessions("10 minutes", summary), **options), place)
    gap = F.session_window("ts", "10 minutes")
    static = spark.read.parquet(str(tmp_path / "in")).where("word != 'the end'")
    native = static.groupBy("word", gap).agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    native = native.select("word", "session_window.start", "session_window.end", "n", "total").toArrow()
    assert len(native) > 150
    ours = query.sink.table()
    assert rows_of(ours.filter(pc.not_equal(ours["word"], "the end"))) == rows_of(native)
    if "pkg" not in options.values():
        was_shaken(query)


# -- joins -------------------------------------------------------------------------------------------------------------


def both_sides(tmp_path, batches: int = 3, rows: int = 120) -> None:
    left = [timed(batch, rows) for batch in range(batches)]
    right = [timed(100 + batch, rows).set_column(1, "ts", timed(batch, rows)["ts"]) for batch in range(batches)]
    write_batches(tmp_path / "left", left)
    write_batches(tmp_path / "right", [table.rename_columns({"value": "paid"}) for table in right])


def native_pairs(spark, tmp_path) -> list[tuple]:
    left, right = (spark.read.parquet(str(tmp_path / side)) for side in ("left", "right"))
    near = F.abs(F.unix_micros(left.ts) - F.unix_micros(right.ts)) <= 600_000_000
    pairs = left.join(right, (left.word == right.word) & near)
    return rows_of(pairs.select(left.word, left.ts, "value", right.ts.alias("right_ts"), "paid").toArrow())


JOIN = {"key": "word", "event_time": "ts", "within": "10 minutes", "delay": "1 hour"}


def test_a_join_finds_the_pairs_of_a_batch_join(spark, tmp_path, place):
    both_sides(tmp_path)
    joined = join(file_stream(spark, tmp_path / "left"), file_stream(spark, tmp_path / "right"), **JOIN)
    query = finish(joined.apply(**shaking()), place)
    pairs = query.sink.table()
    assert pairs.column_names == ["word", "left_ts", "value", "right_ts", "paid"]
    assert rows_of(pairs) == native_pairs(spark, tmp_path)
    assert len(pairs) > 200
    was_shaken(query)


def test_static_rows_are_joined_too_and_null_keys_equal_none(spark, tmp_path, place):
    both_sides(tmp_path, batches=1)
    left, right = (spark.read.parquet(str(tmp_path / side)) for side in ("left", "right"))
    nobody = F.lit(None).cast("string")
    joined = join(left.unionByName(left.withColumn("word", nobody)), right, names=("order", "payment"), **JOIN)
    pairs = joined.apply(channels=2).start("memory", **place).sink.table()
    assert pairs.column_names == ["word", "order_ts", "value", "payment_ts", "paid"]
    assert rows_of(pairs) == native_pairs(spark, tmp_path)


def test_mistakes_in_a_join_are_told_at_once(spark, tmp_path):
    both_sides(tmp_path, batches=1, rows=5)
    left, right = (spark.read.parquet(str(tmp_path / side)) for side in ("left", "right"))
    with pytest.raises(InvalidArgumentError, match=r"left side is streaming and the right side is not"):
        join(file_stream(spark, tmp_path / "left"), right, **JOIN)
    with pytest.raises(
        InvalidArgumentError, match=r"no key column 'word' on the right.*Columns: who, ts, paid.*rename"
    ):
        join(left, right.withColumnRenamed("word", "who"), **JOIN)
    with pytest.raises(
        InvalidArgumentError, match=r"key column 'word' is string on the left and int on the right.*cast"
    ):
        join(left, right.withColumn("word", F.lit(1)), **JOIN)
    with pytest.raises(InvalidArgumentError, match=r"event-time column 'ts' is timestamp on the left and date on"):
        join(left, right.withColumn("ts", F.to_date("ts")), **JOIN)
    with pytest.raises(InvalidArgumentError, match=r"Two columns would be called 'left_value'.*names="):
        join(left.withColumn("left_value", F.lit(1)), right.withColumn("value", F.lit(1)), **JOIN)
    with pytest.raises(InvalidArgumentError, match=r"'pkg' splits keys.*'window_join' do not merge"):
        join(left, right, **JOIN).apply("pkg")


# -- rules and first stories -------------------------------------------------------------------------------------------

RULES = Detector(
    {
        "spike": """
            SELECT value, count(*) OVER before AS seen FROM events
            QUALIFY value > 1.9 * avg(value) OVER before
            WINDOW before AS (ROWS BETWEEN 10 PRECEDING AND 1 PRECEDING)
        """,
        "low, low, high": """
            SELECT * FROM events MATCH_RECOGNIZE (
                MEASURES LAST(high.value) AS value PATTERN (low{2} high) WITHIN INTERVAL '30 minutes'
                DEFINE low AS value < 30, high AS value > 70
            )
        """,
    }
)
STRATEGIES = ["key_grouping", "dlb_l", "dlb_h", "keel", "forced"]


def options_of(strategy: str) -> dict:
    if strategy == "forced":
        return shaking()
    return {"strategy": Controller(make_planner("stay_put" if strategy == "key_grouping" else strategy), EAGER)}


def texts(batch: int, rows: int = 200) -> pa.Table:
    """Five words of forty each, so that some texts are alike and some are not."""
    rng = np.random.default_rng(batch)
    told = [" ".join(f"w{word}" for word in np.sort(rng.zipf(1.3, 5) % 40)) for _ in range(rows)]
    return pa.table({"word": [f"word{key}" for key in lsh_keys(pa.array(told), keys=16).to_pylist()], "text": told})


def at_once(operator, rows: pa.Table) -> Counter:
    """The alerts of all rows in one place and one batch, without Spark."""
    times = rows["ts"].cast(pa.int64()).to_numpy() if operator is RULES else None
    groups = Groups.of(rows, ["word"], hash_keys(rows["word"]), hash_keys(rows["word"], seed=1), times=times)
    states = pa.Table.from_pylist([{}] * len(groups), operator.state_schema(rows.schema))
    update = operator.update(groups, states, np.zeros(len(groups), bool))
    words = groups.keys["word"].take(pa.array(update.key_of_outputs)).to_pylist()
    return Counter((word, *row.values()) for word, row in zip(words, update.outputs.to_pylist(), strict=True))


def alerts(spark, tmp_path, operator, **options):
    """Run over the files in ``in``, with a checkpoint of its own, and give the query and how often each alert came."""
    run = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
    place = {"checkpoint": str(run / "checkpoint"), "local_directory": str(run / "local")}
    timed_rows = {"event_time": "ts"} if operator is RULES else {}
    keyed = stream(file_stream(spark, tmp_path / "in"), key="word", **timed_rows)
    query = finish(keyed.apply(operator, **{"channels": 3, **options}), place)
    return query, Counter(tuple(row.values()) for row in query.sink.table().to_pylist())


OPERATORS = {"rules": RULES, "first story": first_story(last=50, threshold=0.3)}


def events(kind: str, batch: int, rows: int) -> pa.Table:
    return timed(batch, rows).sort_by("ts") if kind == "rules" else texts(batch, rows)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", OPERATORS)
def test_alerts_are_the_same_wherever_keys_are(spark, tmp_path, kind, strategy):
    tables = [events(kind, batch, 300) for batch in range(3)]
    write_batches(tmp_path / "in", tables)
    query, ours = alerts(spark, tmp_path, OPERATORS[kind], **options_of(strategy))
    assert ours == at_once(OPERATORS[kind], pa.concat_tables(tables))
    assert sum(ours.values()) > 20
    if strategy == "forced":
        was_shaken(query)


@pytest.mark.parametrize("kind", OPERATORS)
def test_alerts_of_parts_of_keys_are_partly_false(spark, tmp_path, kind):
    rows = events(kind, 0, 600)
    write_batches(tmp_path / "in", [rows])
    _, parts = alerts(spark, tmp_path, OPERATORS[kind], strategy="pkg", split_results="partial")
    assert sum((parts - at_once(OPERATORS[kind], rows)).values()) > 5


@pytest.mark.skipif("EVENKEEL_DATA" not in os.environ, reason="EVENKEEL_DATA does not say where the data sets are")
def test_first_stories_among_real_tweets(spark, tmp_path):
    tweets = pq.read_table(Path(os.environ["EVENKEEL_DATA"]) / "stocknet_tweets.parquet", columns=["text"])[:20_000]
    words = pc.binary_join_element_wise("word", lsh_keys(tweets["text"], keys=64).cast(pa.string()), "")
    tweets = tweets.append_column("word", words)
    write_batches(tmp_path / "in", [tweets[start : start + 5_000] for start in range(0, 20_000, 5_000)])
    whole = at_once(first_story(), tweets)
    query, moved = alerts(spark, tmp_path, first_story(), **shaking(4))
    was_shaken(query)
    assert moved == whole
    _, parts = alerts(spark, tmp_path, first_story(), strategy="pkg", channels=4, split_results="partial")
    assert sum(parts.values()) > 1.05 * sum(whole.values())


# -- order -------------------------------------------------------------------------------------------------------------

LAST = pa.schema([("ts", MICROS)])


def ordered(key, rows, state):
    """Give each tuple's time with the one before."""
    times = [row["ts"] for row in rows]
    chain = [state["ts"], *times] if state else times
    return {"ts": chain[-1]}, [{"before": a, "ts": b} for a, b in pairwise(chain)]


def test_a_function_sees_its_key_in_order_of_time(spark, tmp_path, place):
    tables = [*(timed(batch, 200) for batch in range(3)), the_end(7), the_end(8)]
    write_batches(tmp_path / "in", tables)
    steps = PerKey(ordered, state=LAST, output=pa.schema([("before", MICROS), ("ts", MICROS)]))
    keyed = stream(file_stream(spark, tmp_path / "in"), key="word", event_time="ts", delay="1 hour")
    query = finish(keyed.apply(Reordered(steps), **shaking()), place)
    was_shaken(query)
    rows = sorted(tuple(row.values())[:2] for table in tables[:-1] for row in table.to_pylist())
    expected = [(word, before, ts) for (word, before), (other, ts) in pairwise(rows) if word == other]
    found = query.sink.table()
    assert rows_of(found.filter(pc.not_equal(found["word"], "the end"))) == [
        row for row in expected if row[0] != "the end"
    ]


# -- counting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "key_grouping", "channels": 3},
        {"strategy": "pkg", "channels": 3, "aggregate_every": 3},
        {"strategy": "shuffle", "channels": 3},
        shaking(),
    ],
    ids=["key grouping", "partial key grouping", "shuffle grouping", "moved"],
)
def test_the_most_frequent_words_are_exact(spark, tmp_path, place, options):
    tables = [timed(batch, 500, keys=60) for batch in range(3)]
    write_batches(tmp_path / "in", tables)
    words = file_stream(spark, tmp_path / "in").withColumn("all", F.lit(0))
    counted = stream(words, key=["all", "word"]).apply(Count(), **options)
    query = finish(counted.key_by("all").apply(TopK(5), channels=2), place)
    truth = Counter(word for table in tables for word in table["word"].to_pylist())
    best = sorted(truth.items(), key=lambda entry: (-entry[1], entry[0]))[:5]
    last = [rows for _, rows in sorted(query.sink.batches.items()) if rows.num_rows][-1]
    assert [(row["word"], row["count"]) for row in last.sort_by("rank").to_pylist()] == best


@pytest.mark.parametrize("options", [{"strategy": "pkg", "channels": 4}, shaking()], ids=["split", "moved"])
def test_heavy_hitters_keep_their_bounds(spark, tmp_path, place, options):
    tables = [timed(batch, 2_000, keys=400) for batch in range(3)]
    write_batches(tmp_path / "in", tables)
    rows = file_stream(spark, tmp_path / "in").withColumn("bucket", F.expr("pmod(xxhash64(word), 8)"))
    query = finish(stream(rows, key="bucket").apply(HeavyHitters("word", capacity=15, k=5), **options), place)
    truth = Counter(word for table in tables for word in table["word"].to_pylist())
    totals = Counter()
    for word, count in truth.items():
        totals[int(hash_keys(pa.array([word]))[0]) % 8] += count
    last = query.sink.batches[2].to_pylist()
    assert len(last) == 40
    assert any(row["error"] for row in last)  # the summaries were too small for all words
    for row in last:
        assert row["count"] - row["error"] <= truth[row["word"]] <= row["count"]
        assert row["error"] <= totals[row["bucket"]] / 15
    held = {row["word"] for row in last if row["guaranteed"]}
    assert {word for word, _ in truth.most_common(5)} <= held


# -- learning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"strategy": "pkg", "channels": 4, "probe": "probe", "split_results": "partial"}, {"strategy": "pkg"}, shaking()],
    ids=["every part answers", "parts are merged", "moved"],
)
def test_naive_bayes_predicts_as_scikit_learn(spark, tmp_path, place, options):
    sklearn = pytest.importorskip("sklearn.naive_bayes")
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 300)
    counts = rng.poisson(rng.gamma(1, 1, (3, 20))[classes])
    names = [f"word{number}" for number in range(20)]
    asks = np.arange(300) >= 200
    columns = dict(zip(names, counts.T, strict=True))
    table = pa.table({"document": np.arange(300), "class": pa.array(classes, mask=asks), "probe": asks, **columns})
    write_batches(tmp_path / "in", [count_rows(part, names) for part in (table[:120], table[120:200], table[200:])])
    counting = stream(file_stream(spark, tmp_path / "in"), key="feature").apply(FeatureClassCounts(), **options)
    query = finish(counting.key_by("document").apply(NaiveBayesPredict(vocabulary=20), channels=2), place)
    ours = {row["document"]: row["class"] for row in query.sink.table().to_pylist()}
    theirs = sklearn.MultinomialNB().fit(counts[:200], classes[:200]).predict(counts[200:])
    assert ours == dict(zip(range(200, 300), theirs.tolist(), strict=True))


def test_histograms_of_a_tree_are_those_of_one_place(spark, tmp_path, place, monkeypatch):
    operator = FeatureHistograms(bins=8, class_column="word")
    tables = [timed(batch, 300, keys=3).append_column("leaf", pa.array([batch, 7, 8] * 100)) for batch in range(3)]
    write_batches(tmp_path / "in", tables)
    # Combined before the shuffle, or lifted as they come, which on a busy machine they might be, values would be merged
    # and not observed one by one: other bins, as close to truth.
    monkeypatch.setattr(stage, "_SLOW_MS", math.inf)
    flow = stream(file_stream(spark, tmp_path / "in"), key="leaf").apply(operator, combine=False, **shaking())
    query = finish(flow, place)
    was_shaken(query)
    states: dict = {}
    for number, table in enumerate(tables):
        groups = Groups.of(table, ["leaf"], hash_keys(table["leaf"]), hash_keys(table["leaf"], seed=1))
        leaves = groups.keys["leaf"].to_pylist()
        known = np.array([leaf in states for leaf in leaves])
        before = pa.Table.from_pylist([states.get(leaf, {}) for leaf in leaves], operator.state_schema(table.schema))
        update = operator.update(groups, before, known)
        states |= dict(zip(leaves, update.states.to_pylist(), strict=True))
        expected = {leaf: states[leaf]["histograms"] for leaf in leaves}
        assert {row["leaf"]: row["histograms"] for row in query.sink.batches[number].to_pylist()} == expected
