"""Windows beside their definition, tuple by tuple and window by window."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators import NO_WATERMARK, Count, Moment, PerKey
from evenkeel.operators.aggregate import Aggregate
from evenkeel.operators.aggregates import Last, Min, Sum
from evenkeel.operators.count_windows import CountSliding, CountTumbling
from evenkeel.operators.durations import microseconds
from evenkeel.operators.windows import Sliding, Tumbling
from operators.harness import groups_of, run, run_split

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64()), ("time", pa.int64())])
ROW = st.tuples(st.sampled_from("abc"), st.integers(-5, 5), st.none() | st.integers(-40, 60))
STREAMS = st.lists(st.lists(ROW, max_size=8), min_size=1, max_size=5)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
INNER = Aggregate(n=Count(), total=Sum("value"))


def tables(batches):
    return [
        pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA) for rows in batches
    ]


def micros(moment: dt.datetime) -> int:
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def by_hand(batches, size, step, delay):
    """Counts and sums of windows in the order in which they close, those still open, and how many tuples are late."""
    watermark, late = NO_WATERMARK, 0
    open_windows, closed = defaultdict(list), []
    for rows in batches:
        for key, start in [*open_windows]:
            if start + size <= watermark:
                closed.append((key, start, open_windows.pop((key, start))))
        for key, value, time in rows:
            if time is not None:
                starts = [s for s in range(time // step * step, time - size, -step) if s + size > watermark]
                late += not starts
                for start in starts:
                    open_windows[key, start].append(value)
        watermark = max([watermark, *(time - delay for _, _, time in rows if time is not None)])
    still_open = [(key, start, values) for (key, start), values in open_windows.items()]
    return *(
        Counter((key, start, start + size, len(values), sum(values)) for key, start, values in windows)
        for windows in (closed, closed + still_open)
    ), late


def shown(outcome):
    return Counter(
        (key, micros(row["window_start"]), micros(row["window_end"]), row["n"], row["total"])
        for (key,), row in outcome.outputs
    )


SIZES = st.integers(1, 30).flatmap(lambda size: st.tuples(st.just(size), st.integers(1, size)))


@settings(max_examples=50)
@given(STREAMS, SIZES, st.integers(0, 40))
def test_sliding_windows_are_as_defined(batches, sizes, delay):
    size, step = sizes
    operator = Sliding(INNER, dt.timedelta(microseconds=size), f"{step} microseconds")
    closed, everything, late = by_hand(batches, size, step, delay)
    outcome = run(operator, tables(batches), event_time="time", delay=delay)
    assert shown(outcome) == closed
    assert outcome.late == late
    flushed = run(operator, tables(batches), event_time="time", delay=delay, flush=True)
    assert shown(flushed) == everything
    assert (flushed.states, flushed.wakes, flushed.late) == ({}, {}, late)


@settings(max_examples=40)
@given(STREAMS, st.integers(1, 30), st.integers(0, 40))
def test_tumbling_windows_are_as_defined(batches, size, delay):
    operator = Tumbling(INNER, f"{size} microseconds")
    closed, everything, late = by_hand(batches, size, size, delay)
    outcome = run(operator, tables(batches), event_time="time", delay=delay)
    assert (shown(outcome), outcome.late) == (closed, late)
    assert all(wake % size == 0 for wake in outcome.wakes.values())
    assert shown(run(operator, tables(batches), event_time="time", delay=delay, flush=True)) == everything


@settings(max_examples=40)
@given(STREAMS, SIZES, st.integers(1, 3), st.integers(1, 3), st.integers(0, 9))
def test_split_windows_are_the_same_if_nothing_is_late(batches, sizes, channels, every, seed):
    operator = Sliding(INNER, f"{sizes[0]} microseconds", f"{sizes[1]} microseconds")
    whole = run(operator, tables(batches), event_time="time", delay=100, flush=True)
    split = run_split(
        operator, tables(batches), event_time="time", delay=100, channels=channels, every=every, seed=seed, flush=True
    )
    # What was not handed on when the stream ends is merged after the last look at the clock.
    assert shown(split) + shown_open(operator, split) == shown(whole)


@settings(max_examples=40)
@given(STREAMS, st.integers(1, 30), st.integers(0, 40), st.integers(1, 3), st.integers(0, 9))
def test_split_tumbling_windows_drop_the_same_late_tuples(batches, size, delay, channels, seed):
    operator = Tumbling(INNER, f"{size} microseconds")
    whole = run(operator, tables(batches), event_time="time", delay=delay)
    split = run_split(operator, tables(batches), event_time="time", delay=delay, channels=channels, seed=seed)
    assert shown(split) == shown(whole)
    assert split.states == whole.states


@settings(max_examples=40)
@given(STREAMS, SIZES, st.integers(0, 40), st.integers(2, 3), st.integers(0, 9))
def test_a_split_window_is_never_emitted_twice(batches, sizes, delay, every, seed):
    operator = Sliding(INNER, f"{sizes[0]} microseconds", f"{sizes[1]} microseconds")
    split = run_split(operator, tables(batches), event_time="time", delay=delay, every=every, seed=seed, flush=True)
    windows = [(key, row["window_start"]) for key, row in split.outputs]
    assert len(set(windows)) == len(windows)


def shown_open(operator, outcome):
    """What the windows still open have."""
    schema = operator.state_schema(SCHEMA)
    results, key_of = operator.results(pa.Table.from_pylist(list(outcome.states.values()), schema))
    keys = list(outcome.states)
    rows = zip(key_of.tolist(), results.to_pylist(), strict=True)
    return shown(type(outcome)(outputs=[(keys[i], row) for i, row in rows]))


@settings(max_examples=25)
@given(STREAMS, SIZES)
def test_open_windows_can_be_looked_at(batches, sizes):
    size, step = sizes
    operator = Sliding(INNER, f"{size} microseconds", f"{step} microseconds")
    outcome = run(operator, tables(batches), event_time="time", delay=5)
    closed, everything, _ = by_hand(batches, size, step, 5)
    assert shown(outcome) + shown_open(operator, outcome) == everything
    assert shown_open(operator, outcome) == everything - closed


def test_a_tuple_is_kept_once_however_many_windows_cover_it():
    operator = Sliding(Count(), "1 hour", "1 second")
    outcome = run(operator, tables([[("a", 1, 5), ("a", 2, 6)]]), event_time="time")
    assert [pane["state"]["count"] for pane in outcome.states["a",]["panes"]] == [2]
    assert outcome.wakes["a",] == 1_000_000


def test_windows_start_at_multiples_since_1970():
    table = pa.table({"key": ["a"], "value": [1], "time": [dt.datetime(2024, 2, 29, 13, 47, tzinfo=dt.timezone.utc)]})
    (row,) = run(Tumbling(Count(), "15 minutes"), [table], event_time="time", flush=True).of("a")
    assert row["window_start"].isoformat() == "2024-02-29T13:45:00+00:00"
    assert row["window_end"].isoformat() == "2024-02-29T14:00:00+00:00"


def test_a_window_is_emitted_when_the_watermark_reaches_its_end_and_not_before():
    operator = Tumbling(Count(), "10 microseconds")
    batches = tables([[("a", 1, 3)], [("b", 1, 14)], [("b", 1, 15)], []])
    for number, results in ((3, 0), (4, 1)):
        outcome = run(operator, batches[:number], event_time="time", delay=5)
        assert len(outcome.of("a")) == results
        assert (("a",) in outcome.states) == (results == 0)


def test_lifting_leaves_late_tuples_out():
    operator = Tumbling(Count(), "10 microseconds")
    groups = groups_of(tables([[("a", 1, 3), ("a", 1, 12), ("a", 1, None)]])[0], event_time="time")
    late = replace(groups, now=Moment(1, 10))
    assert (operator.late(groups), operator.late(late)) == (0, 1)
    assert [len(op.to_pylist()[0]["panes"]) for op in (operator.lift(groups), operator.lift(late))] == [2, 1]


def count_windows_by_hand(batches, size, step):
    """Counts, sums and numbers of windows of each key as they become full."""
    values, found = defaultdict(list), []
    for rows in batches:
        for key, value, _ in rows:
            values[key].append(value)
            start = len(values[key]) - size
            if start >= 0 and start % step == 0:
                found.append((key, start // step, size, sum(values[key][start:])))
    return Counter(found)


@settings(max_examples=40)
@given(STREAMS, SIZES)
def test_windows_by_count_are_as_defined(batches, sizes):
    size, step = (sizes[0] + 4) // 5, (sizes[1] + 4) // 5
    outcome = run(CountSliding(INNER, size, step), tables(batches))
    found = Counter((key, row["window"], row["n"], row["total"]) for (key,), row in outcome.outputs)
    assert found == count_windows_by_hand(batches, size, step)
    assert all(len(state["panes"]) <= size for state in outcome.states.values())


@settings(max_examples=30)
@given(STREAMS, st.integers(1, 6))
def test_tumbling_windows_by_count_are_as_defined(batches, size):
    outcome = run(CountTumbling(INNER, size), tables(batches))
    found = Counter((key, row["window"], row["n"], row["total"]) for (key,), row in outcome.outputs)
    assert found == count_windows_by_hand(batches, size, size)
    assert all(len(state["panes"]) <= 1 for state in outcome.states.values())


def test_windows_by_count_do_not_merge():
    assert not CountTumbling(Count(), 3).merges
    assert CountTumbling(Last("value"), 3).needs_event_time
    assert not CountTumbling(Count(), 3).needs_event_time


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tumbling(Count(), "0 seconds"), "longer than nothing"),
        (lambda: Sliding(Count(), "1 minute", "2 minutes"), "at most the size"),
        (lambda: Sliding(Count(), "1 minute", "0 minutes"), "longer than nothing"),
        (lambda: Tumbling(Count(), "a while"), "not a length of time"),
        (lambda: Tumbling(PerKey(print, state=SCHEMA, output=SCHEMA), "1 minute"), "need a mergeable operator"),
        (lambda: Tumbling(Tumbling(Count(), "1 minute"), "1 hour"), "clock of its own"),
        (lambda: Tumbling(Count("window_end"), "1 minute").output_schema(SCHEMA), "'window_end' already"),
        (lambda: CountTumbling(Count(), 0), "at least one tuple"),
        (lambda: CountSliding(Count(), 3, 4), "from 1 to the size"),
        (lambda: CountSliding(Min, 3, 3), "need a mergeable operator"),
    ],
)
def test_windows_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InvalidArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("10 seconds", 10_000_000),
        ("1 Second", 1_000_000),
        ("5minutes", 300_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("2 days", 172_800_000_000),
        ("1 week", 604_800_000_000),
        ("100 milliseconds", 100_000),
        ("7 microseconds", 7),
        ("0 seconds", 0),
        (dt.timedelta(minutes=1.5), 90_000_000),
    ],
)
def test_lengths_of_time(said, meant):
    assert microseconds(said) == meant


@pytest.mark.parametrize(
    "said", ["", "10", "ten seconds", "1 month", "1.5 hours", "5 minutes ago", "-1 seconds", None, 5]
)
def test_what_is_not_a_length_of_time(said):
    with pytest.raises(InvalidArgumentError, match=r"not a length of time.*10 seconds.*minutes"):
        microseconds(said)


def test_lengths_of_time_are_not_negative():
    with pytest.raises(InvalidArgumentError, match="cannot be negative"):
        microseconds(dt.timedelta(seconds=-1))
