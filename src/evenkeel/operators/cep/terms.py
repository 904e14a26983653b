"""What rules ask of windows: a function, its argument, and the stretch of events to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.operators.cep.expressions import Events, as_mask, evaluate_column, function_name, is_function
from evenkeel.operators.cep.language import frame_of
from evenkeel.operators.cep.rules import Frame, PatternRule
from evenkeel.operators.cep.syntax import DIALECT, parse_expression, walk
from evenkeel.operators.cep.windows import AGGREGATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evenkeel.operators.cep.rules import Rule
    from evenkeel.operators.cep.windows import WindowFunction

__all__ = ["Item", "Term", "terms_of"]


@dataclass(frozen=True, slots=True)
class Item:
    """What is kept of each event for windows to look at.

    Parameters
    ----------
    argument, condition
        SQL: the value, and which events have it; null for the others.
    function
        The function of the user's own that says what to keep of the value.
    """

    argument: str
    condition: str | None
    function: str | None

    def evaluate(self, rows: pa.Table, functions: Mapping[str, WindowFunction]) -> pa.Array:
        """Give the item of each event."""
        scope = Events(rows)
        values = evaluate_column(parse_expression(self.argument), scope)
        if self.condition is not None:
            values = pc.if_else(as_mask(parse_expression(self.condition), scope), values, pa.scalar(None, values.type))
        return functions[self.function].keep(values) if self.function else values


@dataclass(frozen=True, slots=True)
class Term:
    """One function over one window; without an item it counts events."""

    function: str
    item: Item | None
    frame: Frame


def terms_of(rule: Rule, functions: Mapping[str, WindowFunction]) -> dict[str, Term]:
    """Give what a rule asks of windows, by its SQL text."""
    found = {}
    for text in rule.texts:
        tree = parse_expression(text)
        for node in walk(tree, "window"):
            found[node.sql(DIALECT)] = _window_term(node, rule.windows, functions)
        if isinstance(rule, PatternRule):
            for node in walk(tree, "anonymous"):
                if node.name.lower() == "prev":
                    found[node.sql(DIALECT)] = _back(node, node.expressions)
    return found


def _window_term(node: Any, windows: Mapping[str, Frame], functions: Mapping[str, WindowFunction]) -> Term:
    called = node.args.get("alias")
    frame = windows[called.name] if called else frame_of(node)
    call, condition = node.this, None
    if call.key == "filter":
        call, condition = call.this, call.expression.this.sql(DIALECT)
    name = function_name(call) if is_function(call) else ""
    if name in functions:
        return Term(name, Item(_only(node, _arguments(call)), condition, name), frame)
    if call.key == "lag":
        return _back(node, [call.this, *filter(None, [call.args.get("offset")])])
    if call.key not in AGGREGATES:
        raise UnknownNameError("function over a window", name or call.sql(DIALECT), [*AGGREGATES, "lag", *functions])
    if call.key == "count" and call.this.key == "star":
        return Term("count", Item("TRUE", condition, None) if condition else None, frame)
    return Term(call.key, Item(_only(node, _arguments(call)), condition, None), frame)


def _back(node: Any, arguments: list[Any]) -> Term:
    """``LAG(x, n)`` and ``PREV(x, n)``: the value n events before."""
    how_far = arguments[1] if len(arguments) == 2 else None
    if not 1 <= len(arguments) <= 2 or (how_far is not None and not how_far.is_int):
        raise InvalidArgumentError(f"This takes a value and a whole number: {node.sql(DIALECT)}")
    events = int(how_far.name) if how_far is not None else 1
    return Term("firstvalue", Item(arguments[0].sql(DIALECT), None, None), Frame("rows", events, events))


def _arguments(call: Any) -> list[Any]:
    parts = [call.this, *call.expressions] if call.key != "anonymous" else call.expressions
    return [part for part in parts if part is not None]


def _only(node: Any, arguments: list[Any]) -> str:
    if len(arguments) != 1 or arguments[0].key == "distinct":
        raise InvalidArgumentError(f"A function over a window takes one argument: {node.sql(DIALECT)}")
    return str(arguments[0].sql(DIALECT))
