"""Figure 13: construction time, over the number of channels."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenkeel.report import Finding, Panel, pivot
from experiments.experiment import Experiment
from experiments.gedik.growing import mean_of
from experiments.gedik.times import TIMED, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def measure(keys: int, slots: int, repeats: int, channels: Sequence[int]) -> pa.Table:
    """Every construction at every N."""
    points = product(TIMED, channels)
    return times(({"strategy": s, "channels": n, "keys": keys, "slots": slots} for s, n in points), repeats)


def findings(table: pa.Table) -> list[Finding]:
    """What the explicit hash costs besides the ring."""
    numbers = sorted(set(table["channels"].to_pylist()))
    few, many = numbers[0], numbers[-1]

    def ms(strategy: str, n: int) -> float:
        return mean_of(table, "milliseconds", strategy=strategy, channels=n)

    return [
        *(
            Finding.at_least(
                f"{s} takes longer with more channels: at the most over the least", ms(s, many) / ms(s, few), 1.2
            )
            for s in ("redist", "readj", "consistent")
        ),
        Finding.at_most(
            "scan costs about as much as the ring itself: both together over the ring, most channels (paper: 2)",
            ms("scan", many) / ms("consistent", many),
            4,
        ),
        Finding.at_least("readj costs more than scan at the most channels", ms("readj", many) / ms("scan", many), 1.0),
    ]


EXPERIMENT = Experiment(
    title="Construction time, over channels",
    claim="All constructions grow faster than linearly with N. scan is cheapest: building the explicit hash takes as "
    "long as building the consistent hash. redist and readj take significantly longer.",
    setup="As for Figure 12 with LCL and σ = 0.1, over N; the ring has 1000 replicas per channel.",
    settings={
        "small": {"keys": 50_000, "slots": 1 << 12, "repeats": 1, "channels": (4, 32)},
        "full": {"keys": 1_000_000, "slots": 1 << 17, "repeats": 3, "channels": (2, 4, 8, 16, 32)},
    },
    measure=measure,
    findings=findings,
    panels=(Panel(x="channels", y="milliseconds", log_y=True, x_label="channels N", y_label="construction (ms)"),),
    digest=lambda table: pivot(table, "channels", "strategy", "milliseconds"),
    remark="With so few explicit keys most of the time is bookkeeping that the three have in common, so they are close "
    "to each other, and noise may decide between them.",
)
