"""Figure 14: construction time, over skew."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenkeel.report import Finding, Panel, pivot
from experiments.experiment import Experiment
from experiments.gedik.growing import CONSTRUCTED, mean_of
from experiments.gedik.times import TIMED, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def measure(keys: int, slots: int, repeats: int, exponents: Sequence[float], untracked_share: float) -> pa.Table:
    """Every construction at every skew."""
    points = product(TIMED, exponents)
    return times(
        (
            {"strategy": s, "exponent": z, "keys": keys, "slots": slots, "untracked_share": untracked_share}
            for s, z in points
        ),
        repeats,
    )


def findings(table: pa.Table) -> list[Finding]:
    """Who feels skew."""
    exponents = sorted(set(table["exponent"].to_pylist()))
    flat = [z for z in exponents if z <= 0.8]

    def ms(strategy: str, z: float) -> float:
        return mean_of(table, "milliseconds", strategy=strategy, exponent=z)

    def rise(strategy: str) -> float:
        return ms(strategy, exponents[-1]) / min(ms(strategy, z) for z in flat)

    return [
        Finding.at_most("scan hardly feels skew: its time at z = 1 over the least up to 0.8", rise("scan"), 2.0),
        Finding.at_most(
            "all are flat up to z = 0.8: longest over shortest there, the most",
            max(max(ms(s, z) for z in flat) / min(ms(s, z) for z in flat) for s in CONSTRUCTED),
            2.0,
        ),
        Finding.at_least("readj rises beyond it", rise("readj"), 1.05),
        Finding.at_least("and faster than scan", rise("readj") / rise("scan"), 1.0),
    ]


EXPERIMENT = Experiment(
    title="Construction time, over skew",
    claim="scan's time hardly depends on skew. redist and readj are flat up to z = 0.8 and then rise, readj faster.",
    setup="As for Figure 12 with LCL, over the Zipf exponent.",
    settings={
        "small": {
            "keys": 50_000,
            "slots": 1 << 12,
            "repeats": 1,
            "exponents": (0.5, 0.8, 1.0),
            "untracked_share": 0.01,
        },
        "full": {
            "keys": 1_000_000,
            "slots": 1 << 12,
            "repeats": 3,
            "exponents": (0.2, 0.4, 0.6, 0.8, 0.9, 1.0),
            "untracked_share": 0.01,
        },
    },
    measure=measure,
    findings=findings,
    panels=(Panel(x="exponent", y="milliseconds", log_y=True, x_label="Zipf exponent z", y_label="construction (ms)"),),
    digest=lambda table: pivot(table, "exponent", "strategy", "milliseconds"),
    remark="σ = 0.01 and fewer slots than elsewhere, so that there are enough explicit keys to be seen beside the "
    "ring. readj does not simply take longer with more skew: where balance is out of reach, fewer readjustments may "
    "help, and it ends earlier.",
)
