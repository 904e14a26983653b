"""Figure 3 on the engine: throughput over time, beside LPTF and PKG."""

from __future__ import annotations

import pyarrow as pa

from evenkeel.report import Finding, Panel
from experiments.dlb_cep.stories_engine import MODEL, ORDERS, compared, totals
from experiments.dlb_cep.table1_engine import SETTINGS
from experiments.experiment import Experiment

SHOWN = ("DLB-L", "DLB-H", "LPTF", "PKG")


def measure(windows: int, tweets: int, keys: int, work_ms: float) -> pa.Table:
    """Both orders."""
    rows = compared(windows, tweets, keys, work_ms).to_pylist()
    return pa.Table.from_pylist([row for row in rows if row["strategy"] in SHOWN])


def findings(table: pa.Table) -> list[Finding]:
    """Who moves how much, and what that does to the throughput."""
    of = {(row["order"], row["strategy"]): row for row in totals(table).to_pylist()}
    checks = []
    for order, words in ORDERS.items():
        done = {name: of[order, name]["tweets/s"] for name in SHOWN}
        moved = {name: of[order, name]["tweets moved"] for name in ("DLB-H", "DLB-L", "LPTF")}
        checks += [
            Finding.at_least(f"DLB-L gets more done than LPTF ({words})", done["DLB-L"] / done["LPTF"], 1.1),
            Finding.at_least(f"DLB-H gets more done than LPTF ({words})", done["DLB-H"] / done["LPTF"], 1.1),
            Finding.between(f"DLB-H is close to PKG ({words}; paper: 0.99)", done["DLB-H"] / done["PKG"], 0.9, 1.1),
            Finding.rising(
                f"tweets moved by a rebalance ({words}; paper: "
                + ("70,400 · 380,000 at most · 677,886)" if order == "default" else "57,750 · 294,881 · 600,000)"),
                moved,
            ),
        ]
    return [
        *checks,
        Finding.between(
            "LPTF moves most of the state, in % (default order; paper: 76 of the keys)",
            of["default", "LPTF"]["state moved %"],
            60,
            90,
        ),
        Finding.at_most(
            "DLB-L moves far less, in % (paper: at most 30 of the keys)", of["default", "DLB-L"]["state moved %"], 30
        ),
        Finding.at_most(
            "DLB-H hardly any, in % (paper: at most 10 of the keys)", of["default", "DLB-H"]["state moved %"], 10
        ),
    ]


EXPERIMENT = Experiment(
    title="Throughput and retransmissions: DLB beside LPTF and PKG (engine)",
    claim="Both DLB policies keep a high, steady throughput, as PKG does, in both orders. LPTF breaks down at every "
    "rebalance: it moves three quarters of the keys, where DLB-L moves at most 30 % and DLB-H at most 10 %.",
    setup=MODEL + " Tweets moved are the moved share of the bytes of state, of all tweets so far.",
    settings=SETTINGS,
    needs=("pyspark",),
    measure=measure,
    findings=findings,
    panels=tuple(
        Panel(x="window", y=y, where={"order": order}, title=words, x_label="batch", y_label=label)
        for y, label in (("throughput", "tweets/s"), ("moved_tweets", "tweets moved"))
        for order, words in ORDERS.items()
    ),
    digest=totals,
    remark="Moved state rides the shuffle of the next batch instead of coming tweet by tweet from a database, so that "
    "LPTF pays for the carrying alone. At an exponent of 1.5 one key has more than an engine's share: no placement of "
    "whole keys comes near PKG there, and all planners try again in every window.",
)
