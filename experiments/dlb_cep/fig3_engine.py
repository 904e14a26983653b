"""Figure 3 on the engine: throughput over time, beside LPTF and PKG."""

from __future__ import annotations

import pyarrow as pa

from evenkeel.report import Finding, Panel
from experiments.dlb_cep.fig3 import SHOWN, done_and_moved
from experiments.dlb_cep.stories_engine import MODEL, ORDERS, compared, totals
from experiments.dlb_cep.table1_engine import SETTINGS
from experiments.experiment import Experiment


def measure(windows: int, tweets: int, keys: int, work_ms: float) -> pa.Table:
    """Both orders."""
    rows = compared(windows, tweets, keys, work_ms).to_pylist()
    return pa.Table.from_pylist([row for row in rows if row["strategy"] in SHOWN])


def findings(table: pa.Table) -> list[Finding]:
    """Who moves how much, and what that does to the throughput."""
    of = {(row["order"], row["strategy"]): row for row in totals(table).to_pylist()}
    return [
        *done_and_moved(of, "tweets/s"),
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
