"""What a replay gives: one tidy table, and summaries of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel import metrics
from evenkeel.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from evenkeel.metrics import LatencySummary

__all__ = ["COLUMNS", "Replay", "tidy"]

COLUMNS: dict[str, pa.DataType] = {
    # Which window of which strategy.
    "strategy": pa.string(),
    "window": pa.int64(),
    "time_s": pa.float64(),  # at its end
    "channels": pa.int64(),
    "tuples": pa.int64(),
    # How even the loads of the window were, and those of all windows so far.
    "load_max": pa.float64(),
    "load_mean": pa.float64(),
    "imbalance": pa.float64(),
    "skewness": pa.float64(),
    "relative_std_percent": pa.float64(),
    "variance": pa.float64(),
    "running_load": pa.float64(),
    "running_imbalance": pa.float64(),
    # What the channels hold.
    "keys": pa.int64(),
    "state_bytes": pa.int64(),
    "pairs": pa.int64(),
    "messages": pa.int64(),
    # The table in the window, and what was planned at its end.
    "pins": pa.int64(),
    "table_bytes": pa.int64(),
    "planned": pa.bool_(),
    "plan_ms": pa.float64(),
    "own_before": pa.float64(),
    "own_after": pa.float64(),
    "moves": pa.int64(),
    "switches": pa.int64(),
    "moved_keys": pa.int64(),
    "moved_bytes": pa.int64(),
    "reason": pa.string(),
    # What it means for the tuples, where the replay has a service.
    "pause_s": pa.float64(),
    "needed_s": pa.float64(),
    "throughput_per_s": pa.float64(),
    "backlog": pa.float64(),
    "latency_mean_ms": pa.float64(),
    "latency_p50_ms": pa.float64(),
    "latency_p95_ms": pa.float64(),
    "latency_p99_ms": pa.float64(),
    "latency_max_ms": pa.float64(),
}


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What came of a replay.

    Parameters
    ----------
    table
        One row per strategy and window; see the page on the simulator for the columns. Null where a column does not
        apply.
    loads
        For each strategy, the loads of the channels in each window, where they were kept.
    latencies
        For each strategy, the latencies of the whole run, where there was a service.
    """

    table: pa.Table
    loads: Mapping[str, list[NDArray[np.float64]]] = field(default_factory=dict)
    latencies: Mapping[str, LatencySummary] = field(default_factory=dict)

    @property
    def strategies(self) -> list[str]:
        """The strategies, in the order in which they were given."""
        return list(dict.fromkeys(self.table["strategy"].to_pylist()))

    def of(self, strategy: str) -> pa.Table:
        """Give the rows of one strategy, by window."""
        if strategy not in self.strategies:
            raise UnknownNameError("strategy", strategy, self.strategies)
        return self.table.filter(pc.equal(self.table["strategy"], strategy))

    def column(self, strategy: str, column: str) -> NDArray[Any]:
        """Give one column of one strategy as an array; NaN where it is null."""
        if column not in self.table.column_names:
            raise UnknownNameError("column", column, self.table.column_names)
        return np.asarray(self.of(strategy)[column].to_numpy())

    def summary(self) -> pa.Table:
        """Give one row per strategy.

        Means are over the windows. ``average_imbalance`` and its fraction are PKG's: of the running loads, over time.
        ``migrations`` counts the windows after which state was sent; ``moved_percent`` is the share of all state that
        an average migration sent, ``amortised_percent`` the same over all windows. ``pairs`` is the most that were
        held.
        """
        return pa.Table.from_pylist([self._summary_of(strategy) for strategy in self.strategies])

    def _summary_of(self, strategy: str) -> dict[str, Any]:
        def column(name: str) -> NDArray[np.float64]:
            return self.column(strategy, name).astype(np.float64)

        total = column("running_load")[-1]
        average = float(column("running_imbalance").mean())
        sent = column("moved_bytes")
        held = column("state_bytes")
        percent = 100 * np.divide(sent, held, out=np.zeros_like(sent), where=held > 0)
        migrations = percent[np.nan_to_num(column("moves")) > 0]
        planned = self.of(strategy)["planned"].to_numpy(zero_copy_only=False) == True  # noqa: E712  nulls are neither
        row: dict[str, Any] = {
            "strategy": strategy,
            "windows": len(sent),
            "channels": int(column("channels")[-1]),
            "tuples": int(column("tuples").sum()),
            "mean_skewness": _mean(column("skewness")),
            "max_skewness": float(column("skewness").max()),
            "mean_imbalance": _mean(column("imbalance")),
            "mean_relative_std_percent": _mean(column("relative_std_percent")),
            "mean_variance": _mean(column("variance")),
            "std_variance": float(column("variance").std()),
            "average_imbalance": average,
            "average_imbalance_fraction": average / total if total else 0.0,
            "pairs": _most(column("pairs")),
            "messages": _sum(column("messages")),
            "plans": int(planned.sum()),
            "plan_ms": _mean(column("plan_ms")),
            "pins": _most(column("pins")),
            "migrations": len(migrations),
            "moves": _sum(column("moves")),
            "moved_keys": _sum(column("moved_keys")),
            "moved_bytes": _sum(sent),
            "moved_percent": _mean(migrations),
            "amortised_percent": metrics.amortised_movement(migrations, n_windows=len(sent)),
            "throughput_per_s": _mean(column("throughput_per_s")),
        }
        if strategy in self.latencies:
            latency = self.latencies[strategy]
            row |= {
                "latency_mean_ms": latency.mean_ms,
                "latency_p50_ms": latency.median_ms,
                "latency_p95_ms": latency.p95_ms,
                "latency_p99_ms": latency.p99_ms,
                "latency_max_ms": latency.max_ms,
            }
        return row


def tidy(rows: Iterable[Mapping[str, Any]], measures: Iterable[str], labels: Mapping[str, Any]) -> pa.Table:
    """Put rows into one table: the labels first, then the columns, then one column per own measure."""
    listed = list(rows)
    schema = pa.schema([*COLUMNS.items(), *((name, pa.float64()) for name in measures)])
    table = pa.Table.from_pylist(listed, schema=schema)
    for place, (name, value) in enumerate(labels.items()):
        table = table.add_column(place, name, pa.array([value] * len(listed)))
    return table


def _mean(values: NDArray[np.float64]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _sum(values: NDArray[np.float64]) -> int | None:
    known = values[~np.isnan(values)]
    return int(known.sum()) if len(known) else None


def _most(values: NDArray[np.float64]) -> int | None:
    largest = float(np.nanmax(values)) if not np.isnan(values).all() else math.nan
    return None if math.isnan(largest) else int(largest)
