"""Rules as values: what to look for in each key's events, checked when built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.operators.cep.row_patterns import compile_pattern
from evenkeel.operators.cep.syntax import normal, parse_expression, walk
from evenkeel.operators.durations import Duration, microseconds

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Frame", "PatternRule", "Rule", "Skip", "WindowRule"]

Skip = Literal["past last row", "to next row"]


@dataclass(frozen=True, slots=True)
class Frame:
    """A stretch of a key's events that ends at, or before, each event.

    Parameters
    ----------
    kind
        Whether ``start`` and ``end`` count events (``"rows"``) or microseconds of event time (``"range"``).
    start, end
        How far before the event the stretch begins and ends, both included; 0 is the event itself.
    """

    kind: Literal["rows", "range"]
    start: int
    end: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.end <= self.start:
            raise InvalidArgumentError(f"A window goes from further back to less far back; got {self}.")

    @classmethod
    def last(cls, extent: int | Duration) -> Frame:
        """The last ``extent`` events, this one included; or those of the last ``extent`` of event time."""
        return cls("rows", extent - 1) if isinstance(extent, int) else cls("range", microseconds(extent))

    @classmethod
    def previous(cls, events: int) -> Frame:
        """The events before this one, as many as are said."""
        return cls("rows", events, 1)


@dataclass(frozen=True)
class WindowRule:
    """Alert for each event that meets a condition on itself and on aggregates over windows.

    Parameters
    ----------
    name
        How alerts call it.
    select
        The columns of an alert: name → SQL expression.
    when
        The condition, an SQL expression; always, if none.
    where
        Which events the rule sees at all; they alone are counted in its windows.
    windows
        Named windows, for ``… OVER name`` in the expressions.
    """

    name: str
    select: Mapping[str, str]
    when: str | None = None
    where: str | None = None
    windows: Mapping[str, Frame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.select:
            raise InvalidArgumentError(f"Rule {self.name!r} selects nothing.", rule=self.name)
        _normalise(self, "select")
        _normalise(self, "when")
        _check_where(self)

    @property
    def texts(self) -> list[str]:
        """All expressions that may look at windows."""
        return [*self.select.values(), *([self.when] if self.when else [])]


@dataclass(frozen=True)
class PatternRule:
    """Alert for each run of a key's events that matches a row pattern, as SQL's MATCH_RECOGNIZE does.

    Parameters
    ----------
    name
        How alerts call it.
    pattern
        Variables in sequence, with ``|``, parentheses and the quantifiers ``*``, ``+``, ``?``, ``{n}``, ``{n,m}``; each
        takes as much as it can, or as little, with one more ``?``.
    define
        Variable → condition on an event. A variable that is not defined stands for any event.
    measures
        The columns of an alert: name → expression over the matched events.
    within
        How long the match may last in event time, from its first to its last event.
    skip
        Where to look on after a match: behind it (``"past last row"``), or at the event after its first
        (``"to next row"``), so that matches overlap.
    where
        Which events the rule sees at all.
    windows
        Named windows, for conditions such as ``value > avg(value) OVER name``.
    """

    name: str
    pattern: str
    define: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, str] = field(default_factory=dict)
    within: Duration | None = None
    skip: Skip = "past last row"
    where: str | None = None
    windows: Mapping[str, Frame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        program = compile_pattern(self.pattern)
        object.__setattr__(self, "pattern", " ".join(self.pattern.split()))
        if self.within is not None:
            object.__setattr__(self, "within", f"{microseconds(self.within)} microseconds")
        if self.skip not in get_args(Skip):
            raise InvalidArgumentError(f"skip is one of {', '.join(get_args(Skip))}; got {self.skip!r}.")
        _normalise(self, "define")
        _normalise(self, "measures")
        _check_where(self)
        used = [part.table for text in self.measures.values() for part in walk(parse_expression(text), "column")]
        for variable in [*self.define, *filter(None, used)]:
            if variable not in program.variables:
                raise UnknownNameError(f"variable in the pattern of rule {self.name!r}", variable, program.variables)
        for variable, text in self.define.items():
            if any(part.table for part in walk(parse_expression(text), "column")):
                raise InvalidArgumentError(
                    f"Rule {self.name!r} defines {variable} by another variable's event: {text}. A condition may look "
                    "at its own event, at PREV(…), and at windows; compare events of a match in a stage behind it.",
                    rule=self.name,
                )

    @property
    def texts(self) -> list[str]:
        """All expressions that may look at windows."""
        return list(self.define.values())


Rule: TypeAlias = WindowRule | PatternRule


def _normalise(rule: Rule, name: str) -> None:
    given = getattr(rule, name)
    if isinstance(given, str):
        object.__setattr__(rule, name, normal(given))
    elif given is not None:
        object.__setattr__(rule, name, {called: normal(text) for called, text in given.items()})


def _check_where(rule: Rule) -> None:
    _normalise(rule, "where")
    if rule.where and any(walk(parse_expression(rule.where), "window")):
        raise InvalidArgumentError(
            f"Rule {rule.name!r} looks at a window in WHERE, which chooses the events that windows are made of. Put "
            f"the condition into QUALIFY: {rule.where}",
            rule=rule.name,
        )
    for text in rule.texts:
        for window in walk(parse_expression(text), "window"):
            called = window.args.get("alias")
            if called and called.name not in rule.windows:
                raise UnknownNameError("window", called.name, rule.windows)
