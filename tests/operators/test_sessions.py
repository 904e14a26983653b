"""Sessions beside their definition: sets of tuples that are joined again and again until nothing touches."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators import NO_WATERMARK, Count, PerKey
from evenkeel.operators._kernels import order_by_key
from evenkeel.operators.aggregate import Aggregate
from evenkeel.operators.aggregates import ApproxDistinct, First, Sum
from evenkeel.operators.sessions import Sessions
from operators.harness import run, run_split

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64()), ("time", pa.int64())])
ROW = st.tuples(st.sampled_from("ab"), st.integers(-5, 5), st.none() | st.integers(-30, 90))
STREAMS = st.lists(st.lists(ROW, max_size=8), min_size=1, max_size=5)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
INNER = Aggregate(n=Count(), total=Sum("value"))


def tables(batches):
    return [
        pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA) for rows in batches
    ]


def touch(one, other, gap):
    return any(abs(t - u) <= gap for t, _ in one for u, _ in other)


def joined(sessions, gap):
    """Join sessions, each a list of (time, value) and whether it was held, until none touch."""
    for i, (one, held) in enumerate(sessions):
        for j, (other, also) in enumerate(sessions):
            if i < j and touch(one, other, gap):
                rest = [session for k, session in enumerate(sessions) if k not in {i, j}]
                return joined([*rest, (one + other, held or also)], gap)
    return sessions


def by_hand(batches, gap, delay):
    """Sessions that close, those that are left open, and how many tuples are late."""
    watermark, late = NO_WATERMARK, 0
    held, closed = {"a": [], "b": []}, []
    for rows in batches:
        for key, mine in held.items():
            came = [([(time, value)], False) for k, value, time in rows if k == key and time is not None]
            sessions = joined([(tuples, True) for tuples in mine] + came, gap)
            mine.clear()
            for tuples, was_held in sessions:
                over = max(tuples)[0] + gap <= watermark
                if not over:
                    mine.append(tuples)
                elif was_held:
                    closed.append((key, tuples))
                else:
                    late += len(tuples)
        watermark = max([watermark, *(time - delay for _, _, time in rows if time is not None)])
    still_open = [(key, tuples) for key, mine in held.items() for tuples in mine]
    return summed(closed, gap), summed(closed + still_open, gap), late


def summed(sessions, gap):
    return Counter(
        (key, min(tuples)[0], max(tuples)[0] + gap, len(tuples), sum(value for _, value in tuples))
        for key, tuples in sessions
    )


def shown(outcome):
    one = dt.timedelta(microseconds=1)
    return Counter(
        (key, (row["session_start"] - EPOCH) // one, (row["session_end"] - EPOCH) // one, row["n"], row["total"])
        for (key,), row in outcome.outputs
    )


@settings(max_examples=60)
@given(STREAMS, st.integers(1, 20), st.integers(0, 40))
def test_sessions_are_as_defined(batches, gap, delay):
    operator = Sessions(f"{gap} microseconds", INNER)
    closed, everything, late = by_hand(batches, gap, delay)
    outcome = run(operator, tables(batches), event_time="time", delay=delay)
    assert shown(outcome) == closed
    assert outcome.late == late
    flushed = run(operator, tables(batches), event_time="time", delay=delay, flush=True)
    assert shown(flushed) == everything
    assert (flushed.states, flushed.wakes) == ({}, {})


@settings(max_examples=40)
@given(STREAMS, st.integers(1, 20), st.integers(1, 3), st.integers(1, 3), st.integers(0, 9))
def test_split_sessions_are_the_same_if_nothing_is_late(batches, gap, channels, every, seed):
    operator = Sessions(f"{gap} microseconds", INNER)
    whole = run(operator, tables(batches), event_time="time", delay=200)
    split = run_split(
        operator, tables(batches), event_time="time", delay=200, channels=channels, every=every, seed=seed
    )
    assert whole.states == split.states
    assert whole.wakes == split.wakes


@settings(max_examples=40)
@given(STREAMS, st.integers(1, 20), st.integers(0, 40), st.integers(1, 3), st.integers(0, 9))
def test_split_sessions_do_not_overlap_even_if_some_are_late(batches, gap, delay, every, seed):
    operator = Sessions(f"{gap} microseconds", INNER)
    split = run_split(operator, tables(batches), event_time="time", delay=delay, every=every, seed=seed, flush=True)
    for state in split.states.values():
        ends = [(session["start"], session["last"]) for session in state["sessions"]]
        assert all(after[0] - before[1] > gap for before, after in pairwise(ends))
    assert sum(row["n"] for _, row in split.outputs) <= sum(len(rows) for rows in batches)


@given(st.integers(1, 3), st.integers(0, 300), st.integers(1, 1_000), st.integers(0, 99))
def test_tuples_are_sorted_by_key_and_time_and_stay_in_order_if_these_are_the_same(keys, size, times, seed):
    rng = np.random.default_rng(seed)
    key_of, minor = rng.integers(keys, size=size), rng.integers(times, size=size)
    assert order_by_key(key_of, minor, keys).tolist() == np.lexsort((minor, key_of)).tolist()


def test_a_tuple_between_two_sessions_joins_them_and_all_they_hold():
    operator = Sessions("5 microseconds", Aggregate(n=Count(), users=ApproxDistinct("value"), first=First("value")))
    batches = tables([[("a", 7, 0), ("a", 8, 10)], [("a", 7, 5)]])
    assert len(run(operator, batches[:1], event_time="time").states["a",]["sessions"]) == 2
    (row,) = run(operator, batches, event_time="time", delay=100, flush=True).of("a")
    assert (row["n"], row["users"], row["first"]) == (3, 2, 7)


def test_a_tuple_exactly_a_gap_later_is_of_the_session_as_in_spark():
    operator = Sessions("5 microseconds", INNER)
    for time, sessions in ((5, 1), (6, 2)):
        outcome = run(operator, tables([[("a", 1, 0), ("a", 1, time)]]), event_time="time", flush=True)
        assert len(outcome.outputs) == sessions


@pytest.mark.parametrize(
    ("time", "results", "late"), [(-4, [(-4, 5, 2), (60, 65, 1)], 0), (-6, [(0, 5, 1), (60, 65, 1)], 1)]
)
def test_a_late_tuple_counts_if_its_session_is_still_held(time, results, late):
    operator = Sessions("5 microseconds", INNER)
    # Time has come to 50 when the second batch begins, so the session at 0 closes in that very batch.
    stream = tables([[("a", 1, 0)], [("a", 1, time), ("a", 1, 60)]])
    outcome = run(operator, stream, event_time="time", delay=-50, flush=True)
    assert sorted((start, end, n) for _, start, end, n, _ in shown(outcome)) == results
    assert outcome.late == late


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sessions("0 seconds", Count()), "longer than nothing"),
        (lambda: Sessions("soon", Count()), "not a length of time"),
        (lambda: Sessions("1 minute", PerKey(print, state=SCHEMA, output=SCHEMA)), "need a mergeable operator"),
        (lambda: Sessions("1 minute", Count("session_start")).output_schema(SCHEMA), "'session_start' already"),
    ],
)
def test_sessions_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InvalidArgumentError, match=message):
        make()
