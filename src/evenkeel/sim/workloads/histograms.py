"""Histograms that were prepared elsewhere, such as by Spark, as a workload."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.sim.ordering import ArrivalTimes, shuffled_rows
from evenkeel.sim.window import Histogram, Tuples, Window
from evenkeel.sim.workloads.base import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Histograms"]

_NEEDED = ("window", "hash", "count")
_OPTIONAL = ("state_bytes", "source")
_ORDER, _TIMES = range(2)


@dataclass(frozen=True, eq=False)
class Histograms(Workload):
    """Tuples per window and key, as an Arrow table: the stream at the level at which planners see it.

    Routers that need tuples get them in random order within each window. Windows without a row are empty. A key may
    have several rows in a window, such as one per source; they are added up.

    Parameters
    ----------
    table
        Columns ``window`` (from 0), ``hash`` (of the key, int64) and ``count``; optional ``state_bytes`` (held by the
        key at the window's end; keys not named keep what they had) and ``source`` (from 0). Any order; sorted here if
        need be.
    seconds
        How long a window is.
    seed
        Of the random order.

    Examples
    --------
    >>> table = pa.table({"window": [0, 0, 2], "hash": [11, 12, 11], "count": [5, 1, 7]})
    >>> [window.size for window in Histograms(table).windows()]
    [6, 0, 7]
    """

    name = "histograms"

    table: pa.Table
    seconds: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        missing = [column for column in _NEEDED if column not in self.table.column_names]
        if missing:
            raise InvalidArgumentError(
                f"The table has no column {', '.join(missing)}; got {', '.join(self.table.column_names)}.",
                missing=missing,
            )
        columns = [column for column in (*_NEEDED, *_OPTIONAL) if column in self.table.column_names]
        table = self.table.select(columns).cast(pa.schema([(column, pa.int64()) for column in columns]))
        arrays = {column: _numbers(table, column) for column in columns}
        for column in ("window", "count", *_OPTIONAL):
            if column in arrays and len(table) and arrays[column].min() < 0:
                raise InvalidArgumentError(f"The column {column} must not be negative; got {arrays[column].min()}.")
        if (np.diff(arrays["window"]) < 0).any():
            table = table.take(np.argsort(arrays["window"], kind="stable"))
        object.__setattr__(self, "table", table)

    @classmethod
    def of(cls, workload: Workload, windows: int | None = None, *, seed: int = 0) -> Histograms:
        """Keep the histograms of a workload's first windows, or of all of them: O(keys) memory for each."""
        parts, seconds = [], 1.0
        for window in workload.first(windows):
            histogram, seconds = window.histogram(), window.seconds
            columns: dict[str, Any] = {
                "window": np.full(len(histogram), window.number),
                "hash": histogram.hashes,
                "count": histogram.counts,
            }
            if histogram.state_bytes is not None:
                columns["state_bytes"] = histogram.state_bytes
            parts.append(pa.table(columns))
        empty = pa.schema([(column, pa.int64()) for column in _NEEDED]).empty_table()
        return cls(pa.concat_tables(parts) if parts else empty, seconds, seed)

    @property
    def sources(self) -> int:
        """How many sources there are."""
        if "source" not in self.table.column_names or not len(self.table):
            return 1
        return int(_numbers(self.table, "source").max()) + 1

    def windows(self) -> Iterator[Window]:
        """Give the windows from 0 to the last one named."""
        numbers = _numbers(self.table, "window")
        columns = {name: _numbers(self.table, name) for name in self.table.column_names}
        last = int(numbers[-1]) if len(numbers) else -1
        edges = np.searchsorted(numbers, np.arange(last + 2))
        for number, (low, high) in enumerate(pairwise(edges.tolist())):
            rows = {name: column[low:high] for name, column in columns.items()}
            yield PreparedWindow(
                number,
                self.seconds,
                number * self.seconds,
                rows["hash"],
                rows["count"],
                rows.get("state_bytes"),
                rows.get("source"),
                self.seed,
            )


@dataclass(eq=False)
class PreparedWindow(Window):
    """A window whose histogram is given, perhaps by source."""

    number: int
    seconds: float
    start: float
    hashes: NDArray[np.int64]
    counts: NDArray[np.int64]
    state_bytes: NDArray[np.int64] | None = None
    sources: NDArray[np.int64] | None = None
    seed: int = 0

    @property
    def size(self) -> int:
        """How many tuples there are."""
        return int(self.counts.sum())

    def histogram(self) -> Histogram:
        """Add up the rows of each key."""
        whole = Histogram.of(self.hashes, self.counts, self.state_bytes)
        if self.state_bytes is not None:
            return whole
        there = whole.counts > 0
        return whole if there.all() else Histogram(whole.hashes[there], whole.counts[there])

    def tuples(self, *, full: bool = False) -> Iterator[Tuples]:
        """Give the tuples in random order."""
        arrivals = ArrivalTimes(self.start, self.seconds, self.size, self.seed, self.number, _TIMES, poisson=False)
        for rows in shuffled_rows(self.counts, self.seed, self.number, _ORDER):
            yield Tuples(
                self.hashes[rows],
                times=arrivals.take(len(rows)) if full else None,
                sources=None if self.sources is None else self.sources[rows],
            )


def _numbers(table: pa.Table, column: str) -> NDArray[np.int64]:
    values = table[column]
    if values.null_count:
        raise InvalidArgumentError(f"The column {column} has {values.null_count} nulls; it must have none.")
    return np.asarray(values.to_numpy())
