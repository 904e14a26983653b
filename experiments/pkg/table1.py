"""Table I: the data sets."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenkeel.hashing import hash_keys
from evenkeel.report import Finding, Panel
from experiments.experiment import Experiment
from experiments.pkg.datasets import DataSet, graph, log_normals, main_sets

PUBLISHED = {
    "WP": (22e6, 2.9e6, 9.32),
    "TW": (1.2e9, 31e6, 2.67),
    "CT": (690e3, 2.9e3, 3.29),
    "LN1": (10e6, 16e3, 14.71),
    "LN2": (10e6, 1.1e3, 7.01),
    "SL2": (948e3, 82e3, 3.11),
}


def measure(messages: int, log_normal_messages: int) -> pa.Table:
    """Messages, keys and the hottest key's share of each."""
    rows = [_facts(one) for one in chain(main_sets(messages), log_normals(log_normal_messages))]
    edges = graph()
    if edges is not None:
        keys = hash_keys(pq.read_table(edges, columns=["dst"])["dst"])
        _, counts = np.unique(keys, return_counts=True)
        rows.append(_row("SL2", edges.stem, len(keys), counts))
    return pa.Table.from_pylist(rows)


def _facts(one: DataSet) -> dict[str, object]:
    hashes = np.concatenate([part.hashes for window in one.stream.first(one.windows) for part in window.tuples()])
    _, counts = np.unique(hashes, return_counts=True)
    return _row(one.symbol, one.what, len(hashes), counts)


def _row(symbol: str, what: str, messages: int, counts: np.ndarray) -> dict[str, object]:
    published = PUBLISHED[symbol]
    return {
        "symbol": symbol,
        "here": what,
        "messages": messages,
        "keys": len(counts),
        "p1_percent": 100 * float(counts.max()) / messages,
        "paper: messages": published[0],
        "paper: keys": published[1],
        "paper: p1 %": published[2],
    }


def findings(table: pa.Table) -> list[Finding]:
    """LN₁ and LN₂ exactly; stand-ins in their order."""
    of = {row["symbol"]: row for row in table.to_pylist()}
    scale = {s: of[s]["messages"] / 10e6 for s in ("LN1", "LN2")}
    checks = [
        Finding.between(
            f"{s}: the hottest key's share, in % (paper: {PUBLISHED[s][2]})",
            of[s]["p1_percent"],
            PUBLISHED[s][2] * 0.99,
            PUBLISHED[s][2] * 1.01,
        )
        for s in ("LN1", "LN2")
    ]
    checks += [
        Finding.between(
            f"{s}: keys (paper: {PUBLISHED[s][1]:,.0f} among 10 million messages)",
            of[s]["keys"],
            PUBLISHED[s][1] * 0.95,
            PUBLISHED[s][1] * 1.05,
        )
        for s in ("LN1", "LN2")
        if scale[s] >= 1
    ]
    order = {s: of[s]["p1_percent"] for s in ("TW", "WP", "LN1")}
    return [*checks, Finding.rising("TW is skewed least, LN1 most: p₁ in % (paper: 2.67 · 9.32 · 14.71)", order)]


EXPERIMENT = Experiment(
    title="The data sets",
    claim="WP: 22 million messages, 2.9 million keys, the hottest with 9.32 %; TW: 1.2 billion, 31 million, 2.67 %; "
    "CT: 690 thousand, 2.9 thousand, 3.29 %; LN₁ and LN₂: 10 million each, 16 and 1.1 thousand keys, 14.71 and 7.01 %.",
    setup="LN₁ and LN₂ are drawn as the paper says. WP is not public: a Zipf stream with the same p₁ stands in. TW and "
    "CT are not public: `congress2021_words` and `stocknet_cashtag` where EVENKEEL_DATA has them, else generated ones. "
    "SL₂ is the paper's own graph, where EVENKEEL_DATA has it; its p₁ counts edges that arrive.",
    settings={
        "small": {"messages": 400_000, "log_normal_messages": 400_000},
        "full": {"messages": 4_000_000, "log_normal_messages": 10_000_000},
    },
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="symbol", y="p1_percent", by=None, kind="bars", x_label="", y_label="share of the hottest key (%)"),
        Panel(x="symbol", y="keys", by=None, kind="bars", log_y=True, x_label="", y_label="keys"),
    ),
)
