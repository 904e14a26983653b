"""Adding up a column per key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnsupportedTypeError
from evenkeel.operators.mergeable import Mergeable

if TYPE_CHECKING:
    from evenkeel.operators.groups import Groups

__all__ = ["Total"]


@dataclass(frozen=True)
class Total(Mergeable):
    """Add up a column for each key, nulls left out; the result is each touched key's total so far.

    Whole numbers give a long, as in Spark, and wrap around beyond it; floats give a double.

    Parameters
    ----------
    column
        What to add up.
    """

    name = "total"
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

    def lift(self, groups: Groups) -> pa.Table:
        """Add up the tuples of each key."""
        kind = self.state_schema(groups.rows.schema).field("total").type
        values = pc.cast(groups.rows[self.column], kind)
        sums = np.zeros(len(groups), kind.to_pandas_dtype())
        np.add.at(sums, groups.key_of, pc.fill_null(values, 0).to_numpy())
        return pa.table({"total": sums})

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Add up."""
        return pa.table({"total": pc.add(pc.fill_null(left["total"], 0), pc.fill_null(right["total"], 0))})

    def results(self, states: pa.Table) -> tuple[pa.Table, None]:
        """The total itself."""
        return states, None
