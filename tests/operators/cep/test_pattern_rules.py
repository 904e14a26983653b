"""Patterns beside a literal backtracking matcher, and beside Python's regular expressions."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators.cep import Detector, PatternRule
from evenkeel.operators.cep.row_patterns import compile_pattern
from operators.harness import run

SCHEMA = pa.schema([("key", pa.string()), ("n", pa.int64()), ("t", pa.int64()), ("mask", pa.int64())])
DEFINE = {"A": "mask % 2 = 1", "B": "mask % 4 >= 2", "C": "mask >= 4"}
BITS = {"A": 1, "B": 2, "C": 4}
MEASURES = {
    "first": "FIRST(n)",
    "last": "n",
    "events": "COUNT(*)",
    "a": "A.n",
    "first_b": "FIRST(B.n)",
    "sum_b": "SUM(B.n + 1)",
    "count_c": "COUNT(C.*)",
    "most": "MAX(C.n) - MIN(A.n)",
}


# Trees of patterns: a variable, a sequence, a choice, or what is repeated, how often, and whether greedily.
def needed(tree) -> bool:
    """Whether at least one event is needed."""
    if isinstance(tree, str):
        return True
    kind, *parts = tree
    if kind == "repeat":
        return parts[1] > 0 and needed(parts[0])
    return (any if kind == "sequence" else all)(needed(part) for part in parts)


def repeated(inner):
    bounds = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (1, 3), (0, 2), (2, None)])
    return st.builds(lambda tree, b, greedy: ("repeat", tree, *b, greedy), inner.filter(needed), bounds, st.booleans())


TREES = st.recursive(
    st.sampled_from("ABC"),
    lambda inner: (
        st.builds(lambda a, b: ("sequence", a, b), inner, inner)
        | st.builds(lambda a, b: ("choice", a, b), inner, inner)
        | repeated(inner)
    ),
    max_leaves=6,
).filter(needed)


def text(tree, variable=lambda name: name, gap=" ") -> str:
    if isinstance(tree, str):
        return variable(tree)
    kind, *parts = tree
    if kind == "repeat":
        what, least, most, greedy = parts
        return f"({text(what, variable, gap)}){{{least},{'' if most is None else most}}}{'' if greedy else '?'}"
    inner = (gap if kind == "sequence" else "|").join(text(part, variable, gap) for part in parts)
    return f"({inner})"


def ways(tree, events, at):
    """Every way to match from a place on, the preferred first: where it ends, and the variables."""
    if isinstance(tree, str):
        if at < len(events) and events[at]["mask"] & BITS[tree]:
            yield at + 1, tree
        return
    kind, *parts = tree
    if kind == "choice":
        for part in parts:
            yield from ways(part, events, at)
    elif kind == "sequence":
        for middle, first in ways(parts[0], events, at):
            for end, second in ways(parts[1], events, middle):
                yield end, first + second
    else:
        what, least, most, greedy = parts
        stop = [(at, "")] if least == 0 else []
        more = (
            (end, once + rest)
            for middle, once in (ways(what, events, at) if most != 0 else ())
            for end, rest in ways(
                ("repeat", what, max(least - 1, 0), None if most is None else most - 1, greedy), events, middle
            )
        )
        yield from [*more, *stop] if greedy else [*stop, *more]


def all_matches(tree, events, overlap, within):
    at = 0
    while at < len(events):
        seen = [e for e in events if within is None or e["t"] <= events[at]["t"] + within]
        found = next(ways(tree, seen, at), None)
        if found:
            yield at, *found
        at = found[0] if found and not overlap else at + 1


def measured(events, start, end, variables) -> dict:
    match = list(zip(events[start:end], variables, strict=True))
    of = {name: [event["n"] for event, variable in match if variable == name] for name in "ABC"}
    return {
        "first": match[0][0]["n"],
        "last": match[-1][0]["n"],
        "events": len(match),
        "a": of["A"][-1] if of["A"] else None,
        "first_b": of["B"][0] if of["B"] else None,
        "sum_b": sum(n + 1 for n in of["B"]) if of["B"] else None,
        "count_c": len(of["C"]),
        "most": max(of["C"]) - min(of["A"]) if of["C"] and of["A"] else None,
    }


@st.composite
def streams(draw, keys="ab", most=14):
    time, rows = 0, []
    for n in range(draw(st.integers(0, most))):
        time += draw(st.integers(0, 3))
        rows.append({"key": draw(st.sampled_from(keys)), "n": n, "t": time, "mask": draw(st.integers(0, 7))})
    return rows


def cut(draw, rows) -> list[pa.Table]:
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    edges = zip([0, *cuts], [*cuts, len(rows)], strict=True)
    return [pa.Table.from_pylist(rows[a:b], SCHEMA) for a, b in edges]


def rule_for(tree, measures, **options) -> PatternRule:
    used = set(compile_pattern(text(tree)).variables)
    known = {name: m for name, m in measures.items() if set(re.findall(r"\b([ABC])\.", m)) <= used}
    return PatternRule("r", text(tree), {v: c for v, c in DEFINE.items() if v in used}, known, **options)


@settings(max_examples=80)
@given(st.data(), TREES, streams(), st.sampled_from([None, 2, 5]), st.sampled_from(["past last row", "to next row"]))
def test_matches_and_measures_are_those_of_backtracking(data, tree, rows, within, skip):
    rule = rule_for(tree, MEASURES, within=None if within is None else f"{within} microseconds", skip=skip)
    # At the end comes an event that is nothing at all, so that no match is left open.
    end = [{"key": key, "n": -1, "t": 10_000, "mask": 0} for key in "ab"]
    outcome = run(Detector([rule]), cut(data.draw, rows + end), event_time="t")
    for key in "ab":
        events = [row for row in rows if row["key"] == key]
        wanted = [measured(events, *match) for match in all_matches(tree, events, skip == "to next row", within)]
        found = [{name: row[name] for name in rule.measures} for row in outcome.of(key)]
        assert found == [{name: match[name] for name in rule.measures} for match in wanted]
    assert all(not state["sought_0_0"] for state in outcome.states.values())


@settings(max_examples=60)
@given(st.data(), TREES, streams(keys="a", most=25))
def test_matches_span_what_regular_expressions_span(data, tree, rows):
    classes = {name: "[" + "".join(chr(97 + m) for m in range(8) if m & bit) + "]" for name, bit in BITS.items()}
    regex = text(tree, lambda name: classes[name], gap="")
    wanted = [match.span() for match in re.finditer(regex, "".join(chr(97 + row["mask"]) for row in rows))]
    rule = rule_for(tree, {"first": "FIRST(n)", "events": "COUNT(*)"})
    end = [{"key": "a", "n": -1, "t": 10_000, "mask": 0}]
    outcome = run(Detector([rule]), cut(data.draw, rows + end))
    assert [(row["first"], row["first"] + row["events"]) for row in outcome.of("a")] == wanted
    assert not outcome.states


@settings(max_examples=40)
@given(st.data(), TREES, streams())
def test_the_watermark_decides_what_no_event_decides(data, tree, rows):
    rule = rule_for(tree, MEASURES, within="5 microseconds")
    outcome = run(
        Detector([rule]), [*cut(data.draw, rows), pa.Table.from_pylist([], SCHEMA)], event_time="t", flush=True
    )
    for key in "ab":
        events = [row for row in rows if row["key"] == key]
        wanted = [measured(events, *match) for match in all_matches(tree, events, False, 5)]
        assert [row["events"] for row in outcome.of(key)] == [match["events"] for match in wanted]
    assert not outcome.states


def kinds(*names, start=0, **more) -> pa.Table:
    return pa.table({"key": ["k"] * len(names), "kind": names, "t": range(start, start + len(names)), **more})


def test_a_then_b_without_c_in_between():
    rule = """SELECT * FROM events MATCH_RECOGNIZE (
        MEASURES A.t AS began, B.t AS ended
        AFTER MATCH SKIP TO NEXT ROW
        PATTERN (A other*? B)
        DEFINE A AS kind = 'a', other AS kind <> 'c', B AS kind = 'b')"""
    outcome = run(Detector({"a then b": rule}), [kinds("a", "x", "b", "a", "c", "b", "a", "b")])
    assert [(row["began"], row["ended"]) for row in outcome.of("k")] == [(0, 2), (6, 7)]


def test_a_match_that_may_still_grow_waits_for_its_end():
    rule = (
        "SELECT * FROM e MATCH_RECOGNIZE (MEASURES COUNT(B.*) AS n PATTERN (A B+) DEFINE A AS kind='a', B AS kind='b')"
    )
    batches = [kinds("a", "b"), kinds("b", "b", start=2), kinds("x", start=4)]
    assert not run(Detector([rule]), batches[:2]).outputs
    assert [row["n"] for row in run(Detector([rule]), batches).of("k")] == [3]
    eager = rule.replace("B+", "B+?")
    assert [row["n"] for row in run(Detector([eager]), batches[:1]).of("k")] == [1]


def test_a_variable_that_is_not_defined_is_any_event_and_conditions_look_back_and_at_windows():
    rule = """SELECT * FROM e MATCH_RECOGNIZE (MEASURES before.v AS v0, rise.v AS v1 PATTERN (before rise)
              DEFINE rise AS v > PREV(v) AND v > 2 * avg(v) OVER (ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING))"""
    table = pa.table({"key": ["k"] * 6, "v": [1.0, 1.0, 2.0, 9.0, 10.0, None]})
    assert [(row["v0"], row["v1"]) for row in run(Detector([rule]), [table]).of("k")] == [(2.0, 9.0)]


def test_only_chosen_events_are_seen():
    rule = """SELECT * FROM (SELECT * FROM e WHERE kind <> 'noise') MATCH_RECOGNIZE (
        MEASURES A.t AS a, B.t AS b PATTERN (A B) DEFINE A AS kind = 'a', B AS kind = 'b')"""
    outcome = run(Detector([rule]), [kinds("a", "noise"), kinds("noise", "b", start=2)])
    assert [(row["a"], row["b"]) for row in outcome.of("k")] == [(0, 3)]


@pytest.mark.parametrize("pattern", ["A*", "A? B?", "(A | B*)", "(A?)+", "(A B?)* C?"])
def test_a_pattern_needs_an_event_and_repeats_only_what_needs_one(pattern):
    with pytest.raises(InvalidArgumentError, match="no event"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["", "A (", "A)", "A | ", "* A", "A{}", "A{2", "A{x}", "{- A -}", "^ A", "A $", "A{2,1}", "A{0}", "3"]
)
def test_what_cannot_be_read_is_refused(pattern):
    with pytest.raises(InvalidArgumentError, match=r"cannot be read|repeats nothing"):
        compile_pattern(pattern)


def test_a_pattern_has_bounds():
    with pytest.raises(InvalidArgumentError, match="1000 states"):
        compile_pattern("(A{40}){30}")
    with pytest.raises(InvalidArgumentError, match="63 variables"):
        compile_pattern(" ".join(f"V{i}" for i in range(64)))
    assert len(compile_pattern("(A{40}){25}").variable_of) == 1000


def test_an_event_at_the_very_watermark_is_still_within():
    rule = PatternRule(
        "r", "A N* B", {"A": "kind = 'a'", "N": "kind = 'n'", "B": "kind = 'b'"}, {"n": "count(*)"}, "5 microseconds"
    )
    batches = [kinds("a"), kinds("n", start=5), kinds("n", start=5), kinds("b", start=5)]
    assert [row["n"] for row in run(Detector([rule]), batches, event_time="t").of("k")] == [4]
