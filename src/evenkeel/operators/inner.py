"""Operators within operators: a mergeable one computed for each window or session of a key."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators.groups import NEVER
from evenkeel.operators.mergeable import Mergeable, fold
from evenkeel.operators.ragged import nest, struct_column, table_of, unnest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = [
    "MICROS",
    "InEventTime",
    "check_inner",
    "covering",
    "inner_results",
    "inner_state",
    "merged_lists",
    "regrouped",
    "result_schema",
    "wishes",
    "with_edges",
]

MICROS = pa.timestamp("us", "UTC")


class InEventTime(Mergeable):
    """What windows and sessions share: an operator within, tuples that come late, keys that wait for the watermark."""

    needs_event_time = True
    wakes_by = "event_time"
    operator: Mergeable

    @abstractmethod
    def last_end(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give when all that a tuple of each time belongs to is over, as far as it tells itself."""

    def columns(self, rows: pa.Schema) -> list[str]:
        """Those of the operator within."""
        return self.operator.columns(rows)

    def late(self, groups: Groups) -> int:
        """Count the tuples for which all is over."""
        there, in_time = self.in_time(groups)
        return int((there & ~in_time).sum())

    def in_time(self, groups: Groups) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell which tuples have an event time, and for which of all something is still open."""
        assert groups.times is not None
        there = groups.times != NEVER
        return there, there & (self.last_end(np.where(there, groups.times, 0)) > groups.now.watermark)


def wishes(rows: NDArray[np.int64], ends: NDArray[np.int64], keys: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Tell which keys have something open, and when the first of it is over; both are sorted by row, then end."""
    wake = np.full(keys, NEVER)
    wake[rows[::-1]] = ends[::-1]  # a key's first one is set last
    return wake != NEVER, wake


def with_edges(what: str, start: NDArray[np.int64], end: NDArray[np.int64], results: pa.Table) -> pa.Table:
    """Put start and end before results, as columns ``…_start`` and ``…_end``."""
    edges = [pa.array(start, MICROS), pa.array(end, MICROS)]
    return pa.table([*edges, *results.columns], names=[f"{what}_start", f"{what}_end", *results.column_names])


def check_inner(operator: Any) -> None:
    """Raise unless an operator can be computed for each window."""
    if not isinstance(operator, Mergeable):
        raise InvalidArgumentError(
            f"Windows and sessions keep partial states and merge them, so they need a mergeable operator; got "
            f"{operator!r}.",
            operator=operator,
        )
    if operator.wakes_by is not None:
        raise InvalidArgumentError(
            f"{operator!r} waits for a clock of its own, and cannot be computed for each window.", operator=operator
        )


def inner_state(operator: Mergeable, rows: pa.Schema) -> pa.Field:
    """Give the field that holds a state of the operator within."""
    return pa.field("state", pa.struct(list(operator.state_schema(rows))))


def result_schema(operator: Mergeable, rows: pa.Schema, *own: tuple[str, pa.DataType]) -> pa.Schema:
    """Give the columns that say which window, and then the operator's results."""
    inner = operator.output_schema(rows)
    for name, _ in own:
        if name in inner.names:
            raise InvalidArgumentError(f"{operator!r} has a result {name!r} already; rename it.", column=name)
    return pa.schema([*map(pa.field, *zip(*own, strict=True)), *inner])


def regrouped(
    groups: Groups, chosen: NDArray[np.bool_], group_of: NDArray[np.int64], key_of: NDArray[np.int64]
) -> Groups:
    """Tell the chosen tuples apart by groups that are finer than keys; ``key_of`` is the key of each group."""
    everything = bool(chosen.all())
    times = groups.times
    return replace(
        groups,
        rows=groups.rows if everything else groups.rows.filter(pa.array(chosen)),
        keys=groups.keys.take(key_of),
        hashes=groups.hashes[key_of],
        hashes2=groups.hashes2[key_of],
        key_of=group_of,
        times=times if everything or times is None else times[chosen],
    )


def inner_results(
    operator: Mergeable, states: pa.Table, group_of: NDArray[np.int64], groups: int
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Merge the states of each group; give the results, and the group of each."""
    results, of = operator.results(fold(operator, states, group_of, groups))
    return results, np.arange(groups) if of is None else of


def merged_lists(
    operator: Mergeable, left: pa.Array | pa.ChunkedArray, right: pa.Array | pa.ChunkedArray, by: str
) -> pa.ListArray:
    """Merge lists of states row by row; states with one number in ``by``, which lists are sorted by, become one."""
    from evenkeel.operators import _kernels

    (left_rows, left_parts), (right_rows, right_parts) = unnest(left), unnest(right)
    numbers = pa.concat_tables([left_parts, right_parts])[by].to_numpy()
    n = len(left_rows)
    in_left, in_right = _kernels.align(left_rows, numbers[:n], right_rows, numbers[n:])
    one, other = table_of(left_parts["state"]), table_of(right_parts["state"])
    both = (in_left >= 0) & (in_right >= 0)
    merged = operator.merge(one.take(in_left[both]), other.take(in_right[both])).cast(one.schema)
    either = np.where(in_left >= 0, in_left, n + in_right)
    places = np.where(both, len(numbers) + np.cumsum(both) - 1, either)
    states = pa.concat_tables([one, other, merged]).take(places)
    rows = np.concatenate([left_rows, right_rows])[either]
    return nest(rows, pa.table({by: numbers[either], "state": struct_column(states)}), len(left))


def covering(
    starts: NDArray[np.int64], after: NDArray[np.int64], until: NDArray[np.int64], size: int, step: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the windows [m · step, m · step + size) that cover panes and end after ``after``, but not after ``until``.

    Gives pairs: the place of the pane, and the number m of a window that covers it.
    """
    first = np.maximum(starts, after)
    last = np.maximum(np.minimum(starts // step * step + size, until), first)
    first, last = (first - size) // step, (last - size) // step
    counts = last - first
    pane = np.repeat(np.arange(len(starts)), counts)
    begins = np.cumsum(counts) - counts
    return pane, np.arange(len(pane)) - begins[pane] + first[pane] + 1
