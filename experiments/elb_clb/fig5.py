"""Figure 5: mean latency by the number of channels."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.report import Finding, Panel, pivot
from experiments.elb_clb.queueing import MODEL, loaded
from experiments.experiment import Experiment

if TYPE_CHECKING:
    from numpy.typing import NDArray


@lru_cache(maxsize=1)
def measure(channels: tuple[int, ...], windows: int, seconds: float, utilisation: float) -> pa.Table:
    """CLB's mean latency on one channel over that of each strategy on n."""
    found = loaded(channels, windows, seconds, utilisation)
    first = found[channels[0]].latencies["CLB"].mean_ms
    return pa.Table.from_pylist(
        [
            {"channels": n, "strategy": name, "mean_ms": one.mean_ms, "ratio": first / one.mean_ms}
            for n, done in found.items()
            for name, one in done.latencies.items()
        ]
    )


def _series(table: pa.Table, strategy: str) -> NDArray[np.float64]:
    return np.array([row["ratio"] for row in table.to_pylist() if row["strategy"] == strategy and row["channels"] > 1])


def findings(table: pa.Table) -> list[Finding]:
    """Who is steady."""
    spread = {name: float(np.std(np.log10(_series(table, name)))) for name in ("CLB", "ELB", "PKG", "UHLB")}
    return [
        Finding.at_least(
            "UHLB fluctuates more than ELB: ratio of the deviations of log₁₀", spread["UHLB"] / spread["ELB"], 1.2
        ),
        Finding.at_least("UHLB fluctuates more than CLB", spread["UHLB"] / spread["CLB"], 1.2),
        Finding.at_least("PKG fluctuates more than ELB", spread["PKG"] / max(spread["ELB"], 1e-9), 1.2),
    ]


EXPERIMENT = Experiment(
    title="Mean latency against the number of channels",
    claim="The ratio of the mean latency on one channel to that on n fluctuates more severely for UHLB and PKG than "
    "for CLB and ELB.",
    setup=MODEL + " Channels are used to 70 % on average, at every n.",
    settings={
        "small": {"channels": (1, 4, 8, 15), "windows": 30, "seconds": 3.0, "utilisation": 0.7},
        "full": {"channels": tuple(range(1, 16)), "windows": 48, "seconds": 60.0, "utilisation": 0.7},
    },
    measure=measure,
    findings=findings,
    panels=(Panel(x="channels", y="ratio", log_y=True, x_label="channels n", y_label="μ₁ / μₙ"),),
    digest=lambda table: pivot(table, "channels", "strategy", "ratio"),
    remark="PKG is steady here: in this model it neither moves state nor pays for merging. The published CLB does not "
    "see unequal means, overloads a channel and lets its queue grow; the form that sees them does not.",
)
