"""Combining before the shuffle: tuples are lifted to partial states where they are, and only those travel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.hashing import hash_keys
from evenkeel.operators import NEVER, NO_WATERMARK, Groups, Moment, RowCodec
from evenkeel.operators.mergeable import sql_name, sql_of_lift
from evenkeel.operators.split import PART, Merged, MergedColumns, part_columns
from evenkeel.spark.times import LATE, TIME, event_times
from evenkeel.spark.types import spark_type
from evenkeel.spark.worker import promptly
from evenkeel.state import second_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from evenkeel.operators import Mergeable, Operator

__all__ = ["TUPLES", "Combining", "Form"]

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
class Combining:
    """How the tuples of a stage are combined.

    Where the operator's ``lift`` can be said in SQL, Spark's own aggregation does it, and no tuple comes to Python.

    Parameters
    ----------
    operator
        What to lift with.
    key_names, rows
        The key columns, and all columns.
    event_time
        The column of event times, if there is one.
    """

    operator: Mergeable
    key_names: tuple[str, ...]
    rows: pa.Schema
    event_time: str | None

    def form(self) -> Form:
        """What the stage is when it gets partial states."""
        keys = [self.rows.field(name) for name in self.key_names]
        if self._sql() is None:
            columns = [(PART, pa.binary()), (TUPLES, pa.int64()), (TIME, pa.int64()), (LATE, pa.int64())]
            time = None if self.event_time is None else TIME
            return Form(Merged(self.operator, self.rows), pa.schema([*keys, *columns]), time)
        states = self.operator.state_schema(self.rows)
        named = zip(part_columns(states), states.types, strict=True)
        columns = [*named, (TUPLES, pa.int64())]
        if self.event_time is not None:
            columns.append((_NEWEST, self.rows.field(self.event_time).type))
        time = None if self.event_time is None else _NEWEST
        return Form(MergedColumns(self.operator, self.rows), pa.schema([*keys, *columns]), time)

    def combine(self, rows: DataFrame, now: Moment) -> tuple[DataFrame, list[str]]:
        """Give partial states instead of tuples, and what to select of them: a step less than to do so here."""
        from pyspark.sql import functions as F

        sql = self._sql()
        if sql is None:
            lift = _Lift(self.operator, self.key_names, self.rows, self.event_time, now)
            parts = self.form().rows
            lifted = rows.selectExpr(*map(sql_name, self.rows.names)).mapInArrow(lift, spark_type(parts))
            return lifted, list(map(sql_name, parts.names))
        states = self.operator.state_schema(self.rows)
        columns = {name: sql[state] for name, state in zip(part_columns(states), states.names, strict=True)}
        columns[TUPLES] = "count(1)"
        if self.event_time is not None:
            columns[_NEWEST] = f"max({sql_name(self.event_time)})"
        found = F.expr(f"struct({', '.join(f'{text} AS {name}' for name, text in columns.items())}) AS {PART}")
        keys = [sql_name(name) for name in self.key_names]
        return rows.groupBy(*keys).agg(found), [*keys, f"{PART}.*"]

    def _sql(self) -> dict[str, str] | None:
        """The lift in SQL, where there is one, and Spark takes the same keys for equal as we do."""
        keys = [self.rows.field(name).type for name in self.key_names]
        if any(pa.types.is_floating(kind) or pa.types.is_nested(kind) for kind in keys):
            return None
        return sql_of_lift(self.operator, self.rows)


@dataclass(frozen=True)
class _Lift:
    """Lift the tuples of a task to one partial state per key, before they are shuffled.

    With each go the number of its tuples, its newest event time, and on the first row how many tuples came late.

    Parameters
    ----------
    operator
        What to lift with.
    key_names, rows
        The key columns, and all columns.
    event_time
        The column of event times, if there is one.
    now
        When the batch is processed.
    at_once
        How many tuples to combine together, at most; more save shuffling and take memory.
    """

    operator: Mergeable
    key_names: tuple[str, ...]
    rows: pa.Schema
    event_time: str | None
    now: Moment
    at_once: int = 1_000_000

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give keys and encoded states."""
        waiting: list[pa.RecordBatch] = []
        for batch in promptly(batches):
            waiting.append(batch)
            if sum(part.num_rows for part in waiting) >= self.at_once:
                yield from self._combine(waiting)
                waiting = []
        if waiting:
            yield from self._combine(waiting)

    def _combine(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(batches).cast(self.rows)
        columns = [rows[name] for name in self.key_names]
        times = event_times(rows, self.event_time)
        hashes = hash_keys(*columns)
        groups = Groups.of(rows, self.key_names, hashes, second_hash(*columns), times=times, now=self.now)
        codec = RowCodec(self.operator.state_schema(self.rows))
        states = self.operator.lift(groups).cast(codec.schema)
        out = groups.keys.append_column(PART, codec.encode(states).cast(pa.binary()))
        newest = np.full(len(groups), NO_WATERMARK)
        if times is not None:
            np.maximum.at(newest, groups.key_of, np.where(times == NEVER, NO_WATERMARK, times))
        late = np.zeros(len(groups), np.int64)
        late[:1] = self.operator.late(groups)
        for name, column in ((TUPLES, groups.counts), (TIME, newest), (LATE, late)):
            out = out.append_column(name, pa.array(column))
        yield from out.to_batches()
