"""Rules as text: SELECT … QUALIFY for windows, MATCH_RECOGNIZE for patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators.cep.rules import Frame, PatternRule, Rule, Skip, WindowRule
from evenkeel.operators.cep.syntax import DIALECT, parse, refuse_all_but
from evenkeel.operators.durations import microseconds

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

__all__ = ["frame_of", "parse_rule"]

_SKIPS: dict[str, Skip] = {
    "AFTER MATCH SKIP PAST LAST ROW": "past last row",
    "AFTER MATCH SKIP TO NEXT ROW": "to next row",
}


def parse_rule(name: str, text: str) -> Rule:
    """Build a rule from SQL.

    Examples
    --------
    >>> rule = parse_rule(
    ...     "spike",
    ...     '''
    ...     SELECT value, avg(value) OVER before AS mean FROM events
    ...     QUALIFY value > 3 * avg(value) OVER before
    ...     WINDOW before AS (ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING)''',
    ... )
    >>> rule.when
    'value > 3 * AVG(value) OVER before'
    >>> rule.windows
    {'before': Frame(kind='rows', start=20, end=1)}
    """
    text, within = _cut_within(text)
    select: Any = parse(text)
    if select.key != "select":
        raise InvalidArgumentError(f"A rule is a SELECT: {text.strip()}", text=text)
    if select.args.get("match"):
        return _pattern_rule(name, select, within)
    refuse_all_but(select, {"expressions", "from_", "where", "qualify", "windows"}, "A rule")
    _check_from(select)
    columns = {}
    for part in select.expressions:
        if not part.alias_or_name or part.is_star:
            raise InvalidArgumentError(
                f"Rule {name!r} selects {part.sql(DIALECT)}; give each column of an alert a name with AS.", rule=name
            )
        columns[part.alias_or_name] = part.unalias().sql(DIALECT)
    windows = {window.name: frame_of(window) for window in select.args.get("windows") or []}
    return WindowRule(name, columns, _text(select, "qualify"), _text(select, "where"), windows)


def frame_of(window: Any) -> Frame:
    """Give the frame of a window's specification."""
    for clause in ("partition_by", "order"):
        if window.args.get(clause):
            raise InvalidArgumentError(
                f"Leave {clause.split('_')[0].upper()} BY out: rules look at the events of one key, in order: "
                f"{window.sql(DIALECT)}"
            )
    spec = window.args.get("spec")
    if spec is None:
        raise InvalidArgumentError(f"Say how far back the window goes, with ROWS or RANGE: {window.sql(DIALECT)}")
    kind = str(spec.args["kind"]).lower()
    start, end = (_bound(window, spec.args.get(side), spec.args.get(f"{side}_side")) for side in ("start", "end"))
    return Frame("rows" if kind == "rows" else "range", start, end)


def _bound(window: Expression, bound: Any, side: Any) -> int:
    if bound is None or bound == "CURRENT ROW":
        return 0
    if bound == "UNBOUNDED" or str(side).upper() == "FOLLOWING":
        raise InvalidArgumentError(f"A window reaches back, and has a bound: {window.sql(DIALECT)}")
    if bound.key == "interval":
        return microseconds(f"{bound.this.name} {bound.args['unit'].name}")
    if bound.key == "literal" and bound.is_string:
        return microseconds(bound.name)
    if bound.is_int and window.args["spec"].args["kind"].lower() == "rows":
        return int(bound.name)
    raise InvalidArgumentError(
        f"ROWS counts events, and RANGE takes an interval such as INTERVAL '10 minutes': {window.sql(DIALECT)}"
    )


def _pattern_rule(name: str, select: Any, within: str | None) -> PatternRule:
    refuse_all_but(select, {"expressions", "from_", "match"}, "A rule with a pattern")
    match = select.args["match"]
    refuse_all_but(match, {"measures", "rows", "after", "pattern", "define", "alias"}, "MATCH_RECOGNIZE in a rule")
    if [part.key for part in select.expressions] != ["star"]:
        raise InvalidArgumentError("A rule with a pattern selects *; say what alerts contain in MEASURES.", rule=name)
    if match.args.get("rows") and match.args["rows"].name != "ONE ROW PER MATCH":
        raise InvalidArgumentError("A rule gives ONE ROW PER MATCH.", rule=name)
    after = match.args.get("after")
    if after and after.name not in _SKIPS:
        raise InvalidArgumentError(f"A rule may skip so: {', '.join(_SKIPS)}; got {after.name}.", rule=name)
    if not match.args.get("pattern"):
        raise InvalidArgumentError("MATCH_RECOGNIZE needs a PATTERN.", rule=name)
    for measure in match.args.get("measures") or []:
        if measure.args.get("window_frame") == "RUNNING" or not measure.this.alias:
            raise InvalidArgumentError(f"Measures are FINAL and have names: {measure.sql(DIALECT)}", rule=name)
    source = select.args["from_"].this
    inner = source.this if source.key == "subquery" else None
    if inner is not None:
        refuse_all_but(inner, {"expressions", "from_", "where"}, "The part that chooses a rule's events")
    _check_from(inner or select)
    return PatternRule(
        name,
        match.args["pattern"].name,
        {part.alias: part.this.sql(DIALECT) for part in match.args.get("define") or []},
        {part.this.alias: part.this.this.sql(DIALECT) for part in match.args.get("measures") or []},
        within,
        _SKIPS[after.name] if after else "past last row",
        _text(inner, "where") if inner is not None else None,
    )


def _check_from(select: Any) -> None:
    source = select.args.get("from_")
    if source is None or source.this.key not in {"table", "subquery"}:
        raise InvalidArgumentError(f"A rule selects FROM one stream of events: {select.sql(DIALECT)}")


def _text(select: Any, clause: str) -> str | None:
    found = select.args.get(clause)
    return found.this.sql(DIALECT) if found else None


def _cut_within(text: str) -> tuple[str, str | None]:
    """Take ``WITHIN INTERVAL …`` behind a PATTERN out of the text: Flink and others have it, sqlglot does not."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tokens = sqlglot.tokenize(text, read=DIALECT)
    except SqlglotError as error:
        raise InvalidArgumentError(f"This is no SQL: {text.strip()}", text=text) from error
    words = ["" if token.token_type.name == "STRING" else token.text.upper() for token in tokens]
    behind = words.index("PATTERN") if "PATTERN" in words else len(words)
    if "WITHIN" not in words[behind:]:
        return text, None
    at = words.index("WITHIN", behind)
    end = next((i for i in range(at, len(words)) if words[i] in {"DEFINE", ")"}), len(words) - 1)
    interval: Any = parse(f"SELECT {text[tokens[at + 1].start : tokens[end].start]}").expressions[0]
    if interval.key != "interval":
        raise InvalidArgumentError("WITHIN takes an interval such as INTERVAL '5 minutes'.", text=text)
    return text[: tokens[at].start] + text[tokens[end].start :], f"{interval.this.name} {interval.args['unit'].name}"
