"""List columns by their elements, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray


__all__ = ["group_pairs", "nest", "struct_column", "table_of", "unnest"]


def unnest(column: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], pa.Table]:
    """Give the elements of all lists, which are structs, as a table, and for each of them its list's row."""
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    counts = lists.value_lengths().fill_null(0).to_numpy()
    return np.repeat(np.arange(len(lists)), counts), table_of(lists.flatten())


def nest(row_of: NDArray[np.int64], elements: pa.Table, rows: int) -> pa.ListArray:
    """Give lists of structs, one per row; elements are sorted by ``row_of``. A row without elements is empty."""
    ends = np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=rows))])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), struct_column(elements))


def struct_column(table: pa.Table) -> pa.StructArray:
    """Give the rows of a table as structs."""
    return pa.StructArray.from_arrays([column.combine_chunks() for column in table.columns], fields=list(table.schema))


def table_of(structs: pa.ChunkedArray | pa.StructArray) -> pa.Table:
    """Give structs, none of them null, as the rows of a table."""
    array = structs.combine_chunks() if isinstance(structs, pa.ChunkedArray) else structs
    return pa.table([array.field(i) for i in range(array.type.num_fields)], schema=pa.schema(list(array.type)))


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
