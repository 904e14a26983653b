"""Figure 5: the frequency threshold scaler σ."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenkeel.report import Finding, Panel, pivot
from experiments.experiment import Experiment
from experiments.gedik.growing import CONSTRUCTED, STRATEGIES, mean_of, sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def measure(keys: int, slots: int, runs: int, shares: Sequence[float]) -> pa.Table:
    """Every strategy at every σ."""
    table = sweep(
        (
            {"strategy": s, "resources": r, "untracked_share": share, "keys": keys, "slots": slots}
            for r, s, share in product(("LCL", "LQL"), STRATEGIES, shares)
        ),
        runs,
    )
    return table.select(["resources", "strategy", "untracked_share", "m", "b", "pins"])


def findings(table: pa.Table) -> list[Finding]:
    """What a lower σ buys, and what it costs."""
    shares = sorted(set(table["untracked_share"].to_pylist()))
    low, high = shares[0], shares[-1]

    def mean(column: str, share: float, resources: str = "LCL", strategies: Sequence[str] = CONSTRUCTED) -> float:
        values = [mean_of(table, column, strategy=s, resources=resources, untracked_share=share) for s in strategies]
        return sum(values) / len(values)

    sure = ("scan", "redist")
    gain, gain_quadratic = (mean("b", high, r) / mean("b", 0.1, r) for r in ("LCL", "LQL"))
    return [
        Finding.at_most(
            "lower σ, lower imbalance: b at the lowest over that at the highest", mean("b", low) / mean("b", high), 0.9
        ),
        Finding.at_least(
            "lower σ, more migration: m at the lowest over that at the highest", mean("m", low) / mean("m", high), 1.1
        ),
        Finding.at_most(
            "σ = 0.1 has most of the gain: b there over that at the lowest σ", mean("b", 0.1) / mean("b", low), 1.25
        ),
        Finding.at_least(
            "imbalance jumps from σ = 0.1 to 1 for quadratic computation more than for linear state: ratio of the "
            "jumps",
            gain_quadratic / gain,
            1.2,
        ),
        Finding.at_least(
            "at the lowest σ readj no longer keeps up: its b over that of scan and redist",
            mean("b", low, strategies=("readj",)) / mean("b", low, strategies=sure),
            1.0,
        ),
        Finding.rising(
            "of the three, redist migrates least and scan most: m averaged over all σ, LCL",
            {
                s: sum(mean("m", share, strategies=(s,)) for share in shares) / len(shares)
                for s in ("redist", "readj", "scan")
            },
            slack=0.02,
        ),
    ]


EXPERIMENT = Experiment(
    title="Frequency threshold scaler σ: migration and imbalance",
    claim="A lower σ makes more keys explicit, which lowers the imbalance and raises the migration; σ = 0.1 is a good "
    "compromise. For quadratic computation the imbalance jumps between 0.25 and 0.5. At very low σ readj does not get "
    "better any more. redist migrates least of the three, scan most.",
    setup="As for Figure 3, over σ, the part of the tolerated imbalance that keys left to the hash may use up.",
    settings={
        "small": {"keys": 60_000, "slots": 1 << 14, "runs": 1, "shares": (0.01, 0.1, 1.0)},
        "full": {"keys": 1_000_000, "slots": 1 << 17, "runs": 2, "shares": (0.01, 0.03, 0.1, 0.25, 0.5, 1.0)},
    },
    measure=measure,
    findings=findings,
    panels=tuple(
        Panel(
            x="untracked_share",
            y=y,
            where={"resources": r},
            title=r,
            x_label="σ",
            y_label={"m": "relative migration m", "b": "relative imbalance b"}[y],
            log_x=True,
            log_y=y == "m",
            reference=1.0,
        )
        for r, y in product(("LCL", "LQL"), ("m", "b"))
    ),
    digest=lambda table: pivot(table, ["resources", "untracked_share"], "strategy", "b"),
    remark="Which of the three migrates least is a matter of some percent, and of the keys drawn.",
)
