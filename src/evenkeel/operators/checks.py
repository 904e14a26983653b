"""What operators ask of their options and of the columns of tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["at_least", "flat_field", "number_type", "reserved"]


def flat_field(rows: pa.Schema, column: str) -> pa.Field:
    """Give a column of tuples; raises if it is not there, or is nested."""
    if column not in rows.names:
        raise UnknownNameError("column", column, rows.names)
    field = rows.field(column)
    if pa.types.is_nested(field.type) or pa.types.is_dictionary(field.type):
        raise UnsupportedTypeError(
            f"Column {column!r} has type {field.type}; only plain values can be told apart here. Give it as text or "
            "binary.",
            column=column,
        )
    return field


def number_type(rows: pa.Schema, column: str) -> pa.DataType:
    """Give the type in which a numeric column is kept: a long, or a double."""
    kind = flat_field(rows, column).type
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    raise UnsupportedTypeError(f"Column {column!r} has type {kind}; it must hold numbers.", column=column)


def at_least(what: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(
            f"{what} must be a whole number of at least {least}; got {value!r}.", what=what, value=value
        )


def reserved(names: Sequence[str], taken: Sequence[str]) -> None:
    """Refuse columns whose names the results need."""
    for name in names:
        if name in taken:
            raise InvalidArgumentError(
                f"A column called {name!r} would clash with the result columns {', '.join(taken)}. Rename it.",
                column=name,
            )
