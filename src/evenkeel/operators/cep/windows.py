"""Aggregates over windows of each key's events, and the place for functions of one's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import UnsupportedTypeError
from evenkeel.operators.aggregates.column import valid_of
from evenkeel.operators.ragged import starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.cep.rules import Frame

__all__ = ["AGGREGATES", "Timeline", "WindowFunction", "aggregate"]

_DEVIATIONS = {"stddev": 1, "stddevsamp": 1, "stddevpop": 0, "variance": 1, "variancepop": 0}
_ENDS = {"firstvalue", "lastvalue"}
AGGREGATES = {"count", "sum", "avg", "min", "max", *_DEVIATIONS, *_ENDS}
"""By sqlglot's names."""


class WindowFunction(ABC):
    """A function of one's own over a window, for use in rules as ``name(argument) OVER window``.

    It says what to keep of each event, and gives the function's value for many windows at once. Like operators, it is a
    value: picklable, deterministic, without state of its own.
    """

    name: ClassVar[str]

    @abstractmethod
    def keep(self, values: pa.Array) -> pa.Array:
        """Give what to keep of each event's argument; any type that a state may have."""

    @abstractmethod
    def over(self, kept: pa.Array, at: NDArray[np.int64], bounds: NDArray[np.int64]) -> pa.Array:
        """Give the value for each event ``kept[at[i]]`` and its window, ``kept[bounds[0, i]:bounds[1, i]]``."""


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Runs of events, one after the other and in order, and those events of which windows are asked.

    Parameters
    ----------
    starts
        Where the events of each run start, and one more at the end. No window goes beyond its run.
    firsts
        For each run, the number of its first event here.
    run_of, at
        The run and place of each event of which windows are asked; ascending.
    times
        The events' times, if windows by time are asked.
    """

    starts: NDArray[np.int64]
    firsts: NDArray[np.int64]
    run_of: NDArray[np.int64]
    at: NDArray[np.int64]
    times: NDArray[np.int64] | None = None

    def bounds(self, frame: Frame) -> NDArray[np.int64]:
        """Where the window of each event begins and ends: 2 × events."""
        if frame.kind == "rows":
            begin = self.starts[self.run_of]
            low, high = np.maximum(self.at - frame.start, begin), np.maximum(self.at - frame.end + 1, begin)
            return np.stack([low, high])
        from evenkeel.operators.cep import _kernels_windows

        assert self.times is not None
        return _kernels_windows.range_bounds(self.times, self.starts, self.run_of, self.at, frame.start, frame.end)


def aggregate(name: str, items: pa.Array, timeline: Timeline, bounds: NDArray[np.int64]) -> pa.Array:
    """Aggregate the items of each window; nulls are left out, and of none the result is null, or 0 for a count."""
    low, high = bounds
    if name in _ENDS:
        places = low if name == "firstvalue" else high - 1
        return items.take(pa.array(places, mask=low >= high))
    valid = valid_of(items)
    counts = high - low
    if items.null_count:
        running = starts_of(valid)
        counts = running[high] - running[low]
    if name == "count":
        return pa.array(counts)
    if name in {"min", "max"}:
        return _extreme(name, items, timeline, bounds, counts)
    numbers = _numbers(name, items)
    if name in _DEVIATIONS:
        rows = np.column_stack([valid, np.where(valid, numbers, 0.0), np.zeros(len(valid))])
        folded = _fold(rows, np.zeros(3), "SPREAD", timeline, bounds)
        less = _DEVIATIONS[name]
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.where(np.isfinite(folded[:, 1]), folded[:, 2], np.nan) / (counts - less)
            spread = np.sqrt(spread) if name.startswith("stddev") else spread
        return pa.array(spread, mask=counts <= less)
    if numbers.dtype == np.int64:
        total = starts_of(numbers)  # wraps around, and so do the differences: exact
        sums = total[high] - total[low]
    else:
        sums = _fold(numbers[:, None], np.zeros(1), "SUM", timeline, bounds)[:, 0]
    if name == "avg":
        return pa.array(sums / np.maximum(counts, 1), mask=counts == 0)
    return pa.array(sums, mask=counts == 0)


def _extreme(
    name: str, items: pa.Array, timeline: Timeline, bounds: NDArray[np.int64], counts: NDArray[np.int64]
) -> pa.Array:
    kind = items.type
    if pa.types.is_temporal(kind):
        items = items.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    numbers = _numbers(name, items)
    if numbers.dtype == np.int64:
        limits = np.iinfo(np.int64)
        nothing = np.array([limits.max if name == "min" else limits.min])
    else:
        nothing = np.array([np.nan if name == "min" else -np.inf])
    numbers = np.where(valid_of(items), numbers, nothing)
    found = _fold(numbers[:, None], nothing, "LEAST" if name == "min" else "GREATEST", timeline, bounds)[:, 0]
    result = pa.array(found, mask=counts == 0)
    return result.cast(items.type).cast(kind) if pa.types.is_temporal(kind) else result


def _fold(
    rows: NDArray[np.float64] | NDArray[np.int64],
    nothing: NDArray[np.float64] | NDArray[np.int64],
    how: str,
    timeline: Timeline,
    bounds: NDArray[np.int64],
) -> NDArray[np.float64]:
    from evenkeel.operators.cep import _kernels_windows as kernels

    places = (timeline.starts, timeline.firsts, timeline.run_of, bounds)
    return kernels.fold_windows(np.ascontiguousarray(rows), nothing, getattr(kernels, how), *places)


def _numbers(name: str, items: pa.Array) -> NDArray[np.int64] | NDArray[np.float64]:
    """Items as 64-bit numbers, 0 where null."""
    kind = items.type
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        items = items.cast(pa.int64())
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        items = items.cast(pa.float64())
    else:
        raise UnsupportedTypeError(f"{name} needs numbers{' or times' if name in {'min', 'max'} else ''}, not {kind}.")
    return np.asarray(pc.fill_null(items, 0) if items.null_count else items)
