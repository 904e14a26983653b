"""What the aggregates of a column share: looking it up, and putting its values in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import UnknownNameError, UnsupportedTypeError
from evenkeel.operators.mergeable import Mergeable, sql_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OfColumn", "comes_before", "order_codes", "valid_of"]


class OfColumn(Mergeable):
    """An aggregate of one column, nulls left out; the result column has the aggregate's name."""

    column: str

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """Just the one."""
        return [self.column]

    @property
    def sql_column(self) -> str:
        """The column as SQL names it."""
        return sql_name(self.column)

    def type_in(self, rows: pa.Schema) -> pa.DataType:
        """Give the type of the column; raises if there is none."""
        if self.column not in rows.names:
            raise UnknownNameError("column", self.column, rows.names)
        return rows.field(self.column).type

    def number_in(self, rows: pa.Schema) -> pa.DataType:
        """Give long for whole numbers and double for floats; raises for all else."""
        kind = self.type_in(rows)
        if pa.types.is_integer(kind):
            return pa.int64()
        if pa.types.is_floating(kind):
            return pa.float64()
        raise UnsupportedTypeError(
            f"Column {self.column!r} has type {kind}; {type(self).__name__} takes whole numbers and floats. Cast it.",
            column=self.column,
        )


def valid_of(column: pa.ChunkedArray | pa.Array) -> NDArray[np.bool_]:
    """Which values are not null."""
    return column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else np.ones(len(column), bool)


def order_codes(column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Give numbers that are ordered as the values are; anything for nulls.

    Text and binary are ordered by their bytes, false is before true, −0.0 before 0.0, and NaN after all numbers, as
    in Spark. Codes of different columns have nothing in common, unless they hold numbers or times of one type.
    """
    kind = column.type
    if pa.types.is_floating(kind):
        return _float_codes(pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False))
    if pa.types.is_uint64(kind):
        return (pc.fill_null(column, 0).to_numpy(zero_copy_only=False) ^ np.uint64(1 << 63)).view(np.int64)
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_integer(column.type) or pa.types.is_boolean(kind):
        return pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode()
    rank = np.zeros(max(1, len(encoded.dictionary)), np.int64)
    rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    return rank[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]


def _float_codes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bits of a float are ordered as it is, but for those of a negative one, which are turned around."""
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)


def comes_before(left: pa.ChunkedArray, right: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Whether each left value is strictly before the right one, in the order of :func:`order_codes`; not for nulls."""
    if pa.types.is_floating(left.type):
        return (order_codes(left) < order_codes(right)) & valid_of(left) & valid_of(right)
    return pc.fill_null(pc.less(left, right), False).to_numpy(zero_copy_only=False)
