"""A detector runs many rules at once, travels between processes, and says what does not fit a stream's columns."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators.cep import Detector, Frame, WindowFunction, WindowRule
from evenkeel.operators.reorder import Reordered
from operators.harness import run

ROWS = pa.table({"key": ["a", "b", "a", "a"], "v": [1, 2, 3, 9], "w": ["p", "q", "r", "s"], "t": [1, 2, 3, 4]})
HIGH = "SELECT v FROM e QUALIFY v > 2"
RISE = "SELECT * FROM e MATCH_RECOGNIZE (MEASURES up.v AS v, low.w AS w PATTERN (low up) DEFINE up AS v > PREV(v))"
SUM = "SELECT v, sum(v) OVER (ROWS 1 PRECEDING) AS total FROM e WHERE v < 5"


def test_rules_run_side_by_side_each_with_its_columns():
    detector = Detector({"high": HIGH, "rise": RISE, "sum": SUM}, rule_column="which", time_column="when")
    found = run(detector, [ROWS.slice(0, 3), ROWS.slice(3)]).of("a")
    key = {"when": None}
    assert sorted(found, key=lambda row: (row["which"], row["v"])) == [
        key | {"which": "high", "v": 3, "w": None, "total": None},
        key | {"which": "high", "v": 9, "w": None, "total": None},
        key | {"which": "rise", "v": 3, "w": "p", "total": None},
        key | {"which": "sum", "v": 1, "w": None, "total": 1},
        key | {"which": "sum", "v": 3, "w": None, "total": 4},
    ]
    assert detector.columns(ROWS.schema) == ["v", "w"]


def test_alerts_have_the_time_of_the_event_that_completed_them():
    found = run(Detector([RISE]), [ROWS], event_time="t").of("a")
    assert [row["time"].microsecond for row in found] == [3]


def test_event_time_is_needed_only_for_windows_and_patterns_by_time():
    assert not Detector([HIGH, RISE, SUM]).needs_event_time
    assert Detector([HIGH]).wakes_by is None
    timed = Detector(["SELECT count(*) OVER (RANGE INTERVAL 1 second PRECEDING) AS n FROM e"])
    assert timed.needs_event_time
    assert timed.wakes_by == "event_time"


def test_it_travels_as_a_small_value():
    detector = Detector({"high": HIGH, "rise": RISE})
    detector.state_schema(ROWS.schema)
    there = pickle.loads(pickle.dumps(detector))
    assert there == detector
    assert len(pickle.dumps(detector)) < 1500
    assert run(there, [ROWS]).outputs == run(detector, [ROWS]).outputs


def test_behind_a_reorder_buffer_disorder_makes_no_difference():
    rule = "SELECT v, count(*) OVER (RANGE INTERVAL 2 microseconds PRECEDING) AS n FROM e"
    order = np.random.default_rng(0).permutation(40)
    rows = pa.table({"key": ["a"] * 40, "v": range(40), "t": range(40)})
    batches = [rows.take(order[at : at + 8]) for at in range(0, 40, 8)]
    found = run(Reordered(Detector([rule])), batches, event_time="t", delay=40, flush=True)
    assert [(row["v"], row["n"]) for row in found.of("a")] == [(i, min(i + 1, 3)) for i in range(40)]
    assert found.late == 0


class Mode(WindowFunction):
    """The commonest text of a window."""

    name = "commonest"

    def keep(self, values):
        return values

    def over(self, kept, _at, bounds):
        texts = kept.to_pylist()
        windows = [texts[low:high] for low, high in zip(*bounds.tolist(), strict=True)]
        return pa.array([max(sorted(set(w)), key=w.count) if w else None for w in windows], pa.string())


def test_functions_of_ones_own():
    rule = WindowRule("r", {"x": "commonest(w) OVER last"}, windows={"last": Frame.last(3)})
    rows = pa.table({"key": ["a"] * 5, "w": ["p", "q", "q", "p", "p"]})
    found = run(Detector([rule], [Mode()]), [rows.slice(0, 2), rows.slice(2)])
    assert [row["x"] for row in found.of("a")] == ["p", "p", "q", "q", "p"]


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ([], InvalidArgumentError, "has rules"),
        ([WindowRule("r", {"v": "v"})] * 2, InvalidArgumentError, "name of its own"),
        ([SUM.replace("sum(v)", "sun(v)")], UnknownNameError, "Did you mean 'sum'"),
        ([SUM.replace("sum(v)", "count(DISTINCT v)")], InvalidArgumentError, "one argument"),
        ([SUM.replace("sum(v)", "lag(v, w)")], InvalidArgumentError, "whole number"),
    ],
)
def test_rules_are_checked_together(rules, error, message):
    with pytest.raises(error, match=message):
        Detector(rules)


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ([HIGH.replace("v >", "vv >")], UnknownNameError, "no column called 'vv'. Did you mean 'v'"),
        ([SUM.replace("v < 5", "u < 5")], UnknownNameError, "no column called 'u'"),
        ([RISE.replace("low.w", "low.z")], UnknownNameError, "no column called 'z'"),
        ([RISE.replace("PREV(v)", "PREV(y)")], UnknownNameError, "no column called 'y'"),
        ([SUM.replace("sum(v)", "sum(w)")], UnsupportedTypeError, "sum needs numbers"),
        ([HIGH.replace("SELECT v", "SELECT foo(v) AS v")], UnknownNameError, "no function called 'foo'"),
        ([HIGH, "SELECT w AS v FROM e"], InvalidArgumentError, "something else"),
        (["SELECT v AS time FROM e"], InvalidArgumentError, "every alert"),
        (["SELECT NULL AS x FROM e"], UnsupportedTypeError, "always null"),
        ([RISE.replace("up.v AS v", "SUM(up.v + low.v) AS v")], InvalidArgumentError, "more than one variable"),
    ],
)
def test_rules_are_checked_against_the_columns(rules, error, message):
    with pytest.raises(error, match=message):
        Detector(rules).state_schema(ROWS.schema)
    with pytest.raises(error, match=message):
        run(Detector(rules), [ROWS])


def test_the_newest_time_of_a_key_is_remembered_though_nothing_else_is():
    rule = "SELECT * FROM e MATCH_RECOGNIZE (MEASURES x.v AS v PATTERN (x) WITHIN INTERVAL 1 second DEFINE x AS v > 1)"
    batches = [pa.table({"key": ["a"], "v": [v], "t": [t]}) for v, t in ((0, 20), (2, 10), (3, 20))]
    outcome = run(Detector([rule]), batches, event_time="t", delay=100)
    assert [row["v"] for row in outcome.of("a")] == [3]
    assert outcome.late == 1
    assert not run(Detector([rule]), [*batches, batches[0].slice(0, 0)], event_time="t").states
