"""A mergeable operator in two halves: partial states here and there, and one place where they come together.

Splitting a key over channels, and combining before the shuffle, are both this: the first half lifts tuples to states
and hands the states on, the second merges them into the key's state and gives the results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.operators.base import Operator, Update
from evenkeel.operators.codec import RowCodec
from evenkeel.operators.groups import NEVER
from evenkeel.operators.mergeable import Mergeable, fold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.base import Clock
    from evenkeel.operators.groups import Groups

__all__ = ["PART", "Merged", "MergedColumns", "Partial", "part_columns"]

PART = "__evenkeel_part"
"""The column of encoded partial states."""
_DUE = "__evenkeel_due"


@dataclass(frozen=True)
class Partial(Operator):
    """The first half: keep each key's partial state, and hand it on every so often.

    Parameters
    ----------
    operator
        The whole.
    every
        After how much of its clock a partial state is handed on; 1 batch keeps nothing.
    clock
        Whether ``every`` counts batches or microseconds of the driver's time.
    """

    name = "partial"
    merges = True
    operator: Mergeable
    every: int = 1
    clock: Clock = "batch"

    @property
    def wakes_by(self) -> Clock | None:  # type: ignore[override]
        """The clock, unless every batch hands on all."""
        return None if self._hands_on_at_once else self.clock

    @property
    def needs_event_time(self) -> bool:  # type: ignore[override]
        """As the whole."""
        return self.operator.needs_event_time

    @property
    def _hands_on_at_once(self) -> bool:
        return self.clock == "batch" and self.every == 1

    def columns(self, rows: pa.Schema) -> list[str]:
        """As the whole."""
        return self.operator.columns(rows)

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The whole's, and when it is due."""
        return self.operator.state_schema(rows).append(pa.field(_DUE, pa.int64()))

    def output_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """One encoded state."""
        return pa.schema([(PART, pa.binary())])

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Merge states; what was due first stays due then."""
        merged = self.operator.merge(left.drop_columns(_DUE), right.drop_columns(_DUE))
        return merged.append_column(_DUE, pc.min_element_wise(left[_DUE], right[_DUE]))

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:
        """Merge, and hand on what is due."""
        parts = states.drop_columns(_DUE)
        lifted = self.operator.lift(groups).cast(parts.schema)
        if self._hands_on_at_once:
            merged, now_due = lifted, np.ones(len(groups), bool)
            due = np.full(len(groups), NEVER)
        else:
            merged = self.operator.merge(parts, lifted).cast(parts.schema)
            now = groups.now.batch if self.clock == "batch" else groups.now.time
            following = (now // self.every + 1) * self.every - (1 if self.clock == "batch" else 0)
            due = np.where(known, pc.fill_null(states[_DUE], 0).to_numpy(), following)
            now_due = due <= now
        outputs = pa.table({PART: RowCodec(parts.schema).encode(merged.filter(pa.array(now_due))).cast(pa.binary())})
        return Update(
            merged.append_column(_DUE, pa.array(due)),
            outputs,
            key_of_outputs=np.flatnonzero(now_due),
            keep=~now_due,
            wake=due,
            late=self.operator.late(groups),
        )


@dataclass(frozen=True)
class Merged(Operator):
    """The second half: merge partial states into the key's state, which is the same as the whole operator keeps.

    Parameters
    ----------
    operator
        The whole.
    rows
        The columns of the tuples that the whole is about.
    """

    name = "merged"
    operator: Mergeable
    rows: pa.Schema

    @property
    def wakes_by(self) -> Clock | None:  # type: ignore[override]
        """As the whole."""
        return self.operator.wakes_by

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """The encoded states."""
        return [PART]

    def state_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """As the whole."""
        return self.operator.state_schema(self.rows)

    def output_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """As the whole."""
        return self.operator.output_schema(self.rows)

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Merge what came into what is there."""
        parts = RowCodec(states.schema).decode(groups.rows[PART])
        arrived = fold(self.operator, parts, groups.key_of, len(groups))
        return self.operator.settle(groups, self.operator.merge(states, arrived))


@dataclass(frozen=True)
class MergedColumns(Mergeable):
    """The whole, over partial states that come as columns, one for each column of the state.

    Parameters
    ----------
    operator
        The whole.
    rows
        The columns of the tuples that the whole is about.
    """

    name = "merged_columns"
    operator: Mergeable
    rows: pa.Schema

    @property
    def wakes_by(self) -> Clock | None:  # type: ignore[override]
        """As the whole."""
        return self.operator.wakes_by

    @property
    def any_order(self) -> bool:  # type: ignore[override]
        """As the whole."""
        return self.operator.any_order

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """The columns of the states."""
        return [field.name for field in self.part_fields()]

    def state_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """As the whole."""
        return self.operator.state_schema(self.rows)

    def output_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """As the whole."""
        return self.operator.output_schema(self.rows)

    def part_fields(self) -> list[pa.Field]:
        """In which columns those of a state travel."""
        states = self.operator.state_schema(self.rows)
        return [pa.field(name, kind) for name, kind in zip(part_columns(len(states)), states.types, strict=True)]

    def lift(self, groups: Groups) -> pa.Table:
        """Merge the states that came of each key."""
        states = self.operator.state_schema(self.rows)
        parts = groups.rows.select(part_columns(len(states))).rename_columns(states.names).cast(states)
        merged = fold(self.operator, parts, groups.key_of, len(groups))
        if groups.counts.all():
            return merged
        # Of a key of which none came, nulls; what the whole takes for the state of no tuples, its merge knows.
        return self.operator.merge(merged, states.empty_table().take(pa.nulls(len(groups), pa.int64()))).cast(states)

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """As the whole."""
        return self.operator.merge(left, right)

    def results(self, states: pa.Table) -> tuple[pa.Table, NDArray[np.int64] | None]:
        """As the whole."""
        return self.operator.results(states)

    def settle(self, groups: Groups, states: pa.Table) -> Update:
        """As the whole."""
        return self.operator.settle(groups, states)


def part_columns(number: int) -> list[str]:
    """Name the columns in which the columns of a partial state travel."""
    return [f"{PART}_{column}" for column in range(number)]
