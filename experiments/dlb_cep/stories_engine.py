"""First story detection on the engine: the real operator, five techniques, two orders of tweets."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.metrics import relative_std_percent
from evenkeel.operators.first_story import first_story, lsh_keys
from evenkeel.planning import DlbH, DlbL, Lptf
from experiments.dlb_cep.stories import texts
from experiments.engine import ENGINE, WORK, Paced, eager, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evenkeel.control import Controller
    from experiments.engine import Batch

__all__ = ["MODEL", "ORDERS", "compared", "totals"]

THRESHOLD = 15.0
PLANNERS = {
    "DLB-L": DlbL(threshold=THRESHOLD),
    "DLB-H": DlbH(threshold=THRESHOLD),
    "LPTF": Lptf(threshold=THRESHOLD),
}
RUNS = {**dict.fromkeys((*PLANNERS, "PKG", "KG"), 5), "KG, 6 engines": 6}
ORDERS = {"default": "default order", "zipf": "periodic Zipf"}
PHASES = (0.2, 1.5, 1.5)  # exponents: five minutes, then twice as long
MODEL = (
    ENGINE + " Each engine is a channel with the real first story operator (similarity below 0.2 to a key's last 500 "
    "tweets), which works off 250 tweets/s at full scale. Real tweets (`stocknet_tweets`) where EVENKEEL_DATA has "
    "them, else texts about topics that come and go, keyed by locality-sensitive hashing. A statistics window is one "
    "batch. The periodic Zipf draws keys with an exponent of 0.2 for a third of a period, then of 1.5, and takes a "
    "tweet with each; it follows the default order in the same query, so that none of its tweets is new. PKG gives the "
    "results of parts of keys, as they are."
)


@lru_cache(maxsize=1)
def compared(windows: int, tweets: int, keys: int, work_ms: float) -> pa.Table:
    """Give throughput, events, deviation and retransmissions of every run in every batch, one order after the other."""
    batches = [batch for order in ORDERS for batch in _batches(order, windows, tweets, keys, work_ms)]
    rows = []
    for name, engines in RUNS.items():
        for number, row in enumerate(_rows(_detected(batches, name, engines))):
            order = list(ORDERS)[number // windows]
            rows.append({"order": order, "strategy": name, "window": number % windows, **row})
    return pa.Table.from_pylist(rows)


def _detected(batches: Sequence[pa.Table], name: str, engines: int) -> list[Batch]:
    strategy: str | Controller = {"PKG": "pkg"}.get(name, "key_grouping")
    if name in PLANNERS:
        strategy = eager(PLANNERS[name])
    results: dict[str, Any] = {"split_results": "partial"} if name == "PKG" else {}
    detector = Paced(first_story())
    return run(batches, lambda rows: rows.apply(detector, strategy=strategy, channels=engines, **results))


def _rows(done: Sequence[Batch]) -> list[dict[str, Any]]:
    rows = []
    for window, batch in enumerate(done):
        held = done[window - 1].held_bytes if window else 0
        moved = batch.moved_bytes / held if held else 0.0
        rows.append(
            {
                "throughput": 1000 * batch.tuples / batch.ms,
                "seconds": batch.ms / 1000,
                "tweets": batch.tuples,
                "deviation_percent": float(relative_std_percent(batch.loads)),
                "events": batch.results,
                "moved_percent": 100 * moved,
                "moved_tweets": moved * sum(before.tuples for before in done[:window]),
            }
        )
    return rows


def _batches(order: str, windows: int, tweets: int, keys: int, work_ms: float) -> list[pa.Table]:
    every = texts(windows * tweets).slice(0, windows * tweets)
    key_of = lsh_keys(every, keys)
    rows = pa.table({"key": key_of, "text": every, WORK: np.full(len(every), work_ms)})
    if order == "zipf":
        rows = rows.take(pa.array(_by_zipf(np.asarray(key_of), windows, tweets)))
    return [rows.slice(window * tweets, tweets) for window in range(windows)]


def _by_zipf(key_of: NDArray[np.int64], windows: int, tweets: int) -> NDArray[np.int64]:
    """Draw keys by the exponent of each window's phase, and for each a tweet that has it."""
    rng = np.random.default_rng(7)
    by_key = np.argsort(key_of, kind="stable")
    found, starts, counts = np.unique(key_of[by_key], return_index=True, return_counts=True)
    rank = rng.permutation(len(found))
    chosen, periods = [], windows // 6 or 1
    for window in range(windows):
        exponent = PHASES[window * len(PHASES) * periods // windows % len(PHASES)]
        shares = 1 / np.arange(1, len(found) + 1.0) ** exponent
        drawn = rank[rng.choice(len(found), tweets, p=shares / shares.sum())]
        chosen.append(by_key[starts[drawn] + rng.integers(0, counts[drawn])])
    return np.concatenate(chosen)


def totals(table: pa.Table) -> pa.Table:
    """Sum up each run and order; the first batch, which warms up, is left out but for the events."""
    found = []
    for order, name in dict.fromkeys(zip(table["order"].to_pylist(), table["strategy"].to_pylist(), strict=True)):
        rows = [row for row in table.to_pylist() if (row["order"], row["strategy"]) == (order, name)]
        timed = rows[1:]
        moved = [row for row in timed if row["moved_tweets"] > 0]
        found.append(
            {
                "order": order,
                "strategy": name,
                "tweets/s": sum(row["tweets"] for row in timed) / sum(row["seconds"] for row in timed),
                "first stories": sum(row["events"] for row in rows),
                "deviation %": float(np.mean([row["deviation_percent"] for row in timed])),
                "rebalances": len(moved),
                "state moved %": float(np.mean([row["moved_percent"] for row in moved])) if moved else 0.0,
                "tweets moved": float(np.mean([row["moved_tweets"] for row in moved])) if moved else 0.0,
            }
        )
    return pa.Table.from_pylist(found)
