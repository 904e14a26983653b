"""What comes to a task of a keyed stage: state that moved, and tuples, taken as they are or lifted as they come."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.spark.columns import ORDER
from evenkeel.spark.homes import PLACE, ROWS, STATE, WIDTH
from evenkeel.spark.parcels import unpacked
from evenkeel.state import EXPORTED

if TYPE_CHECKING:
    from evenkeel.spark.combine import Lift

__all__ = ["Intake"]

_AT_ONCE = 8192
"""How many tuples are lifted together, at least, while others are still to come; Spark sends 10,000 at once."""


@dataclass(slots=True)
class Intake:
    """The input of one task.

    Parameters
    ----------
    tuples
        The columns of tuples.
    lift
        What makes partial states of them while others are still to come. So an operator that takes its time does not
        wait for Spark, which writes the next ones meanwhile, and no more of them are held than are being lifted.
    ordered
        Whether tuples carry the order of their arrival, and are to be put into it.
    """

    tuples: pa.Schema
    lift: Lift | None = None
    ordered: bool = False
    states: list[pa.RecordBatch] = field(default_factory=list)
    """What moved here."""
    row_bytes: float = 0.0
    """Of a tuple, among those that came together and were widest."""
    lifting_ms: float = 0.0
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _lifted: list[pa.Table] = field(default_factory=list)
    _failure: Exception | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that come with a tuple."""
        return self.tuples.append(pa.field(ORDER, pa.int64())) if self.ordered else self.tuples

    def take(self, batch: pa.RecordBatch) -> list[int]:
        """Tell home rows, moved state and tuples apart, keep the latter two, and give the marks of the first."""
        others = pc.less(batch.column(PLACE), 0)
        homes: list[int] = batch.column(PLACE).filter(others).to_pylist() if others.true_count else []
        if STATE in batch.schema.names:  # only where the table changed
            self.states += unpacked(batch.column(STATE), EXPORTED)
            others = pc.or_(others, batch.column(STATE).is_valid())
        if WIDTH in batch.schema.names:
            self.row_bytes = max(self.row_bytes, pc.max(batch.column(WIDTH)).as_py() or 0)
        if ROWS in batch.schema.names:
            for rows in unpacked(batch.column(ROWS), self.schema):
                self.add(rows)
            return homes
        if others.true_count:
            batch = batch.filter(pc.invert(others))
        self.add(batch.select(self.schema.names))
        return homes

    def add(self, batch: pa.RecordBatch) -> None:
        """Take tuples."""
        if batch.num_rows:
            self.row_bytes = max(self.row_bytes, batch.nbytes / batch.num_rows)
            self._waiting.append(batch)
            if self.lift is not None and sum(part.num_rows for part in self._waiting) >= _AT_ONCE:
                self._lift_waiting(self.lift)

    def rows(self) -> pa.Table:
        """Give all tuples, or the partial states of all; raises what the operator failed with on the way."""
        if self.lift is not None:
            self._lift_waiting(self.lift)
            if self._failure is not None:
                raise self._failure
            return pa.concat_tables([self.lift.form.rows.empty_table(), *self._lifted])
        rows = pa.Table.from_batches(self._waiting, self._waiting[0].schema if self._waiting else self.schema)
        if self.ordered:
            rows = rows.take(np.argsort(rows[ORDER].to_numpy(), kind="stable")).drop_columns(ORDER)
        return rows.cast(self.tuples)

    def _lift_waiting(self, lift: Lift) -> None:
        """Lift what waits. A failure is kept: only at the end of its input a task knows which channel it is."""
        if self._waiting and self._failure is None:
            started = time.perf_counter()
            try:
                self._lifted.append(lift(pa.Table.from_batches(self._waiting).cast(self.tuples))[0])
                self._gather(lift)
            except Exception as error:  # noqa: BLE001 - whatever the operator raises
                self._failure = error
            self.lifting_ms += 1000 * (time.perf_counter() - started)
        self._waiting = []

    def _gather(self, lift: Lift) -> None:
        """Merge states on the way, rather than at the end, where all tasks do so at once.

        Whenever as many have come as were merged before: so that each is merged but a few times.
        """
        first, *others = self._lifted
        if others and sum(part.num_rows for part in others) >= first.num_rows:
            self._lifted = [lift.gather(pa.concat_tables(self._lifted))]
