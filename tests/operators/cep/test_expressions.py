"""Expressions beside SQLite where both mean the same, and by example where Spark has its own mind."""

from __future__ import annotations

import datetime as dt
import math
import sqlite3
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators.cep.expressions import Events, as_mask, evaluate_column
from evenkeel.operators.cep.syntax import parse_expression

NUMBERS = st.recursive(
    st.sampled_from(["a", "b", "NULL", "0", "1", "-2"]),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*"]), inner)
        | st.builds("coalesce({}, {})".format, inner, inner)
        | st.builds("nullif({}, {})".format, inner, inner)
        | st.builds("abs({})".format, inner)
        | st.builds("(CASE WHEN {0} > 0 THEN {1} WHEN {1} = 1 THEN {0} END)".format, inner, inner)
        | st.builds("(CASE {0} WHEN {1} THEN 5 ELSE {1} END)".format, inner, inner)
    ),
    max_leaves=4,
)
CONDITIONS = st.recursive(
    st.builds("({} {} {})".format, NUMBERS, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMBERS)
    | st.builds("({} IS {} NULL)".format, NUMBERS, st.sampled_from(["", "NOT"]))
    | st.builds("({} {} IN ({}, {}))".format, NUMBERS, st.sampled_from(["", "NOT"]), NUMBERS, NUMBERS)
    | st.builds("({} {} BETWEEN {} AND {})".format, NUMBERS, st.sampled_from(["", "NOT"]), NUMBERS, NUMBERS),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner)
        | st.builds("(NOT {})".format, inner)
    ),
    max_leaves=4,
)
PAIRS = st.lists(st.tuples(st.none() | st.integers(-2, 2), st.none() | st.integers(-2, 2)), min_size=1, max_size=6)


@settings(max_examples=150)
@given(NUMBERS | CONDITIONS, PAIRS)
def test_whole_numbers_and_conditions_are_those_of_sqlite(text, rows):
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE TABLE t (a INTEGER, b INTEGER)")
        database.executemany("INSERT INTO t VALUES (?, ?)", rows)
        wanted = [value for (value,) in database.execute(f"SELECT {text} FROM t ORDER BY rowid")]
    finally:
        database.close()
    assert (
        values(text, a=pa.array([a for a, _ in rows], pa.int64()), b=pa.array([b for _, b in rows], pa.int64()))
        == wanted
    )


def values(text: str, **columns) -> list:
    return evaluate_column(parse_expression(text), Events(pa.table(columns))).to_pylist()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a / 2", [0.5, 1.0, None]),
        ("a / 0", [None, None, None]),
        ("-a % 2", [-1, 0, None]),
        ("a % 0", [None, None, None]),
        ("7 % 4 + a", [4, 5, None]),
        ("5.5 % a", [0.5, 1.5, None]),
        ("round(a / 2)", [1.0, 1.0, None]),
        ("round(1.25, 1)", [1.3] * 3),
        ("floor(a / 2)", [0.0, 1.0, None]),
        ("sqrt(4) + ln(1) + exp(0) + power(2, 3)", [11.0] * 3),
        ("greatest(a, 2)", [2, 2, 2]),
        ("least(a, 1.5)", [1.0, 1.5, 1.5]),
        ("if(a > 1, 'many', 'one')", ["one", "many", "one"]),
        ("cast(a AS string) || s", ["1x", "2Yy", None]),
        ("upper(s) || lower(s)", ["Xx", "YYyy", None]),
        ("length(s)", [1, 2, None]),
        ("s LIKE 'Y%'", [False, True, None]),
        ("s = 'x' IS TRUE", [True, False, False]),
        ("cast(s = 'x' AS int)", [1, 0, None]),
        ("d > 1.5", [False, True, None]),
        ("d + a", [2.25, 4.5, None]),
        ("at >= TIMESTAMP '2020-01-02'", [False, True, None]),
        ("CASE WHEN a > 1 THEN 0.5 ELSE a END", [1.0, 0.5, None]),
    ],
)  # fmt: skip
def test_functions(text, wanted):
    found = values(
        text,
        a=pa.array([1, 2, None], pa.int32()),
        s=["x", "Yy", None],
        d=pa.array([Decimal("1.25"), Decimal("2.50"), None], pa.decimal128(5, 2)),
        at=pa.array([dt.datetime(2020, 1, day, tzinfo=dt.timezone.utc) for day in (1, 2)] + [None]),
    )
    assert found == wanted


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_nan_equals_itself_and_is_greater_than_all_other_numbers(operator):
    order = [-math.inf, 1.0, math.inf, math.nan]
    pairs = [(a, b) for a in range(4) for b in range(4)]
    found = values(
        f"x {operator} y", x=[order[a] for a, _ in pairs] + [None], y=[order[b] for _, b in pairs] + [math.nan]
    )
    compare = {"=": "==", "<>": "!="}.get(operator, operator)
    assert found == [eval(f"{a} {compare} {b}") for a, b in pairs] + [None]


def test_an_unknown_condition_is_not_met():
    mask = as_mask(parse_expression("a > 1"), Events(pa.table({"a": [0, 2, None]})))
    assert mask.to_pylist() == [False, True, False]
    assert as_mask(parse_expression("NULL"), Events(pa.table({"a": [0]}))).to_pylist() == [False]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("valeu > 1", UnknownNameError, "Did you mean 'value'"),
        ("sqrtt(value)", UnknownNameError, "Did you mean 'sqrt'"),
        ("cast(value AS uuid)", UnknownNameError, "no type called 'UUID'"),
        ("value + word", UnsupportedTypeError, "number"),
        ("value = word", UnsupportedTypeError, "does not go with"),
        ("value IN (SELECT 1)", InvalidArgumentError, "IN takes a list"),
        ("(SELECT 1)", InvalidArgumentError, "no place"),
        ("value + avg(value)", UnknownNameError, "no function called 'avg'"),
    ],
)
def test_what_means_nothing_is_refused(text, error, message):
    with pytest.raises(error, match=message):
        values(text, value=[1, 2], word=["a", "b"])


def test_a_condition_is_true_or_false():
    with pytest.raises(InvalidArgumentError, match="true or false"):
        as_mask(parse_expression("a + 1"), Events(pa.table({"a": [1]})))
