"""What every operator is: states and tuples in, states and results out, whole columns at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["Clock", "Operator", "Update"]

Clock: TypeAlias = Literal["event_time", "batch", "time"]


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """What an operator makes of one batch.

    Parameters
    ----------
    states
        The new state of each key of the batch, aligned with ``groups.keys``; columns as the operator's state schema.
    outputs
        Results, any number of rows; columns as the operator's output schema, without the key columns.
    key_of_outputs
        For each result, the row of its key; ``None`` if there is just one per key, in order.
    keep
        Which keys keep a state at all; the others are forgotten. ``None`` keeps all.
    wake
        When each key wants to be called again though no tuple comes, by the operator's clock; :data:`NEVER` if it does
        not. ``None`` is never for all. A wish replaces the one before.
    late
        How many tuples came too late to count.
    """

    states: pa.Table
    outputs: pa.Table
    key_of_outputs: NDArray[np.int64] | None = None
    keep: NDArray[np.bool_] | None = None
    wake: NDArray[np.int64] | None = None
    late: int = 0


class Operator(ABC):
    """A keyed, stateful computation.

    An operator is a value: it has options, no state of its own. The engine gives it all tuples of a channel in a batch
    together with the states of just the keys touched, and keeps the states that come back. Operators must be picklable,
    and deterministic in what they are given, since a batch may be run again after a failure.
    """

    name: ClassVar[str]
    merges: ClassVar[bool] = False
    """Whether partial states of a key merge. Only then may a key be split over channels."""
    needs_event_time: ClassVar[bool] = False
    """Whether the stream must say which column holds the event time."""
    any_order: ClassVar[bool] = False
    """Whether states are the same, byte for byte, in whatever order the tuples of a batch come. Where they are not,
    the copies of a replicated key get their tuples in one order, that of their arrival."""
    wakes_by: Clock | None = None
    """The clock of ``Update.wake``: event time (the watermark, in microseconds), the number of the batch, or the
    driver's time in microseconds. ``None`` if keys are never called without tuples."""

    def columns(self, rows: pa.Schema) -> list[str]:
        """Give the columns that the operator looks at, besides the key columns; only these are shuffled."""
        return list(rows.names)

    @abstractmethod
    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """Give the columns of a key's state, for tuples of these columns; raises for columns that are missing."""

    @abstractmethod
    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """Give the columns of results, without the key columns."""

    @abstractmethod
    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:
        """Bring the keys of a batch up to date.

        ``states`` has one row per key, aligned with ``groups.keys``; a key that is not ``known`` has no state yet, and
        a row of nulls. Keys that asked to be called have no tuples, if none came.
        """
