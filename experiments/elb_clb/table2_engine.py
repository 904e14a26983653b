"""Table 2 on the engine: latencies while the stream grows."""

from __future__ import annotations

import pyarrow as pa

from evenkeel.metrics import summarise_latency
from evenkeel.report import Finding, Panel
from experiments.elb_clb.words_engine import MODEL, grown
from experiments.engine import latencies_ms
from experiments.experiment import Experiment


def measure(rates: tuple[int, int], windows: int, seconds: float, utilisation: float, period: int) -> pa.Table:
    """The latencies of the whole run, and what moved."""
    rows = []
    for name, batches in grown(rates, windows, seconds, utilisation, period).items():
        one = summarise_latency(*latencies_ms(batches, 1000 * seconds))
        rows.append(
            {
                "strategy": name,
                "max": one.max_ms,
                "mean": one.mean_ms,
                "median": one.median_ms,
                "95 %": one.p95_ms,
                "channels at the end": len(batches[-1].loads),
                "moved, % of the state": 100.0
                * sum(batch.moved_bytes for batch in batches)
                / max(1, sum(batch.held_bytes for batch in batches)),
            }
        )
    return pa.Table.from_pylist(rows)


def findings(table: pa.Table) -> list[Finding]:
    """Who waits how long, and who moves how much."""
    of = {row["strategy"]: row for row in table.to_pylist()}
    moved = {name: row["moved, % of the state"] for name, row in of.items()}
    return [
        Finding.at_most(
            "ELB's mean is below UHLB's: ratio (paper: 0.72)", of["ELB"]["mean"] / of["UHLB"]["mean"], 0.95
        ),
        Finding.at_most(
            "CLB's mean is below UHLB's: ratio (paper: 0.75)", of["CLB"]["mean"] / of["UHLB"]["mean"], 0.95
        ),
        Finding.at_most("ELB's mean is below PKG's: ratio (paper: 0.79)", of["ELB"]["mean"] / of["PKG"]["mean"], 0.95),
        Finding.at_most("ELB's 95 % are below CLB's: ratio (paper: 0.61)", of["ELB"]["95 %"] / of["CLB"]["95 %"], 0.95),
        Finding.at_least(
            "few tuples wait very long: ELB's maximum over its median (paper: 3,400)",
            of["ELB"]["max"] / of["ELB"]["median"],
            100,
        ),
        Finding.at_most(
            "ELB moves less state than UHLB: ratio (paper: 0.60)", moved["ELB"] / max(moved["UHLB"], 1e-9), 0.8
        ),
    ]


EXPERIMENT = Experiment(
    title="Latencies while the stream grows (engine)",
    claim="ELB and CLB have lower mean latencies than PKG and UHLB (0.73 and 0.76 against 0.92 and 1.01 ms). Most "
    "tuples take around a millisecond; a few take more than a second, because migrations hold them up.",
    setup=MODEL + " The rate grows linearly, and the controller adds channels whenever the average one has more than a "
    "fifth over its share. A batch's tuples come evenly within an interval, and a batch begins when that is over and "
    "the batch before is done: batch times are measured, the waiting follows from them. PKG, whose N is fixed, runs at "
    "the average rate and N. To have 16 tasks at most, the rate ends at 10,000/s, not at 16,000/s.",
    settings={
        "small": {"rates": (1000, 2000), "windows": 3, "seconds": 0.8, "utilisation": 0.4, "period": 2},
        "full": {"rates": (1000, 10_000), "windows": 12, "seconds": 3.0, "utilisation": 0.7, "period": 4},
    },
    needs=("pyspark",),
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="strategy", y="mean", by=None, kind="bars", x_label="", y_label="mean latency (ms)"),
        Panel(x="strategy", y="max", by=None, kind="bars", x_label="", y_label="longest latency (ms)"),
        Panel(
            x="strategy", y="moved, % of the state", by=None, kind="bars", x_label="", y_label="moved per window (%)"
        ),
    ),
    columns=3,
    remark="A micro-batch gives all its results at its end, so that no tuple waits less than its batch, and the "
    "longest wait is a small multiple of the median where the paper has three orders of magnitude. Migrations ride the "
    "shuffle of an ordinary batch and pause nothing: what UHLB pays for moving much is the carrying alone. Times at "
    "small scale are mostly Spark's own.",
)
