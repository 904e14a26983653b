"""Figure 12: construction time, over σ."""

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


def measure(keys: int, slots: int, repeats: int, shares: Sequence[float], resources: str) -> pa.Table:
    """Every construction at every σ."""
    points = product(TIMED, shares)
    return times(
        (
            {"strategy": s, "untracked_share": x, "keys": keys, "slots": slots, "resources": resources}
            for s, x in points
        ),
        repeats,
    )


def findings(table: pa.Table) -> list[Finding]:
    """Who takes long where many keys are explicit."""
    shares = sorted(set(table["untracked_share"].to_pylist()))
    low = shares[0]

    def ms(strategy: str, share: float) -> float:
        return mean_of(table, "milliseconds", strategy=strategy, untracked_share=share)

    return [
        Finding.rising(
            "scan is quickest, readj slowest, at the lowest σ (ms)",
            {s: ms(s, low) for s in ("scan", "redist", "readj")},
        ),
        Finding.at_least(
            "readj takes longer as σ falls: at the lowest over the highest",
            ms("readj", low) / ms("readj", shares[-1]),
            1.5,
        ),
        Finding.at_most("σ = 0.1 takes readj little (paper: below 50 ms)", ms("readj", 0.1), 50),
        Finding.at_most("at the lowest σ redist is bearable (paper: about 500 ms)", ms("redist", low), 500),
    ]


EXPERIMENT = Experiment(
    title="Construction time, over σ",
    claim="Construction takes longer with lower σ: about 10 s for readj at σ = 0.008, 0.5 s for redist, little for "
    "scan; at σ = 0.1 all take below 50 ms.",
    setup="The step from 9 to 10 channels, LQL, the least of some repeats on one core. The time includes the "
    "consistent hash of all slots, which is what `consistent` alone takes.",
    settings={
        "small": {"keys": 100_000, "slots": 1 << 12, "repeats": 1, "shares": (0.008, 0.1, 1.0), "resources": "LQL"},
        "full": {
            "keys": 1_000_000,
            "slots": 1 << 17,
            "repeats": 3,
            "shares": (0.008, 0.01, 0.03, 0.1, 0.3, 1.0),
            "resources": "LQL",
        },
    },
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="untracked_share", y="milliseconds", log_x=True, log_y=True, x_label="σ", y_label="construction (ms)"),
    ),
    digest=lambda table: pivot(table, "untracked_share", "strategy", "milliseconds"),
    remark="The compiled search of readj looks only at pairs of channels that can help, so it takes a fraction of the "
    "paper's time.",
)
