"""The stream of words that stands in for the paper's tweets, and the four strategies on it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.planning import Clb, Elb
from evenkeel.routing import make_router
from evenkeel.sim import Drifting, Planned, Trace, Workload, Zipf, replay
from experiments.data import real

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PERIOD", "PLANNED", "SUBSTREAMS", "compared", "drifting_words"]

SUBSTREAMS = 100
PERIOD = 24
"""Windows between two plans of CLB (1/f)."""
TOLERANCE = 0.3
"""ELB keeps loads within so much of the average; the paper does not give its range."""
PLANNED = {
    "CLB": Planned("clb", every=PERIOD),
    "CLB, means too": Planned(Clb(balance_means=True), every=PERIOD),
    "ELB": Planned(Elb(tolerance=TOLERANCE)),
    "UHLB": Planned("uhlb"),
}


def drifting_words(tuples: Any, seconds: float = 60.0) -> Workload:
    """Words whose popularity drifts; the hottest is 5 % of all, as in English."""
    return Drifting(Zipf(50_000, 0.9, tuples=tuples, arrivals="poisson", seconds=seconds), rate=0.02)


def words(tuples: int) -> Workload:
    """Real words where there are some, else drifting ones."""
    path = real("congress2021_words")
    return drifting_words(tuples) if path is None else Trace(path, window_tuples=tuples)


@lru_cache(maxsize=2)
def compared(windows: int, tuples: int, channels: int) -> pa.Table:
    """Give variance and moved state of every strategy in every window.

    PKG splits keys instead of moving them. What counts as moved is the state that a consolidation at the end of the
    window must send: all of a key but the larger of its two parts.
    """
    stream = words(tuples)
    done = replay(stream, PLANNED, channels=channels, windows=windows, slots=SUBSTREAMS)
    rows = [
        {
            "strategy": row["strategy"],
            "window": row["window"],
            "variance": row["variance"],
            "moved_percent": 100 * row["moved_bytes"] / row["state_bytes"],
        }
        for row in done.table.select(["strategy", "window", "variance", "moved_bytes", "state_bytes"]).to_pylist()
    ]
    return pa.Table.from_pylist([*rows, *_split(stream, windows, channels)])


def _split(stream: Workload, windows: int, channels: int) -> Sequence[dict[str, Any]]:
    router = make_router("pkg", channels)
    rows = []
    for window in stream.first(windows):
        hashes = np.concatenate([part.hashes for part in window.tuples()])
        places = router.route(hashes)
        _, keys = np.unique(hashes, return_inverse=True)
        parts = np.bincount(keys.ravel() * channels + places, minlength=(keys.max() + 1) * channels)
        largest = parts.reshape(-1, channels).max(axis=1).sum()
        loads = np.bincount(places, minlength=channels)
        rows.append(
            {
                "strategy": "PKG",
                "window": window.number,
                "variance": float(loads.var()),
                "moved_percent": 100 * (1 - largest / len(hashes)),
            }
        )
    return rows
