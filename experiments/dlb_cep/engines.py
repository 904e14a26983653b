"""Tweets on CEP engines: the two streams, the five techniques, and what a rebalance costs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenkeel.operators.first_story import lsh_keys
from evenkeel.planning import DlbH, DlbL, Lptf
from evenkeel.sim import (
    Bursts,
    Drifting,
    Fluid,
    Histograms,
    Planned,
    Routed,
    StateModel,
    SwitchingZipf,
    Workload,
    Zipf,
    replay,
)
from experiments.data import real

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KEYS", "MODEL", "compared", "processed", "totals"]

KEYS = 4096
WINDOWS = 40  # minutes
THRESHOLD = 15.0
TWEET_BYTES = 140
RATE = 250.0  # tweets/s of an engine: five make the 1,200/s or so that the paper shows
MODEL = (
    "A model, not a cluster: 40 statistics windows of a minute, as many tweets as come at 1,200/s; an engine works off "
    "250 tweets/s, and fetches a retransmitted tweet in 1 ms, as the paper's database did, all engines at once. A key "
    "holds its last 500 tweets. Throughput is what the slowest engine and the rebalance let through. All tweets wait "
    "for a rebalance; the paper's splitter holds back only those of keys that move."
)


def techniques() -> Mapping[str, Planned | Routed]:
    """The five, with the paper's threshold of 15 %."""
    return {
        "DLB-L": Planned(DlbL(threshold=THRESHOLD)),
        "DLB-H": Planned(DlbH(threshold=THRESHOLD)),
        "LPTF": Planned(Lptf(threshold=THRESHOLD)),
        "PKG": Routed("pkg", count_pairs=False),
        "KG": Planned("stay_put"),
    }


def stream(order: str, tuples: int) -> Workload:
    """Give tweets in their own order, or with the periodic Zipf distribution of keys."""
    if order == "zipf":
        return SwitchingZipf(KEYS, tuples=tuples, seconds=60.0, hashed=False)
    path = real("stocknet_tweets")
    if path is None:
        return Bursts(
            Drifting(Zipf(KEYS, 0.8, tuples=tuples, seconds=60.0), rate=0.02), share=0.35, every=8, length=6, hot=2
        )
    keys = np.asarray(lsh_keys(pq.read_table(path, columns=["text"])["text"], KEYS))
    windows = np.arange(len(keys)) * WINDOWS // len(keys)
    return Histograms(pa.table({"window": windows, "hash": keys, "count": np.ones(len(keys), np.int64)}))


@lru_cache(maxsize=4)
def compared(order: str, tuples: int, engines: int = 5, only: str | None = None) -> pa.Table:
    """Give deviation, throughput and retransmissions of every technique in every window."""
    chosen = {name: one for name, one in techniques().items() if only in {None, name}}
    done = replay(
        stream(order, tuples),
        chosen,
        channels=engines,
        windows=WINDOWS,
        slots=KEYS,
        state=StateModel(TWEET_BYTES, windows=None, at_most=500),
        service=Fluid(RATE, bytes_per_s=engines * 1000 * TWEET_BYTES),
    )
    rows = [
        {
            "order": order,
            "strategy": row["strategy"],
            "minute": row["window"],
            "deviation_percent": row["relative_std_percent"],
            "throughput": row["tuples"] / row["needed_s"],
            "tweets": row["tuples"],
            "seconds": row["needed_s"],
            "moved_keys_percent": 100 * (row["moved_keys"] or 0) / KEYS,
            "moved_tweets": (row["moved_bytes"] or 0) / TWEET_BYTES,
        }
        for row in done.table.to_pylist()
    ]
    return pa.Table.from_pylist(rows)


def totals(table: pa.Table) -> pa.Table:
    """Sum up the 40 minutes of each technique."""
    found = []
    for order, name in dict.fromkeys(zip(table["order"].to_pylist(), table["strategy"].to_pylist(), strict=True)):
        rows = [row for row in table.to_pylist() if (row["order"], row["strategy"]) == (order, name)]
        moved = [row for row in rows if row["moved_tweets"] > 0]
        found.append(
            {
                "order": order,
                "strategy": name,
                "processed in 40 min": 2400 * processed(rows),
                "deviation %": float(np.mean([row["deviation_percent"] for row in rows])),
                "rebalances": len(moved),
                "keys moved %": float(np.mean([row["moved_keys_percent"] for row in moved])) if moved else 0.0,
                "tweets moved": float(np.mean([row["moved_tweets"] for row in moved])) if moved else 0.0,
            }
        )
    return pa.Table.from_pylist(found)


def processed(rows: list[dict[str, Any]]) -> float:
    """Tweets per second over all these windows."""
    return sum(row["tweets"] for row in rows) / sum(row["seconds"] for row in rows)
