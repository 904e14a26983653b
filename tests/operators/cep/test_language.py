"""Rules as text and as Python objects are the same rules; what is wrong with them is said when they are built."""

from __future__ import annotations

import pytest

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.operators.cep import Frame, PatternRule, WindowRule, parse_rule
from evenkeel.operators.cep.language import frame_of
from evenkeel.operators.cep.syntax import parse_expression

WINDOW = """
    SELECT word, value, avg(value) OVER last AS mean FROM events
    WHERE kind = 'x'
    QUALIFY value > 3 * avg(value) OVER last
    WINDOW last AS (RANGE BETWEEN INTERVAL '10' MINUTES PRECEDING AND CURRENT ROW)
"""
PATTERN = """
    SELECT * FROM (SELECT * FROM events WHERE kind = 'x') MATCH_RECOGNIZE (
      MEASURES FIRST(A.v) AS began, COUNT(*) AS n
      ONE ROW PER MATCH
      AFTER MATCH SKIP TO NEXT ROW
      PATTERN (A  B+ (C | D){2,3})
      WITHIN INTERVAL '5' MINUTE
      DEFINE A AS v>3, B AS v < PREV(v)
    )
"""


def test_a_window_rule_is_the_same_as_text_and_as_an_object():
    assert parse_rule("spike", WINDOW) == WindowRule(
        "spike",
        {"word": "word", "value": "value", "mean": "AVG( value ) over last"},
        when="value > 3*avg(value) OVER last",
        where="kind='x'",
        windows={"last": Frame.last("10 minutes")},
    )


def test_a_pattern_rule_is_the_same_as_text_and_as_an_object():
    assert parse_rule("drop", PATTERN) == PatternRule(
        "drop",
        "A B+ (C | D){2,3}",
        define={"A": "v > 3", "B": "v < prev(v)".upper().replace("V <", "v <").replace("(V)", "(v)")},
        measures={"began": "first(A.v)", "n": "count(*)"},
        within="300 seconds",
        skip="to next row",
        where="kind = 'x'",
    )


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("ROWS 19 PRECEDING", Frame.last(20)),
        ("ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING", Frame.previous(5)),
        ("RANGE INTERVAL 90 SECONDS PRECEDING", Frame.last("1 minute 30 seconds")),
        ("RANGE BETWEEN '2 hours' PRECEDING AND '1 hour' PRECEDING", Frame("range", 7200 * 10**6, 3600 * 10**6)),
    ],
)
def test_frames(text, frame):
    assert frame_of(parse_expression(f"count(*) OVER ({text})")) == frame


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ROWS UNBOUNDED PRECEDING", "has a bound"),
        ("ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING", "reaches back"),
        ("PARTITION BY k ROWS 1 PRECEDING", "Leave PARTITION BY out"),
        ("ORDER BY t ROWS 1 PRECEDING", "Leave ORDER BY out"),
        ("RANGE 5 PRECEDING", "takes an interval"),
        ("", "how far back"),
        ("ROWS BETWEEN 1 PRECEDING AND 3 PRECEDING", "further back"),
    ],
)
def test_windows_reach_back_and_have_bounds(text, message):
    with pytest.raises(InvalidArgumentError, match=message):
        frame_of(parse_expression(f"count(*) OVER ({text})"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT a FROM", "no SQL at line 1"),
        ("SELECT 'a FROM e", "no SQL"),
        ("DELETE FROM e", "is a SELECT"),
        ("SELECT a", "FROM one stream"),
        ("SELECT a FROM e GROUP BY a", "no GROUP"),
        ("SELECT a FROM e, f", "no JOINS"),
        ("SELECT DISTINCT a FROM e", "no DISTINCT"),
        ("SELECT * FROM e", "give each column"),
        ("SELECT a + 1 FROM e", "give each column"),
        ("SELECT a FROM e WHERE a > avg(a) OVER (ROWS 3 PRECEDING)", "into QUALIFY"),
        ("SELECT avg(a) OVER lst AS x FROM e WINDOW last AS (ROWS 3 PRECEDING)", "Did you mean 'last'"),
        (PATTERN.replace("SELECT * FROM (", "SELECT n FROM ("), r"selects \*"),
        (PATTERN.replace("ONE ROW", "ALL ROWS"), "ONE ROW PER MATCH"),
        (PATTERN.replace("NEXT ROW", "LAST B"), "AFTER MATCH SKIP PAST LAST ROW"),
        (PATTERN.replace("MEASURES", "PARTITION BY k MEASURES"), "no PARTITION BY"),
        (PATTERN.replace("INTERVAL '5' MINUTE", "5"), "WITHIN takes an interval"),
        (PATTERN.replace("COUNT(*) AS n", "RUNNING COUNT(*) AS n"), "FINAL"),
        (PATTERN.replace("A AS", "X AS"), "no variable in the pattern"),
        (PATTERN.replace("FIRST(A.v)", "FIRST(X.v)"), "no variable in the pattern"),
        (PATTERN.replace("v>3", "v > B.v"), "another variable's event"),
        (PATTERN.replace("B+", "B+ ("), "cannot be read|no SQL"),
        ("SELECT * FROM e MATCH_RECOGNIZE (DEFINE A AS x)", "needs a PATTERN"),
    ],
)
def test_what_a_rule_cannot_be_is_said_when_it_is_built(text, message):
    with pytest.raises(InvalidArgumentError, match=message):
        parse_rule("rule", text)


def test_objects_are_checked_too():
    with pytest.raises(InvalidArgumentError, match="not one SQL expression"):
        WindowRule("r", {"a": "a AS b"})
    with pytest.raises(InvalidArgumentError, match="not one SQL expression"):
        WindowRule("r", {"a": "a FROM t"})
    with pytest.raises(InvalidArgumentError, match="selects nothing"):
        WindowRule("r", {})
    with pytest.raises(InvalidArgumentError, match="skip is one of"):
        PatternRule("r", "A", skip="somewhere")
    with pytest.raises(UnknownNameError, match="window called 'w'"):
        WindowRule("r", {"a": "sum(a) OVER w"})


def test_within_is_no_reserved_word():
    rule = parse_rule("r", "SELECT within FROM e WHERE kind = 'pattern within'")
    assert rule.select == {"within": "within"}
