"""List columns by their elements, and back: how operators work on states that hold many things."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = [
    "ROW",
    "after",
    "codes_of",
    "distinct",
    "entries_of",
    "group_pairs",
    "keep_rows",
    "kept_of",
    "kept_type",
    "largest",
    "nest",
    "nest_entries",
    "one_chunk",
    "ranks",
    "spans",
    "starts_of",
    "struct_column",
    "table_of",
    "unnest",
]

ROW = "row"
"""The column of entries that says to which state each belongs."""


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Give a column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def starts_of(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Give where the elements of each row start, and one more at the end."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def spans(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give ``starts[i], starts[i] + 1, …``, ``counts[i]`` of them, one span after the other."""
    return np.arange(counts.sum()) + np.repeat(starts - starts_of(counts)[:-1], counts)


def unnest(column: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], pa.Table]:
    """Give the elements of all lists, which are structs, as a table, and for each of them its list's row."""
    counts, elements = kept_of(column)
    return np.repeat(np.arange(len(counts)), counts), elements


def nest(row_of: NDArray[np.int64], elements: pa.Table, rows: int) -> pa.ListArray:
    """Give lists of structs, one per row; elements are sorted by ``row_of``. A row without elements is empty."""
    return keep_rows(elements, np.bincount(row_of, minlength=rows))


def keep_rows(elements: pa.Table, counts: NDArray[np.int64]) -> pa.ListArray:
    """Give lists of structs, each of so many elements; these lie row after row."""
    return pa.ListArray.from_arrays(pa.array(starts_of(counts), pa.int32()), struct_column(elements))


def kept_of(column: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], pa.Table]:
    """Undo :func:`keep_rows`: give how many elements each list has, and the elements."""
    lists = one_chunk(column)
    return lists.value_lengths().fill_null(0).to_numpy().astype(np.int64), table_of(lists.flatten())


def kept_type(fields: Iterable[pa.Field]) -> pa.DataType:
    """Give the type of a state column that keeps rows of these fields."""
    return pa.list_(pa.struct(list(fields)))


def entries_of(column: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Give the elements of a column of lists of structs: :data:`ROW`, and the structs' fields."""
    row_of, elements = unnest(column)
    return elements.add_column(0, ROW, pa.array(row_of))


def nest_entries(entries: pa.Table, rows: int) -> pa.ListArray:
    """Undo :func:`entries_of`, for entries sorted by row; an empty list for a row without entries."""
    return nest(entries[ROW].to_numpy(), entries.drop_columns(ROW), rows)


def struct_column(table: pa.Table) -> pa.StructArray:
    """Give the rows of a table as structs."""
    return pa.StructArray.from_arrays([one_chunk(column) for column in table.columns], fields=list(table.schema))


def table_of(structs: pa.ChunkedArray | pa.StructArray) -> pa.Table:
    """Give structs, none of them null, as the rows of a table."""
    array = one_chunk(structs)
    return pa.table([array.field(i) for i in range(array.type.num_fields)], schema=pa.schema(list(array.type)))


def after(
    before: pa.Table, came: pa.Table, old: NDArray[np.int64], new: NDArray[np.int64]
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Put each key's new rows behind its old ones; both lie key after key. Gives them, and where each key's start."""
    from evenkeel.operators import _kernels

    starts = starts_of(old + new)
    order = _kernels.interleave(old, new)
    return pa.concat_tables([before, came]).take(pa.array(order)), starts


def ranks(row_of: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Number the entries of each row from 0, of entries sorted by row."""
    return np.arange(len(row_of)) - starts_of(np.bincount(row_of, minlength=rows))[row_of]


def largest(row_of: NDArray[np.int64], values: NDArray[Any], k: int, rows: int) -> NDArray[np.int64]:
    """Give the places of the entries that are no less than the k-th largest of their row, in no particular order.

    O(n) for a single row, else O(n log n).
    """
    if rows == 1:
        if len(values) <= k:
            return np.arange(len(values))
        return np.flatnonzero(values >= np.partition(values, len(values) - k)[len(values) - k])
    order = np.lexsort((values, row_of))
    ends = starts_of(np.bincount(row_of, minlength=rows))
    least = order[np.maximum(ends[1:] - k, ends[:-1])[row_of]]
    return np.flatnonzero(values >= values[least])


def distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the different values, rising, and where each value is among them; as ``np.unique``, by hashing. O(n)."""
    found, (codes,) = codes_of(pa.array(values))
    return found.to_numpy(), codes


def codes_of(*columns: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, list[NDArray[np.int64]]]:
    """Number the different values of columns of one type, rising, and give each column's numbers; no nulls."""
    encoded = pa.concat_arrays([one_chunk(column) for column in columns]).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    codes = places[encoded.indices.to_numpy()]
    ends = np.cumsum([len(column) for column in columns])
    return encoded.dictionary.take(pa.array(order)), np.split(codes, ends[:-1])


def group_pairs(
    key_of: NDArray[np.int64], numbers: NDArray[np.int64], keys: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Tell pairs of key and number apart.

    Gives the group of each pair, and the key and the number of each group; groups are sorted by key, then number. O(n)
    where numbers are close together, O(n log n) otherwise.
    """
    least = int(numbers.min()) if len(numbers) else 0
    span = int(numbers.max()) - least + 1 if len(numbers) else 1
    if keys * span <= 16 * len(numbers) + 1024:
        codes = key_of * span + (numbers - least)
        there = np.zeros(keys * span, bool)
        there[codes] = True
        found = np.flatnonzero(there)
        place = np.cumsum(there) - 1
        return place[codes], found // span, found % span + least
    order = np.lexsort((numbers, key_of))
    sorted_keys, sorted_numbers = key_of[order], numbers[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(sorted_keys) != 0) | (np.diff(sorted_numbers) != 0)
    group_of = np.empty(len(order), np.int64)
    group_of[order] = np.cumsum(begins) - 1
    return group_of, sorted_keys[begins], sorted_numbers[begins]
