"""Figure 5 on the engine: mean latency by the number of channels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenkeel.metrics import summarise_latency
from evenkeel.report import Finding, Panel, pivot
from experiments.elb_clb.words_engine import MODEL, STRATEGIES, loaded
from experiments.engine import latencies_ms
from experiments.experiment import Experiment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from experiments.experiment import Scale

LEAST_SWING = 0.004  # one per cent; what is steadier than that cannot be told apart


def measure(channels: tuple[int, ...], windows: int, seconds: float, utilisation: float, period: int) -> pa.Table:
    """CLB's mean latency on one channel over that of each strategy on n."""
    found = loaded(channels, windows, seconds, utilisation, period)
    mean = {at: summarise_latency(*latencies_ms(batches, 1000 * seconds)).mean_ms for at, batches in found.items()}
    first = mean[1, "CLB"]
    return pa.Table.from_pylist(
        [
            {
                "channels": n,
                "strategy": name,
                "mean_ms": mean.get((n, name), first),
                "ratio": first / mean.get((n, name), first),
            }
            for n in channels
            for name in STRATEGIES
        ]
    )


def findings(table: pa.Table) -> list[Finding]:
    """Who is steady."""
    rows = table.to_pylist()
    swing = dict.fromkeys(STRATEGIES, LEAST_SWING)
    for row in rows:
        swing[row["strategy"]] = max(swing[row["strategy"]], abs(math.log10(row["ratio"])))
    said = "strays further from the latency on one channel than"
    return [
        Finding.at_least(f"UHLB {said} ELB: largest |log₁₀ of the ratio|, relative", swing["UHLB"] / swing["ELB"], 1.2),
        Finding.at_least(f"UHLB {said} CLB", swing["UHLB"] / swing["CLB"], 1.2),
        Finding.at_least(f"PKG {said} ELB", swing["PKG"] / swing["ELB"], 1.2),
        Finding.at_least(f"PKG {said} CLB", swing["PKG"] / swing["CLB"], 1.2),
    ]


SETTINGS: Mapping[Scale, Mapping[str, Any]] = {
    "small": {"channels": (1, 6), "windows": 1, "seconds": 0.8, "utilisation": 0.4, "period": 2},
    "full": {"channels": (1, 2, 4, 8, 12, 15), "windows": 6, "seconds": 3.0, "utilisation": 0.7, "period": 4},
}
EXPERIMENT = Experiment(
    title="Mean latency against the number of channels (engine)",
    claim="The ratio of the mean latency on one channel to that on n fluctuates more severely for UHLB and PKG than "
    "for CLB and ELB.",
    setup=MODEL + " The rate is in proportion to the channels. Latencies follow from the measured batch times as for "
    "Table 2.",
    settings=SETTINGS,
    needs=("pyspark",),
    measure=measure,
    findings=findings,
    panels=(Panel(x="channels", y="ratio", log_y=True, x_label="channels n", y_label="μ₁ / μₙ", reference=1.0),),
    digest=lambda table: pivot(table, "channels", "strategy", "ratio"),
    remark="Half an interval of every latency is the wait for it to end, which all strategies share. PKG splits keys "
    "in a first stage and merges them in a second, with a second shuffle in each batch. Times at small scale are "
    "mostly Spark's own.",
)
