"""A window join beside two nested loops."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators.window_join import WindowJoin
from operators.harness import run

SCHEMA = pa.schema(
    [("key", pa.string()), ("side", pa.string()), ("x", pa.int64()), ("y", pa.string()), ("t", pa.int64())]
)
ROW = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["a", "a", "b", None]),
        "side": st.sampled_from(["left", "right"]),
        "x": st.none() | st.integers(0, 3),
        "y": st.none() | st.sampled_from(["p", "q"]),
        "t": st.sampled_from([*range(15), None]),
    }
)
BATCHES = st.lists(st.lists(ROW, min_size=3, max_size=12) | st.just([]), min_size=1, max_size=5)


def tables(batches) -> list[pa.Table]:
    return [pa.Table.from_pylist(rows, SCHEMA) for rows in batches]


def not_late(batches, delay):
    newest, kept, late = None, [], 0
    for rows in batches:
        on_time = [r for r in rows if r["t"] is not None and (newest is None or r["t"] >= newest - delay)]
        kept += on_time
        late += len(rows) - len(on_time)
        times = [r["t"] for r in rows if r["t"] is not None]
        newest = max([*times, *([] if newest is None else [newest])], default=None)
    return kept, late


def nested_loops(rows, within) -> Counter:
    return Counter(
        (left["key"], left["x"], left["y"], right["x"])
        for left in rows
        for right in rows
        if left["side"] == "left" and right["side"] == "right" and left["key"] == right["key"]
        if abs(left["t"] - right["t"]) <= within
    )


def joined(outcome) -> Counter:
    return Counter((key, row["left_x"], row["left_y"], row["right_x"]) for (key,), row in outcome.outputs)


@settings(max_examples=80)
@given(BATCHES, st.integers(0, 6), st.integers(0, 15))
def test_each_pair_comes_out_once_whatever_the_batches_and_the_order(batches, within, delay):
    operator = WindowJoin(["x", "y"], ["x"], within=dt.timedelta(microseconds=within))
    rows, late = not_late(batches, delay)
    outcome = run(operator, tables(batches), event_time="t", delay=delay)
    assert joined(outcome) == nested_loops(rows, within)
    assert outcome.late == late


@settings(max_examples=40)
@given(BATCHES, st.integers(0, 4), st.integers(0, 4))
def test_only_tuples_that_can_still_find_a_partner_are_kept(batches, within, delay):
    operator = WindowJoin(["x"], ["x"], within=dt.timedelta(microseconds=within))
    outcome = run(operator, [*tables(batches), tables([[]])[0]], event_time="t", delay=delay)
    times = [row["t"] for rows in batches for row in rows if row["t"] is not None]
    watermark = max(times, default=0) - delay
    for state in outcome.states.values():
        kept = [row["@time"] for row in state["left"] + state["right"]]
        assert max(kept) >= watermark - within, "a key is called when its last tuple has had its time"
    assert not run(operator, tables(batches), event_time="t", delay=delay, flush=True).states


def test_a_tuple_is_kept_as_long_as_it_can_find_a_partner_and_no_longer():
    row = {"key": "a", "side": "left", "x": 1, "y": None, "t": 0}
    other, partner = row | {"key": "b", "t": 5}, row | {"side": "right", "t": 5}
    operator = WindowJoin(["x"], ["x"], within="5 microseconds")
    assert len(run(operator, tables([[row], [other], [partner]]), event_time="t").of("a")) == 1
    kept = [set(run(operator, tables([[row], [other | {"t": t}], []]), event_time="t").states) for t in (5, 6)]
    assert kept == [{("a",), ("b",)}, {("b",)}]


def test_equal_tuples_are_tuples_of_their_own():
    row = {"key": "a", "side": "left", "x": 1, "y": None, "t": 5}
    batches = tables([[row, row], [row | {"side": "right"}], [row | {"side": "right"}]])
    outcome = run(WindowJoin(["x"], ["x"], within="1 second"), batches, event_time="t")
    assert outcome.of("a") == [{"left_x": 1, "right_x": 1}] * 4


def test_columns_may_be_called_anything_and_sides_told_by_a_boolean():
    operator = WindowJoin({"x": "bid"}, {"y": "offer"}, within="2 seconds", side="bids")
    rows = [
        {"key": "a", "bids": True, "x": 7, "y": None, "t": 0},
        {"key": "a", "bids": False, "x": 8, "y": "p", "t": 2},
    ]
    batch = pa.Table.from_pylist(rows)
    assert run(operator, [batch], event_time="t").of("a") == [{"bid": 7, "offer": "p"}]
    assert operator.columns(batch.schema) == ["x", "y", "bids"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"left": "x", "right": ["y"]}, "list or a mapping", id="one name instead of a list"),
        pytest.param({"left": ["x"], "right": {"y": "left_x"}}, "left_x", id="two results of one name"),
        pytest.param({"left": ["x"], "right": ["y"], "within": "5 parsecs"}, "5 parsecs", id="no duration"),
    ],
)
def test_arguments_are_checked_when_it_is_built(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        WindowJoin(**{"within": "5 minutes"} | arguments)


def test_columns_are_checked_against_the_schema():
    with pytest.raises(UnknownNameError, match="Did you mean 'side'"):
        WindowJoin(["x"], ["x"], within="1 second", side="sides").state_schema(SCHEMA)
    with pytest.raises(UnsupportedTypeError, match="text or boolean"):
        WindowJoin(["y"], ["y"], within="1 second", side="x").state_schema(SCHEMA)


@pytest.mark.parametrize("side", ["up", None])
def test_a_side_that_is_neither_is_an_error(side):
    row = {"key": "a", "side": side, "x": 1, "y": None, "t": 5}
    with pytest.raises(InvalidArgumentError, match="'left' and 'right'"):
        run(WindowJoin(["x"], ["x"], within="1 second"), tables([[row]]), event_time="t")


def test_a_boolean_side_that_is_null_is_an_error():
    batch = pa.table({"key": ["a"], "side": pa.array([None], pa.bool_()), "x": [1], "t": [1]})
    with pytest.raises(InvalidArgumentError, match="has a null"):
        run(WindowJoin(["x"], ["x"], within="1 second"), [batch], event_time="t")
