"""Small steps between rows that lie key after key and where each key's lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.operators.ragged import nest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["after", "keep_rows", "kept_type", "one_chunk", "spans", "starts_of"]


def kept_type(fields: Iterable[pa.Field]) -> pa.DataType:
    """Give the type of a state column that keeps rows of these fields."""
    return pa.list_(pa.struct(list(fields)))


def keep_rows(rows: pa.Table, counts: NDArray[np.int64]) -> pa.ListArray:
    """Give each key its rows as a list; they lie key after key."""
    return nest(np.repeat(np.arange(len(counts)), counts), rows, len(counts))


def starts_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give where the rows of each key start, and one more at the end."""
    return np.concatenate([[0], np.cumsum(counts)])


def spans(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give ``starts[i], starts[i] + 1, …``, ``counts[i]`` of them, one span after the other."""
    return np.arange(counts.sum()) + np.repeat(starts - starts_of(counts)[:-1], counts)


def after(
    before: pa.Table, came: pa.Table, old: NDArray[np.int64], new: NDArray[np.int64]
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Put each key's new rows behind its old ones; both lie key after key. Gives them, and where each key's start."""
    starts = starts_of(old + new)
    order = np.empty(starts[-1], np.int64)
    order[spans(starts[:-1], old)] = np.arange(len(before))
    order[spans(starts[:-1] + old, new)] = len(before) + np.arange(len(came))
    return pa.concat_tables([before, came]).take(pa.array(order)), starts


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Give a column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
