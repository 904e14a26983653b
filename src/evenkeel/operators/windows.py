"""Windows in event time: a mergeable operator computed for each stretch of time of each key."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators.base import Update
from evenkeel.operators.durations import Duration, microseconds
from evenkeel.operators.groups import NEVER, NO_WATERMARK
from evenkeel.operators.inner import (
    MICROS,
    InEventTime,
    check_inner,
    covering,
    inner_results,
    inner_state,
    merged_lists,
    regrouped,
    result_schema,
    wishes,
    with_edges,
)
from evenkeel.operators.ragged import group_pairs, nest, struct_column, table_of, unnest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups
    from evenkeel.operators.mergeable import Mergeable

__all__ = ["Sliding", "Tumbling"]


class _Windows(InEventTime):
    """Windows [start, start + size) at every multiple of a step since 1970.

    A pane is the longest stretch of time that no window's edge divides, as long as the greatest common divisor of size
    and step. The state is a list of panes with their partial states, so a tuple is lifted once, however many windows
    cover it; a window's panes are merged when it closes (Li et al., "No pane, no gain", SIGMOD Record 2005). Windows
    that end at ``emitted`` or before have been emitted, though panes of theirs may still be needed by later ones.
    """

    @property
    @abstractmethod
    def _size(self) -> int:
        """How long a window is, in microseconds."""

    @property
    @abstractmethod
    def _step(self) -> int:
        """How far apart windows start, in microseconds."""

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """Up to when windows have been emitted, and the panes of those that are open."""
        pane = pa.struct([pa.field("start", pa.int64()), inner_state(self.operator, rows)])
        return pa.schema([("emitted", pa.int64()), ("panes", pa.list_(pane))])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """Start and end of the window, and the results of the operator within."""
        return result_schema(self.operator, rows, ("window_start", MICROS), ("window_end", MICROS))

    def last_end(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the end of the last window that covers each time."""
        return times // self._step * self._step + self._size

    def lift(self, groups: Groups) -> pa.Table:
        """Lift the tuples of each pane; those whose windows have all closed are left out."""
        assert groups.times is not None
        pane = math.gcd(self._size, self._step)
        chosen = self.in_time(groups)[1]
        group_of, key_of, numbers = group_pairs(groups.key_of[chosen], groups.times[chosen] // pane, len(groups))
        lifted = self.operator.lift(regrouped(groups, chosen, group_of, key_of))
        panes = pa.table({"start": numbers * pane, "state": struct_column(lifted)})
        return pa.table({"emitted": pa.nulls(len(groups), pa.int64()), "panes": nest(key_of, panes, len(groups))})

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Merge panes that start together."""
        emitted = pc.max_element_wise(left["emitted"], right["emitted"])
        return pa.table(
            {"emitted": emitted, "panes": merged_lists(self.operator, left["panes"], right["panes"], "start")}
        )

    def results(self, states: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
        """What the open windows have so far."""
        return self._results(states, pc.fill_null(states["emitted"], NO_WATERMARK).to_numpy(), NEVER)

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Close the windows that are over, then take in the tuples of those that are open."""
        closed, outputs, key_of = self._close(states, groups.now.watermark)
        merged = self.merge(closed, self.lift(groups))
        return Update(merged, outputs, key_of, *self._wishes(merged, groups.now.watermark), self.late(groups))

    def settle(self, groups: Groups, states: pa.Table) -> Update:
        """Close the windows that are over."""
        closed, outputs, key_of = self._close(states, groups.now.watermark)
        return Update(closed, outputs, key_of, *self._wishes(closed, groups.now.watermark))

    def _close(self, states: pa.Table, watermark: int) -> tuple[pa.Table, pa.Table, NDArray[np.int64]]:
        """Emit the windows that are over and were not emitted; drop the panes that no open window needs."""
        # A new key has emitted nothing, but what is over by now was over before it came.
        emitted = pc.fill_null(states["emitted"], watermark).to_numpy()
        outputs, key_of = self._results(states, emitted, watermark)
        rows, panes = unnest(states["panes"])
        needed = self.last_end(panes["start"].to_numpy()) > watermark
        kept = nest(rows[needed], panes.filter(pa.array(needed)), states.num_rows)
        return pa.table({"emitted": np.maximum(emitted, watermark), "panes": kept}), outputs, key_of

    def _results(self, states: pa.Table, after: NDArray[np.int64], until: int) -> tuple[pa.Table, NDArray[np.int64]]:
        """The results of the windows that end after ``after``, by row, and not after ``until``; and their rows."""
        rows, panes = unnest(states["panes"])
        starts = panes["start"].to_numpy()
        pane, numbers = covering(starts, after[rows], np.full(len(rows), until), self._size, self._step)
        group_of, row_of, number_of = group_pairs(rows[pane], numbers, states.num_rows)
        inner = table_of(panes["state"]).take(pane)
        results, window = inner_results(self.operator, inner, group_of, len(row_of))
        start = number_of[window] * self._step
        return with_edges("window", start, start + self._size, results), row_of[window]

    def _wishes(self, states: pa.Table, watermark: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which keys have open windows, and when the first of them is over."""
        rows, panes = unnest(states["panes"])
        after = np.maximum(panes["start"].to_numpy(), watermark)
        ends = ((after - self._size) // self._step + 1) * self._step + self._size
        return wishes(rows, ends, states.num_rows)


@dataclass(frozen=True)
class Tumbling(_Windows):
    """Compute an operator for each stretch of event time; one final result when the watermark passes its end.

    Windows are [start, start + size), with starts at multiples of ``size`` since 1970, as in Spark's ``window``. A
    tuple that comes after its window has closed is dropped and counted as late; one without an event time is left out.

    Parameters
    ----------
    operator
        What to compute: any mergeable operator that waits for no clock.
    size
        How long a window is, such as ``"10 minutes"``.

    Notes
    -----
    O(tuples) per batch, and O(panes) of the keys touched. A key is forgotten when none of its windows is open.
    """

    name = "tumbling"
    operator: Mergeable
    size: Duration

    def __post_init__(self) -> None:
        check_inner(self.operator)
        if self._size == 0:
            raise InvalidArgumentError("A window must be longer than nothing.", size=self.size)

    @property
    def _size(self) -> int:
        return microseconds(self.size)

    @property
    def _step(self) -> int:
        return microseconds(self.size)


@dataclass(frozen=True)
class Sliding(_Windows):
    """Compute an operator for windows of ``size`` that start every ``step``; one final result of each when it closes.

    Windows are [start, start + size), with starts at multiples of ``step`` since 1970, as in Spark's ``window``. A
    tuple belongs to every window that covers its event time, and counts for those that have not closed when it comes;
    if all have, it is dropped and counted as late. One without an event time is left out.

    Parameters
    ----------
    operator
        What to compute: any mergeable operator that waits for no clock.
    size
        How long a window is, such as ``"10 minutes"``.
    step
        How far apart windows start, at most ``size``.

    Notes
    -----
    A key keeps one partial state for each pane of gcd(size, step) that has tuples, size / gcd at most, and not one for
    each of its windows. O(tuples) per batch, O(panes) of the keys touched, and size / gcd merges for a window that
    closes. A key is forgotten when none of its windows is open.
    """

    name = "sliding"
    operator: Mergeable
    size: Duration
    step: Duration

    def __post_init__(self) -> None:
        check_inner(self.operator)
        if not 0 < self._step <= self._size:
            raise InvalidArgumentError(
                f"The step must be longer than nothing and at most the size; got {self.step!r} for {self.size!r}.",
                size=self.size,
                step=self.step,
            )

    @property
    def _size(self) -> int:
        return microseconds(self.size)

    @property
    def _step(self) -> int:
        return microseconds(self.step)
