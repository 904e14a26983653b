"""Counting tuples per key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.operators.base import Operator, Update

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["Count"]


@dataclass(frozen=True)
class Count(Operator):
    """Count the tuples of each key; the result is each touched key's count so far.

    Parameters
    ----------
    called
        Name of the result column.
    """

    name = "count"
    merges = True
    called: str = "count"

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """None."""
        return []

    def state_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """One number."""
        return pa.schema([(self.called, pa.int64())])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """One number."""
        return self.state_schema(rows)

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Add the number of tuples of each key."""
        counts = pc.add(pc.fill_null(states[self.called], 0), pa.array(groups.counts))
        table = pa.table([counts], schema=states.schema)
        return Update(table, table)
