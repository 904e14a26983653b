"""Figure 5: throughput by delay, and memory by aggregation period; the part that needs no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.report import Finding, Panel
from evenkeel.sim import Fluid, Routed, Zipf, replay
from experiments.experiment import Experiment

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKERS = 9
SOURCE_RATE = 14_300.0  # tuples/s that the one source sends at most
TECHNIQUES = {"PKG": "pkg", "SG": "shuffle", "KG": "key_grouping"}


def measure(keys: int, messages: int, delays_ms: Sequence[float], windows: int, periods: Sequence[int]) -> pa.Table:
    """What each technique lets through at each delay; and the counters it holds and hands on for each period."""
    stream = Zipf(keys, 1.06, tuples=messages // windows)
    rows = []
    for delay in delays_ms:
        routed = {name: Routed(router, level="tuples", count_pairs=False) for name, router in TECHNIQUES.items()}
        done = replay(stream, routed, channels=WORKERS, windows=3, service=Fluid(1000 / delay))
        for name in TECHNIQUES:
            allowed = done.column(name, "tuples").sum() / done.column(name, "needed_s").sum()
            rows.append(_row("delay", name, delay, throughput=float(min(allowed, SOURCE_RATE))))
    for period in [*periods, windows]:
        routed = {name: Routed(router, level="tuples", flush_every=period) for name, router in TECHNIQUES.items()}
        done = replay(stream, routed, channels=WORKERS, windows=windows)
        for name in TECHNIQUES:
            held, handed = done.column(name, "pairs"), done.column(name, "messages")
            rows.append(
                _row(
                    "period",
                    name,
                    period,
                    counters=float(held.mean()),
                    most=float(held.max()),
                    messages=float(handed.sum()),
                )
            )
    return pa.Table.from_pylist(rows)


def _row(sweep: str, name: str, at: float, **measured: float) -> dict[str, object]:
    nothing = dict.fromkeys(("throughput", "counters", "most", "messages"))
    return {"sweep": sweep, "strategy": name, "at": float(at), **nothing, **measured}


def findings(table: pa.Table) -> list[Finding]:
    """What delay costs each, and what splitting costs in memory."""
    rows = table.to_pylist()

    def of(sweep: str, name: str, column: str) -> list[float]:
        return [row[column] for row in rows if (row["sweep"], row["strategy"]) == (sweep, name)]

    through = {name: np.array(of("delay", name, "throughput")) for name in TECHNIQUES}
    counters = {name: of("period", name, "most")[-1] for name in TECHNIQUES}
    held, handed = (
        {name: np.array(of("period", name, column)) for name in TECHNIQUES} for column in ("counters", "messages")
    )
    return [
        Finding.at_most(
            "PKG is as quick as SG at every delay: largest gap, relative",
            float(np.max(np.abs(through["PKG"] / through["SG"] - 1))),
            0.02,
        ),
        Finding.between(
            "ten times the delay costs KG in throughput (paper: 60 %)",
            100 * (1 - through["KG"][-1] / through["KG"][0]),
            50,
            70,
        ),
        Finding.between(
            "PKG needs more counters than KG: ratio (paper: 1.24)", counters["PKG"] / counters["KG"], 1.05, 1.6
        ),
        Finding.between("SG needs more still: ratio to PKG (paper: 2.0)", counters["SG"] / counters["PKG"], 1.5, 3),
        Finding.at_most(
            "for every period PKG holds less than SG: ratio, the most", float(np.max(held["PKG"] / held["SG"])), 0.95
        ),
        Finding.at_most("and hands on less: ratio, the most", float(np.max(handed["PKG"] / handed["SG"])), 0.95),
        Finding.rising(
            "shorter periods hold fewer counters (PKG)",
            {f"T={row:g}": value for row, value in zip(of("period", "PKG", "at"), held["PKG"], strict=True)},
        ),
    ]


EXPERIMENT = Experiment(
    title="Throughput by delay, memory by aggregation period (model)",
    claim="When the delay per tuple grows tenfold, KG loses 60 % of its throughput, PKG and SG 37 %. PKG needs a "
    "quarter to a third more counters than KG, SG two and a half times as many. For every aggregation period PKG holds "
    "less than SG.",
    setup="The queueing part, without a cluster: 9 workers, delays from 0.1 to 1 ms, and a source that sends at most "
    "14,300 tuples/s, chosen so that PKG loses what it does in the paper; what KG loses follows. WP is not public: a "
    "Zipf stream with its p₁ and its ratio of messages to keys stands in. A period is a number of windows; the last "
    "one is the whole stream.",
    settings={
        "small": {"keys": 60_000, "messages": 450_000, "delays_ms": (0.1, 0.4, 1.0), "windows": 20, "periods": (1, 5)},
        "full": {
            "keys": 1_450_000,
            "messages": 11_000_000,
            "delays_ms": (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0),
            "windows": 60,
            "periods": (1, 3, 6, 10),
        },
    },
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="at", y="throughput", where={"sweep": "delay"}, x_label="delay (ms)", y_label="tuples/s"),
        Panel(
            x="at",
            y="counters",
            where={"sweep": "period"},
            x_label="aggregation period (windows)",
            y_label="counters held",
            log_y=True,
        ),
        Panel(
            x="at",
            y="messages",
            where={"sweep": "period"},
            x_label="aggregation period (windows)",
            y_label="partial counts handed on",
            log_y=True,
        ),
    ),
    columns=3,
    remark="Latency, and throughput with aggregation, are for the engine on Spark to tell.",
)
