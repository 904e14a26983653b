"""Tuples lifted to partial states: before the shuffle, so that only those travel, or as tuples come after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.operators import NEVER, NO_WATERMARK, Groups, Moment
from evenkeel.operators.mergeable import sql_name, sql_of_lift
from evenkeel.operators.split import MergedColumns, Partial, part_columns
from evenkeel.spark.times import LATE, TIME, event_times
from evenkeel.state import both_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from evenkeel.operators import Mergeable, Operator
    from evenkeel.spark.steps import Steps

__all__ = ["TUPLES", "Combining", "Form", "Lift"]

TUPLES = "__evenkeel_tuples"
"""How many tuples a partial state is of."""
_NEWEST = "__evenkeel_newest"


@dataclass(frozen=True, slots=True)
class Form:
    """What a stage is to its tasks: an operator over rows."""

    operator: Operator
    rows: pa.Schema
    event_time: str | None


@dataclass(frozen=True, slots=True)
class Lift:
    """Makes one partial state of all tuples of a key.

    With each go the number of its tuples, its newest event time, and on the first row how many tuples came late.

    Parameters
    ----------
    operator
        What to lift with: one whose states merge, or the first half of one.
    key_names, rows
        The key columns, and all columns.
    event_time
        The column of event times, if there is one.
    now
        When the batch is processed.
    """

    operator: Mergeable | Partial
    key_names: tuple[str, ...]
    rows: pa.Schema
    event_time: str | None
    now: Moment

    @property
    def whole(self) -> Mergeable:
        """The operator whose states these are."""
        return self.operator.operator if isinstance(self.operator, Partial) else self.operator

    @property
    def form(self) -> Form:
        """What a stage is that gets partial states."""
        keys = [self.rows.field(name) for name in self.key_names]
        merged = MergedColumns(self.whole, self.rows)
        after = replace(self.operator, operator=merged) if isinstance(self.operator, Partial) else merged
        columns = [*merged.part_fields(), (TUPLES, pa.int64()), (TIME, pa.int64()), (LATE, pa.int64())]
        return Form(after, pa.schema([*keys, *columns]), None if self.event_time is None else TIME)

    def __call__(self, rows: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
        """Give the states, and the hash of each one's key."""
        times = event_times(rows, self.event_time)
        hashes, hashes2 = both_hashes(*(rows[name] for name in self.key_names))
        groups = Groups.of(rows, self.key_names, hashes, hashes2, times=times, now=self.now, slots=None)
        newest = np.full(len(groups), NO_WATERMARK)
        if times is not None:
            np.maximum.at(newest, groups.key_of, np.where(times == NEVER, NO_WATERMARK, times))
        late = np.zeros(len(groups), np.int64)
        late[:1] = self.whole.late(groups)
        return self._told(groups, self.whole.lift(groups), groups.counts, newest, late), groups.hashes

    def gather(self, parts: pa.Table) -> pa.Table:
        """Merge what several calls gave, so that each key has one state again."""
        hashes, hashes2 = both_hashes(*(parts[name] for name in self.key_names))
        groups = Groups.of(parts, self.key_names, hashes, hashes2, now=self.now, slots=None)
        tuples, late, newest = (np.full(len(groups), least) for least in (0, 0, NO_WATERMARK))
        np.add.at(tuples, groups.key_of, parts[TUPLES].to_numpy())
        np.add.at(late, groups.key_of, parts[LATE].to_numpy())
        np.maximum.at(newest, groups.key_of, parts[TIME].to_numpy())
        return self._told(groups, MergedColumns(self.whole, self.rows).lift(groups), tuples, newest, late)

    def _told(self, groups: Groups, states: pa.Table, *counted: NDArray[np.int64]) -> pa.Table:
        states = states.cast(self.whole.state_schema(self.rows))
        return pa.table([*groups.keys.columns, *states.columns, *map(pa.array, counted)], schema=self.form.rows)


@dataclass(frozen=True, slots=True)
class Combining:
    """Tuples lifted before the shuffle.

    Parameters
    ----------
    lift
        What makes partial states.
    in_python
        Whether Python workers do so. Else, where it can be said in SQL, Spark's own aggregation does, and no tuple
        comes to Python.
    """

    lift: Lift
    in_python: bool = False

    @property
    def form(self) -> Form:
        """What the stage is when it gets partial states."""
        if self._sql() is None:
            return self.lift.form
        keys, time = list(self.lift.key_names), self.lift.event_time
        newest = [] if time is None else [(_NEWEST, self.lift.rows.field(time).type)]
        merged = MergedColumns(self.lift.whole, self.lift.rows)
        columns = [*map(self.lift.rows.field, keys), *merged.part_fields(), (TUPLES, pa.int64()), *newest]
        return Form(merged, pa.schema(columns), None if time is None else _NEWEST)

    def states_in_sql(self, rows: DataFrame, steps: Steps, place: str | None = None) -> DataFrame | None:
        """Give the states as Spark makes them, if it can, each with what is computed from its key, if asked for."""
        sql = self._sql()
        if sql is None:
            return None
        states = self.lift.whole.state_schema(self.lift.rows).names
        made = {name: sql[state] for name, state in zip(part_columns(len(states)), states, strict=True)}
        made[TUPLES] = "count(1)"
        if self.lift.event_time is not None:
            made[_NEWEST] = f"max({sql_name(self.lift.event_time)})"
        found = [f"{text} AS {name}" for name, text in made.items()] + ([] if place is None else [place])
        return steps.aggregate(rows, list(map(sql_name, self.lift.key_names)), *found)

    def _sql(self) -> dict[str, str] | None:
        """The lift in SQL, where there is one, and Spark takes the same keys for equal as we do."""
        keys = [self.lift.rows.field(name).type for name in self.lift.key_names]
        if self.in_python or any(pa.types.is_floating(kind) or pa.types.is_nested(kind) for kind in keys):
            return None
        return sql_of_lift(self.lift.whole, self.lift.rows)
