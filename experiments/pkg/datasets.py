"""The data sets of Table I, and what stands in for those that are not public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from evenkeel.sim import Drifting, LogNormal, Sourced, Trace, Workload, Zipf
from experiments.data import real

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["SOURCES", "DataSet", "graph", "log_normals", "main_sets"]

SOURCES = 5
WINDOWS = 50  # the imbalance is looked at so many times


@dataclass(frozen=True)
class DataSet:
    """A stream and what it stands for.

    Parameters
    ----------
    symbol
        Of the paper.
    what
        What it is here.
    stream
        In about 50 windows.
    windows
        How many there are.
    """

    symbol: str
    what: str
    stream: Workload
    windows: int = WINDOWS

    def from_sources(self, count: int = SOURCES) -> Workload:
        """Deal the tuples out to sources in turn, as shuffle grouping does."""
        return Sourced(self.stream, count)


def log_normals(messages: int) -> Iterator[DataSet]:
    """Give LN₁ and LN₂, with the paper's parameters."""
    tuples = messages // WINDOWS
    yield DataSet("LN1", "log-normal, μ = 1.789, σ = 2.366", LogNormal(1.789, 2.366, tuples=tuples))
    yield DataSet("LN2", "log-normal, μ = 2.245, σ = 1.133", LogNormal(2.245, 1.133, tuples=tuples))


def main_sets(messages: int) -> Iterator[DataSet]:
    """Give WP, TW and CT, or what stands in for them."""
    tuples = messages // WINDOWS
    yield DataSet("WP", "Zipf 1.0 over 26,000 keys", Zipf(26_000, 1.0, tuples=tuples))
    yield _trace("TW", "congress2021_words") or DataSet(
        "TW", "Zipf 0.845 over 200,000 keys", Zipf(200_000, 0.845, tuples=tuples)
    )
    yield _trace("CT", "stocknet_cashtag") or DataSet(
        "CT", "drifting Zipf 0.73 over 2,900 keys", Drifting(Zipf(2900, 0.73, tuples=tuples // 4), rate=0.1)
    )


def graph() -> Path | None:
    """Give the edges of Slashdot0902 (SL₂), where they are there."""
    return real("slashdot0902_edges")


def _trace(symbol: str, name: str) -> DataSet | None:
    path = real(name)
    if path is None:
        return None
    rows = pq.read_metadata(path).num_rows
    return DataSet(symbol, name, Trace(path, window_tuples=-(-rows // WINDOWS)))
