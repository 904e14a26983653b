"""List columns of structs as plain tables of entries, and back: how operators work on states that hold many things."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ROW = "row"
"""The column that says to which state an entry belongs."""


def unnest(column: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Give the entries of a column of lists of structs: :data:`ROW`, and the structs' fields."""
    column = one(column)
    entries = pa.Table.from_struct_array(pc.list_flatten(column))
    return entries.add_column(0, ROW, pc.list_parent_indices(column).cast(pa.int64()))


def nest(entries: pa.Table, rows: int) -> pa.ListArray:
    """Undo :func:`unnest`, for entries sorted by row; an empty list for a row without entries."""
    row_of = entries[ROW].to_numpy()
    fields = entries.drop_columns(ROW)
    structs = pa.StructArray.from_arrays([one(column) for column in fields.columns], fields=list(fields.schema))
    return pa.ListArray.from_arrays(pa.array(offsets(row_of, rows), pa.int32()), structs)


def one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Give a column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def offsets(row_of: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Give where each row's entries start, of entries sorted by row; one more at the end."""
    return np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=rows))])


def ranks(row_of: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Number the entries of each row from 0, of entries sorted by row."""
    return np.arange(len(row_of)) - offsets(row_of, rows)[row_of]


def largest(row_of: NDArray[np.int64], values: NDArray[Any], k: int, rows: int) -> NDArray[np.int64]:
    """Give the places of the entries that are no less than the k-th largest of their row, in no particular order.

    O(n) for a single row, else O(n log n).
    """
    if rows == 1:
        if len(values) <= k:
            return np.arange(len(values))
        return np.flatnonzero(values >= np.partition(values, len(values) - k)[len(values) - k])
    order = np.lexsort((values, row_of))
    ends = offsets(row_of, rows)
    least = order[np.maximum(ends[1:] - k, ends[:-1])[row_of]]
    return np.flatnonzero(values >= values[least])


def distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the different values, rising, and where each value is among them; as ``np.unique``, by hashing. O(n)."""
    encoded = pa.array(values).dictionary_encode()
    found = encoded.dictionary.to_numpy()
    order = np.argsort(found)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return found[order], places[encoded.indices.to_numpy()]


def codes_of(*columns: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, list[NDArray[np.int64]]]:
    """Number the different values of columns of one type, rising, and give each column's numbers; no nulls."""
    encoded = pa.concat_arrays([one(column) for column in columns]).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    codes = places[encoded.indices.to_numpy()]
    ends = np.cumsum([len(column) for column in columns])
    return encoded.dictionary.take(pa.array(order)), np.split(codes, ends[:-1])


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
