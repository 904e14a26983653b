"""Counting tuples per key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.operators.mergeable import Mergeable

if TYPE_CHECKING:
    from evenkeel.operators.groups import Groups

__all__ = ["Count"]


@dataclass(frozen=True)
class Count(Mergeable):
    """Count the tuples of each key; the result is each touched key's count so far.

    Parameters
    ----------
    called
        Name of the result column.
    """

    name = "count"
    any_order = True
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

    def lift(self, groups: Groups) -> pa.Table:
        """Count the tuples of each key."""
        return pa.table({self.called: groups.counts})

    def lift_sql(self, rows: pa.Schema) -> dict[str, str]:  # noqa: ARG002
        """The same in SQL."""
        return {self.called: "count(1)"}

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Add up."""
        counts = pc.add(pc.fill_null(left[self.called], 0), pc.fill_null(right[self.called], 0))
        return pa.table({self.called: counts})

    def results(self, states: pa.Table) -> tuple[pa.Table, None]:
        """The count itself."""
        return states, None
