"""A reorder buffer beside a plain sort: the operator behind it sees event-time order, whatever the batches."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, KeyFailedError
from evenkeel.operators import NEVER, Count, Operator, PerKey, Update
from evenkeel.operators.reorder import Reordered
from operators.harness import run

SCHEMA = pa.schema([("key", pa.string()), ("number", pa.int64()), ("time", pa.int64())])
SEEN = pa.schema([("time", pa.int64()), ("number", pa.int64())])
NOTHING = pa.schema([("n", pa.int64())])


def show(key, rows, state):
    assert all(row["key"] == key[0] for row in rows)
    return {"n": 0}, [{"time": row["time"], "number": row["number"]} for row in rows]


SHOW = PerKey(show, state=NOTHING, output=SEEN)


@st.composite
def streams(draw, delay: int = 20):
    """Batches whose tuples are at most ``delay`` behind the newest before them, so that none is late."""
    numbers = iter(range(1000))
    newest, batches = 0, []
    for _ in range(draw(st.integers(1, 5))):
        rows = []
        for _ in range(draw(st.integers(0, 8))):
            time = max(newest - draw(st.integers(0, delay)), 0) + draw(st.integers(0, delay))
            rows.append({"key": draw(st.sampled_from(["a", "b"])), "number": next(numbers), "time": time})
        newest = max([newest, *(row["time"] for row in rows)])
        batches.append(pa.Table.from_pylist(rows, SCHEMA))
    return batches


def by_time(batches) -> dict[str, list[tuple[int, int]]]:
    """All tuples of each key, sorted; equal times stay in order of arrival."""
    wanted = defaultdict(list)
    for rows in batches:
        for row in rows.to_pylist():
            wanted[row["key"]].append((row["time"], row["number"]))
    return {key: sorted(rows, key=lambda row: row[0]) for key, rows in wanted.items()}


def seen(outcome) -> dict[str, list[tuple[int, int]]]:
    found = defaultdict(list)
    for (key,), row in outcome.outputs:
        found[key].append((row["time"], row["number"]))
    return found


@settings(max_examples=40)
@given(streams())
def test_tuples_come_out_sorted_whatever_the_batches(batches):
    outcome = run(Reordered(SHOW), batches, event_time="time", delay=20, flush=True)
    assert seen(outcome) == by_time(batches)
    assert outcome.late == 0
    whole = run(Reordered(SHOW), [pa.concat_tables(batches)], event_time="time", delay=20, flush=True)
    assert seen(whole) == seen(outcome)


@settings(max_examples=40)
@given(streams(delay=40), st.integers(0, 30))
def test_what_is_behind_the_watermark_is_counted_and_the_rest_is_sorted(batches, delay):
    newest, on_time, late = None, [], 0
    for rows in batches:
        watermark = -1 if newest is None else newest - delay
        on_time.append(rows.filter(pa.array([time >= watermark for time in rows["time"].to_pylist()], pa.bool_())))
        late += rows.num_rows - on_time[-1].num_rows
        newest = max([*([] if newest is None else [newest]), *rows["time"].to_pylist()], default=None)
    outcome = run(Reordered(SHOW), batches, event_time="time", delay=delay, flush=True)
    assert outcome.late == late
    assert seen(outcome) == by_time(on_time)


@settings(max_examples=40)
@given(streams(delay=40), st.integers(1, 4), st.sampled_from(["emit_oldest", "drop_newest"]))
def test_a_full_buffer_keeps_its_bound_and_the_order(batches, bound, overflow):
    operator = Reordered(SHOW, bound=bound, overflow=overflow, overflowed="overflowed")
    outcome = run(operator, batches, event_time="time", delay=40)
    assert all(len(state["waiting"]) <= bound for state in outcome.states.values())
    for rows in seen(outcome).values():
        assert [time for time, _ in rows] == sorted(time for time, _ in rows)
    waiting = sum(len(state["waiting"]) for state in outcome.states.values())
    assert len(outcome.outputs) + outcome.late + waiting == sum(rows.num_rows for rows in batches)


def batch(*rows) -> pa.Table:
    return pa.Table.from_pylist([{"key": "a", "time": time, "number": number} for time, number in rows], SCHEMA)


def test_a_tuple_waits_until_the_watermark_reaches_it_and_no_longer():
    batches = [batch((4, 0), (6, 1)), batch((9, 2)), batch((5, 3), (9, 4))]
    assert seen(run(Reordered(SHOW), batches[:2], event_time="time", delay=2)) == {"a": [(4, 0)]}
    outcome = run(Reordered(SHOW), batches, event_time="time", delay=3)
    assert seen(outcome) == {"a": [(4, 0), (6, 1)]}
    assert outcome.late == 1, "5 came when the watermark was at 6"
    assert outcome.wakes == {("a",): 9}


def test_forced_tuples_are_the_oldest_and_what_is_older_still_is_late():
    operator = Reordered(SHOW, bound=2, overflowed="forced")
    outcome = run(operator, [batch((5, 0), (3, 1), (9, 2), (4, 3)), batch((3, 4), (4, 5))], event_time="time", delay=99)
    assert [(row["time"], row["number"], row["forced"]) for row in outcome.of("a")] == [(3, 1, 2), (4, 3, 2), (4, 5, 3)]
    assert outcome.late == 1


def test_dropped_tuples_are_the_newest_and_counted_as_late():
    outcome = run(
        Reordered(SHOW, bound=2, overflow="drop_newest"), [batch((5, 0), (3, 1), (9, 2))], event_time="time", flush=True
    )
    assert seen(outcome) == {"a": [(3, 1), (5, 0)]}
    assert outcome.late == 1


def test_a_full_buffer_may_stop_the_query_and_names_the_key():
    with pytest.raises(KeyFailedError, match="3 tuples wait") as caught:
        run(Reordered(SHOW, bound=2, overflow="error"), [batch((5, 0), (3, 1), (9, 2))], event_time="time")
    assert caught.value.key == ("a",)


def test_a_tuple_without_a_time_is_late():
    rows = pa.Table.from_pylist([{"key": "a", "number": 1, "time": None}, {"key": "a", "number": 2, "time": 4}], SCHEMA)
    outcome = run(Reordered(SHOW), [rows], event_time="time", flush=True)
    assert seen(outcome) == {"a": [(4, 2)]}
    assert outcome.late == 1


@dataclass(frozen=True)
class QuietFor(Operator):
    """Counts a key's tuples until none came for ten microseconds of event time, then gives the count and forgets."""

    name = "quiet_for"
    needs_event_time = True
    wakes_by = "event_time"

    def columns(self, _rows):
        return []

    def state_schema(self, _rows):
        return pa.schema([("count", pa.int64()), ("last", pa.int64())])

    def output_schema(self, _rows):
        return pa.schema([("count", pa.int64())])

    def update(self, groups, states, known):
        assert (groups.times >= groups.now.watermark).all(), "nothing may be late behind a reorder buffer"
        rows = states.to_pylist()
        after, closed = [], []
        for i, state in enumerate(rows):
            times = sorted(groups.times[groups.key_of == i].tolist())
            count, last = (state["count"], state["last"]) if known[i] else (0, None)
            assert times or groups.now.watermark >= last + 10, "called without tuples before its time"
            assert not times or last is None or times[0] >= last
            over = not times
            after.append({"count": count + len(times), "last": times[-1] if times else last})
            closed.append(over)
        states = pa.Table.from_pylist(after, self.state_schema(None))
        over = np.array(closed, bool)
        wake = np.where(over, NEVER, np.array([row["last"] + 10 for row in after], np.int64))
        return Update(states, states.select(["count"]).filter(pa.array(over)), np.flatnonzero(over), ~over, wake)


@settings(max_examples=40)
@given(streams())
def test_an_operator_with_a_clock_is_called_when_it_wished_and_nothing_is_late_for_it(batches):
    end = [batch((10_000, 0))] * 5  # as many batches as it takes for the last wishes to come true
    outcome = run(Reordered(QuietFor()), [*batches, *end], event_time="time", delay=20)
    assert outcome.late == 0
    counts = defaultdict(int)
    for (key,), row in outcome.outputs:
        counts[key] += row["count"]
    assert counts == {key: len(rows) for key, rows in by_time(batches).items()}
    assert set(outcome.states) == {("a",)}, "keys with nothing left are forgotten"


def test_options_are_checked():
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        Reordered(Count(), bound=0)
    with pytest.raises(InvalidArgumentError, match="emit_oldest"):
        Reordered(Count(), overflow="explode")

    @dataclass(frozen=True)
    class ByBatch(QuietFor):
        wakes_by = "batch"

    with pytest.raises(InvalidArgumentError, match="only event time"):
        Reordered(ByBatch())


def test_only_what_the_operator_looks_at_waits():
    operator = Reordered(Count(), overflowed="forced")
    assert operator.columns(SCHEMA) == []
    assert operator.state_schema(SCHEMA).field("waiting").type == pa.list_(pa.struct([("time", pa.int64())]))
    assert operator.output_schema(SCHEMA).names == ["count", "forced"]
    assert run(operator, [batch((1, 0)), batch((2, 0))], event_time="time", flush=True).of("a")[-1]["count"] == 2
