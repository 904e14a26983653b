"""SQL text to syntax trees, by sqlglot, and what is wrong with it in this project's words."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot.expressions import Expression

__all__ = ["columns_of", "normal", "parse", "parse_expression", "refuse_all_but", "walk"]

DIALECT = "databricks"
"""Spark's SQL with MATCH_RECOGNIZE and QUALIFY."""


def parse(text: str) -> Expression:
    """Parse one statement."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        found: Any = sqlglot.parse_one(text, read=DIALECT)
    except SqlglotError as error:
        facts: dict[str, Any] = next(iter(getattr(error, "errors", None) or []), {})
        where = f" at line {facts['line']}, near {facts['highlight']!r}" if facts.get("line") else ""
        raise InvalidArgumentError(f"This is no SQL{where}: {text.strip()}", text=text) from error
    return found


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> Expression:
    """Parse one expression; the tree is shared, so leave it as it is."""
    select = parse(f"SELECT {text}")
    parts = select.expressions
    if select.key != "select" or len(parts) != 1 or parts[0].key == "alias" or set(_given(select)) != {"expressions"}:
        raise InvalidArgumentError(f"This is not one SQL expression: {text}", text=text)
    found: Expression = parts[0]
    return found


def normal(text: str) -> str:
    """Write an expression in one fixed way, so that equal expressions are equal text."""
    return parse_expression(text).sql(DIALECT)


def refuse_all_but(node: Expression, allowed: set[str], what: str) -> None:
    """Complain about any clause of a statement that is not among those allowed."""
    for clause in _given(node):
        if clause not in allowed:
            name = clause.strip("_").replace("_", " ").upper()
            raise InvalidArgumentError(f"{what} has no {name}: {node.sql(DIALECT)}", clause=name)


def walk(node: Expression, key: str) -> Iterator[Any]:
    """Give all parts of a tree of one kind, by sqlglot's name for it."""
    return (part for part in node.walk() if part.key == key)


def columns_of(node: Expression | None) -> set[str]:
    """Name the columns that an expression looks at."""
    return set() if node is None else {part.name for part in walk(node, "column") if part.name != "*"}


def _given(node: Expression) -> list[str]:
    return [clause for clause, value in node.args.items() if value]
