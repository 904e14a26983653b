"""Windows by count: a mergeable operator computed for every so many tuples of each key."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators.base import Operator, Update
from evenkeel.operators.inner import (
    check_inner,
    covering,
    inner_results,
    inner_state,
    merged_lists,
    regrouped,
    result_schema,
)
from evenkeel.operators.ragged import group_pairs, nest, struct_column, table_of, unnest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups
    from evenkeel.operators.mergeable import Mergeable

__all__ = ["CountSliding", "CountTumbling"]


class _CountWindows(Operator):
    """Windows over the tuples of a key as they come, kept as panes as those in event time are.

    Not mergeable: which tuples share a window depends on the order in which all tuples of the key come, and channels
    that hold parts of a key do not know of each other's.
    """

    operator: Mergeable
    size: int

    @property
    @abstractmethod
    def _step(self) -> int:
        """How many tuples lie between the starts of windows."""

    @property
    def needs_event_time(self) -> bool:  # type: ignore[override]
        """As the operator within."""
        return self.operator.needs_event_time

    def columns(self, rows: pa.Schema) -> list[str]:
        """Those of the operator within."""
        return self.operator.columns(rows)

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """How many tuples came, and the panes of open windows."""
        pane = pa.struct([pa.field("start", pa.int64()), inner_state(self.operator, rows)])
        return pa.schema([("seen", pa.int64()), ("panes", pa.list_(pane))])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """Which of the key's windows it is, from 0, and the results of the operator within."""
        return result_schema(self.operator, rows, ("window", pa.int64()))

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Count the tuples on, and give the results of the windows that have become full."""
        from evenkeel.operators import _kernels

        pane_size = math.gcd(self.size, self._step)
        before = pc.fill_null(states["seen"], 0).to_numpy()
        seen = before.copy()
        numbers = _kernels.count_up(groups.key_of, seen) // pane_size
        group_of, key_of, numbers = group_pairs(groups.key_of, numbers, len(groups))
        everything = np.ones(groups.rows.num_rows, bool)
        lifted = self.operator.lift(regrouped(groups, everything, group_of, key_of))
        came = pa.table({"start": numbers * pane_size, "state": struct_column(lifted)})
        merged = merged_lists(self.operator, states["panes"], nest(key_of, came, len(groups)), "start")
        rows, panes = unnest(merged)
        starts = panes["start"].to_numpy()
        after = np.maximum(before, self.size - 1)[rows]  # the first window ends with tuple number size
        pane, window = covering(starts, after, seen[rows], self.size, self._step)
        group_of, row_of, window = group_pairs(rows[pane], window, len(groups))
        inner = table_of(panes["state"]).take(pane)
        results, of = inner_results(self.operator, inner, group_of, len(row_of))
        open_ = starts // self._step * self._step + self.size > seen[rows]
        kept = nest(rows[open_], panes.filter(pa.array(open_)), len(groups))
        outputs = {"window": window[of], **dict(zip(results.column_names, results.columns, strict=True))}
        return Update(pa.table({"seen": seen, "panes": kept}), pa.table(outputs), row_of[of])


@dataclass(frozen=True)
class CountTumbling(_CountWindows):
    """Compute an operator for every ``size`` tuples of a key, in the order in which they come; one result when full.

    Not mergeable, so its keys cannot be split: which tuples share a window depends on the order of all of them.

    Parameters
    ----------
    operator
        What to compute: any mergeable operator that waits for no clock.
    size
        How many tuples make a window.

    Notes
    -----
    O(tuples) per batch. A key keeps the partial state of one window, and is never forgotten.
    """

    name = "count_tumbling"
    operator: Mergeable
    size: int

    def __post_init__(self) -> None:
        check_inner(self.operator)
        if self.size < 1:
            raise InvalidArgumentError(f"A window must have at least one tuple; got a size of {self.size}.")

    @property
    def _step(self) -> int:
        return self.size


@dataclass(frozen=True)
class CountSliding(_CountWindows):
    """Compute an operator for the last ``size`` tuples of a key, each time another ``step`` have come.

    The first result comes when there are ``size``. Not mergeable, so its keys cannot be split: which tuples share a
    window depends on the order of all of them.

    Parameters
    ----------
    operator
        What to compute: any mergeable operator that waits for no clock.
    size
        How many tuples make a window.
    step
        How many tuples lie between the starts of windows, at most ``size``.

    Notes
    -----
    A key keeps one partial state for each pane of gcd(size, step) tuples, size / gcd at most, and is never forgotten.
    O(tuples) per batch, O(panes) of the keys touched, and size / gcd merges for each result.
    """

    name = "count_sliding"
    operator: Mergeable
    size: int
    step: int

    def __post_init__(self) -> None:
        check_inner(self.operator)
        if not 1 <= self.step <= self.size:
            raise InvalidArgumentError(
                f"The step must be from 1 to the size of the window; got {self.step} for {self.size}.",
                size=self.size,
                step=self.step,
            )

    @property
    def _step(self) -> int:
        return self.step
