"""Window rules beside a literal evaluation: for each event, list its window and aggregate it in plain Python."""

from __future__ import annotations

import math
import statistics

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.operators.cep import Detector, Frame, WindowRule
from operators.harness import run

SCHEMA = pa.schema([("key", pa.string()), ("n", pa.int64()), ("t", pa.int64()), ("i", pa.int32()), ("f", pa.float64())])
FRAMES = st.builds(
    lambda kind, end, more: Frame(kind, end + more, end),
    st.sampled_from(["rows", "range"]),
    st.integers(0, 3),
    st.integers(0, 9),
)
FUNCTIONS = ["count", "sum", "avg", "min", "max", "stddev", "stddev_pop", "variance", "first_value", "last_value"]


@st.composite
def streams(draw):
    """Events in event-time order."""
    time, rows = 0, []
    for n in range(draw(st.integers(1, 30))):
        time += draw(st.sampled_from([0, 1, 2, 3, 4, 9]))
        number = draw(st.none() | st.integers(-4, 4))
        fraction = draw(st.none() | st.integers(-8, 8).map(lambda x: x / 2) | st.sampled_from([math.nan, 1e300]))
        key = draw(st.sampled_from(["a", "b"]))
        rows.append({"key": key, "n": n, "t": time, "i": number, "f": fraction})
    return rows


def cut(draw, rows) -> list[pa.Table]:
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    edges = zip([0, *cuts], [*cuts, len(rows)], strict=True)
    return [pa.Table.from_pylist(rows[a:b], SCHEMA) for a, b in edges]


def window(events, at, frame):
    """The events of a frame, as SQL defines it, among those that came up to now."""
    if frame.kind == "rows":
        return events[max(0, at - frame.start) : max(0, at - frame.end + 1)]
    now = events[at]["t"]
    return [event for event in events[: at + 1] if now - frame.start <= event["t"] <= now - frame.end]


def least(values):
    return min([value for value in values if not math.isnan(value)], default=math.nan)


SLOW = {
    "sum": math.fsum,
    "avg": statistics.fmean,
    "min": least,
    "max": lambda values: math.nan if any(map(math.isnan, values)) else max(values),
    "stddev": statistics.stdev,
    "variance": statistics.variance,
    "stddev_pop": statistics.pstdev,
}


def aggregated(function, values):
    if function in {"first_value", "last_value"}:
        return None if not values else values[0 if function == "first_value" else -1]
    values = [value for value in values if value is not None]
    if function == "count":
        return len(values)
    if len(values) < (2 if function in {"stddev", "variance"} else 1):
        return None
    if function not in {"min", "max"} and any(map(math.isnan, values)):
        return math.nan
    return SLOW[function](values)


def near(found, wanted) -> bool:
    if found is None or wanted is None:
        return found is None and wanted is None
    return found == pytest.approx(wanted, rel=1e-9, abs=1e-9, nan_ok=True)


@settings(max_examples=80)
@given(st.data(), streams(), st.sampled_from(FUNCTIONS), st.sampled_from(["i", "f", "i + 1"]), FRAMES, st.booleans())
def test_aggregates_are_those_of_the_listed_window(data, rows, function, argument, frame, filtered):
    if function in {"stddev", "variance", "stddev_pop", "sum", "avg"}:
        rows = [row | {"f": None if row["f"] == 1e300 else row["f"]} for row in rows]
    call = f"{function}({argument})" + (" FILTER (WHERE n % 3 <> 1)" if filtered else "")
    rule = WindowRule("r", {"n": "n", "x": f"{call} OVER w"}, windows={"w": frame})
    outcome = run(Detector([rule]), cut(data.draw, rows), event_time="t")
    for key in "ab":
        events = [row for row in rows if row["key"] == key]
        found = {row["n"]: row["x"] for row in outcome.of(key)}
        assert len(found) == len(events)
        for at, event in enumerate(events):
            values = [
                None if row["i" if argument != "f" else "f"] is None else row["f"] if argument == "f"
                else row["i"] + (argument != "i")
                for row in window(events, at, frame)
                for row in [row if not filtered or row["n"] % 3 != 1 else row | {"i": None, "f": None}]
            ]  # fmt: skip
            assert near(found[event["n"]], aggregated(function, values)), (key, event)


@settings(max_examples=60)
@given(st.data(), streams(), st.sampled_from([Frame.last(7), Frame.last("5 microseconds")]))
def test_results_are_equal_to_the_last_bit_whatever_the_batches(data, rows, frame):
    rows = [row | {"f": 1 / (row["n"] + 3) + 1e9 * (row["n"] % 2)} for row in rows]
    select = {f: f"{f}(f) OVER w" for f in ("sum", "avg", "stddev")} | {"n": "n"}
    detector = Detector([WindowRule("r", select, windows={"w": frame})])
    whole = run(detector, [pa.Table.from_pylist(rows, SCHEMA)], event_time="t")
    pieces = run(detector, cut(data.draw, rows), event_time="t")
    assert sorted(map(repr, whole.outputs)) == sorted(map(repr, pieces.outputs))


def events(values, **more) -> pa.Table:
    return pa.table({"key": ["a"] * len(values), "v": values, **more})


def values_of(rule: str, table: pa.Table, column: str = "x", **options) -> list:
    return [row[column] for row in run(Detector([rule]), [table], **options).of("a")]


def test_what_has_left_the_window_leaves_no_trace():
    table = events([math.inf, math.nan, 1e308, 1e-5, 2e-5, 3e-5])
    rule = "SELECT sum(v) OVER (ROWS 1 PRECEDING) AS x, stddev(v) OVER (ROWS 1 PRECEDING) AS y FROM e"
    assert values_of(rule, table)[4:] == pytest.approx([3e-5, 5e-5])
    assert values_of(rule, table, "y")[4:] == pytest.approx([1e-5 / math.sqrt(2)] * 2)


def test_the_condition_chooses_the_alerts():
    table = events([1.0, 1.0, 9.0, 1.0, None, 9.0])
    rule = """SELECT v, avg(v) OVER before AS x, count(*) OVER before AS n FROM events
              QUALIFY v > 3 * avg(v) OVER before WINDOW before AS (ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)"""
    assert run(Detector({"spike": rule}), [table]).of("a") == [
        {"rule": "spike", "time": None, "v": 9.0, "x": 1.0, "n": 2},
        {"rule": "spike", "time": None, "v": 9.0, "x": 1.0, "n": 2},
    ]


def test_where_chooses_the_events_that_windows_are_made_of():
    table = events([1, 100, 2, 100, 3])
    rule = "SELECT v, sum(v) OVER (ROWS 1 PRECEDING) AS x FROM e WHERE v < 50"
    assert values_of(rule, table) == [1, 3, 5]


def test_lag_looks_back():
    rule = "SELECT lag(v) OVER w AS x, lag(v, 2) OVER w AS y FROM e WINDOW w AS (ROWS 0 PRECEDING)"
    assert values_of(rule, events([1, 2, 3])) == [None, 1, 2]
    assert values_of(rule, events([1, 2, 3]), "y") == [None, None, 1]


def test_case_counts_kinds():
    rule = """SELECT sum(CASE WHEN kind = 'x' THEN 1 ELSE 0 END) OVER w AS x,
                     count(*) FILTER (WHERE kind = 'x') OVER w AS y
              FROM e WINDOW w AS (ROWS 2 PRECEDING)"""
    table = events([1, 2, 3, 4], kind=["x", "y", "x", "x"])
    assert values_of(rule, table) == values_of(rule, table, "y") == [1, 1, 2, 2]


def test_times_have_a_least_and_a_greatest():
    when = pa.array([5, 3, None], pa.timestamp("us", "UTC"))
    rule = "SELECT min(at) OVER (ROWS 9 PRECEDING) AS x FROM e"
    found = run(Detector([rule]), [events([1, 2, 3], at=when)])
    assert [row["x"] for row in found.of("a")] == [when[0].as_py(), when[1].as_py(), when[1].as_py()]


def test_an_event_older_than_its_keys_newest_is_late_for_windows_by_time():
    rule = "SELECT v, count(*) OVER (RANGE INTERVAL 10 microseconds PRECEDING) AS x FROM e"
    batches = [events([1, 2], t=[20, 10]), events([3, 4, 5], t=[15, 20, None])]
    outcome = run(Detector([rule]), batches, event_time="t", delay=100)
    assert [(row["v"], row["x"]) for row in outcome.of("a")] == [(2, 1), (1, 2), (4, 3)]
    assert outcome.late == 2


@settings(max_examples=30)
@given(streams())
def test_keys_are_forgotten_once_their_windows_are_empty(rows):
    rule = "SELECT n, count(*) OVER (RANGE INTERVAL 5 microseconds PRECEDING) AS x FROM e"
    batches = [pa.Table.from_pylist([row], SCHEMA) for row in rows]
    outcome = run(Detector([rule]), [*batches, batches[-1].slice(0, 0)], event_time="t")
    newest = rows[-1]["t"]
    last = {(row["key"],): row["t"] for row in rows}
    assert set(outcome.states) == {key for key, time in last.items() if newest <= time + 5}
    for key, state in outcome.states.items():
        assert [row["time"] for row in state["history_0"]][-1] == last[key]


def test_a_key_is_forgotten_when_no_later_event_can_look_back_at_it():
    rule = "SELECT count(*) OVER (RANGE INTERVAL 5 microseconds PRECEDING) AS x FROM e"
    for newest, forgotten in ((5, False), (6, True)):
        other = pa.table({"key": ["b"], "t": [newest]})
        batches = [pa.table({"key": ["a"], "t": [0]}), other, other.slice(0, 0)]
        outcome = run(Detector([rule]), batches, event_time="t")
        assert (("a",) not in outcome.states) == forgotten
    batches = [
        pa.table({"key": ["a"], "t": [0]}),
        pa.table({"key": ["a"], "t": [5]}),
        pa.table({"key": ["a"], "t": [5]}),
    ]
    assert [row["x"] for row in run(Detector([rule]), batches, event_time="t").of("a")] == [1, 2, 3]


def test_numbers_start_again_where_no_window_reaches_whether_or_not_the_key_was_forgotten():
    """Sums of these differ in their last bits if their blocks do."""
    values = [0.1, 0.7, 1e9, 1 / 3, 1e-7, 1e5 / 7, 0.3]
    rows = pa.table({"key": ["a"] * 10, "t": [0, 1, 2, *range(100, 107)], "v": [1.0, 2.0, 3.0, *values]})
    rule = "SELECT sum(v) OVER (RANGE INTERVAL 50 microseconds PRECEDING) AS x FROM e"
    whole = run(Detector([rule]), [rows], event_time="t").outputs
    late_key = pa.table({"key": ["b"], "t": [99], "v": [0.0]})  # moves the watermark, so that "a" is forgotten
    batches = [rows.slice(0, 3), late_key, late_key, rows.slice(3, 2), rows.slice(5)]
    assert run(Detector([rule]), batches, event_time="t").of("a") == [row for _, row in whole]


def test_rules_without_windows_keep_nothing():
    outcome = run(Detector(["SELECT v FROM e WHERE v > 1"]), [events([1, 2, 3])])
    assert [row["v"] for row in outcome.of("a")] == [2, 3]
    assert not outcome.states
