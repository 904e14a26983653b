"""Adding up a column per key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnsupportedTypeError
from evenkeel.operators.base import Operator, Update

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["Total"]


@dataclass(frozen=True)
class Total(Operator):
    """Add up a column for each key, nulls left out; the result is each touched key's total so far.

    Whole numbers give a long, as in Spark, and wrap around beyond it; floats give a double.

    Parameters
    ----------
    column
        What to add up.
    """

    name = "total"
    merges = True
    column: str

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """Just the one."""
        return [self.column]

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """One number."""
        if self.column not in rows.names:
            raise InvalidArgumentError(
                f"There is no column {self.column!r} to add up. Columns: {', '.join(rows.names)}.", column=self.column
            )
        kind = rows.field(self.column).type
        if pa.types.is_integer(kind):
            return pa.schema([("total", pa.int64())])
        if pa.types.is_floating(kind):
            return pa.schema([("total", pa.float64())])
        raise UnsupportedTypeError(f"Column {self.column!r} has type {kind}; only numbers can be added up.")

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """One number."""
        return self.state_schema(rows)

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Add each key's sum."""
        schema = states.schema
        kind = schema.field("total").type
        values = pc.cast(groups.rows[self.column], kind)
        sums = np.zeros(len(groups), kind.to_pandas_dtype())
        np.add.at(sums, groups.key_of, pc.fill_null(values, 0).to_numpy())
        table = pa.table([pc.add(pc.fill_null(states["total"], 0), pa.array(sums))], schema=schema)
        return Update(table, table)
