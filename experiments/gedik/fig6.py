"""Figure 6: the number of channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenkeel.report import Finding, Panel, pivot
from experiments.experiment import Experiment
from experiments.gedik.growing import CONSTRUCTED, STRATEGIES, mean_of, sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def measure(keys: int, slots: int, runs: int, channels: Sequence[int]) -> pa.Table:
    """Every strategy on its way to the largest number."""
    table = sweep(({"strategy": s, "keys": keys, "slots": slots} for s in STRATEGIES), runs, at=channels)
    return table.select(["strategy", "channels", "m", "b", "pins"])


def findings(table: pa.Table) -> list[Finding]:
    """How each scales."""
    numbers = sorted(set(table["channels"].to_pylist()))
    most = numbers[-1]
    middle = [n for n in numbers if 5 <= n <= 20]

    def b(strategy: str, n: int) -> float:
        return mean_of(table, "b", strategy=strategy, channels=n)

    def m(strategy: str, n: int) -> float:
        return mean_of(table, "m", strategy=strategy, channels=n)

    return [
        Finding.between(
            "uniform hash moves some N channels' worth: m over N at the most channels (paper: 22 / 32)",
            m("uniform", most) / most,
            0.6,
            1.0,
        ),
        Finding.at_least(
            "consistent hash has the highest imbalance at the most channels: its b over any other's",
            b("consistent", most) / max(b(s, most) for s in STRATEGIES if s != "consistent"),
            1.0,
        ),
        Finding.at_least("it reaches more than 2 there", b("consistent", most), 2.0),
        Finding.rising("it rises with N", {f"N={n}": b("consistent", n) for n in numbers}, slack=0.05),
        Finding.at_least(
            "uniform hash is worse than readj up to 20 channels: the largest ratio of b (paper: 1.36)",
            max(b("uniform", n) / b("readj", n) for n in middle),
            1.15,
        ),
        Finding.at_most(
            "redist's migration stays flat: most m (paper: about 1.15)", max(m("redist", n) for n in numbers), 1.5
        ),
        Finding.at_least(
            "readj and scan migrate more with more channels: the larger of their m at the most (paper: above 3 for "
            "scan)",
            max(m(s, most) for s in ("scan", "readj")),
            1.5,
        ),
        Finding.at_most(
            "readj is balanced best from 5 to 20 channels: its b over the best, on average",
            sum(b("readj", n) / min(b(s, n) for s in CONSTRUCTED) for n in middle) / len(middle),
            1.05,
        ),
    ]


EXPERIMENT = Experiment(
    title="Number of channels: migration and imbalance",
    claim="Uniform hashing's migration grows with N, to 22 times the ideal at 32 channels; consistent hashing's "
    "imbalance grows above 2. redist's migration stays about 1.15 times the ideal, that of scan and readj grows, above "
    "3 for scan at 32. readj is balanced best up to 20 channels, uniform hashing up to 36 % worse.",
    setup="As for Figure 3, measured at several N on the way to 32.",
    settings={
        "small": {"keys": 60_000, "slots": 1 << 14, "runs": 1, "channels": (2, 5, 10, 20, 32)},
        "full": {"keys": 1_000_000, "slots": 1 << 17, "runs": 3, "channels": (2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32)},
    },
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="channels", y="m", log_y=True, reference=1.0, x_label="channels N", y_label="relative migration m"),
        Panel(x="channels", y="b", reference=1.0, x_label="channels N", y_label="relative imbalance b"),
    ),
    digest=lambda table: pivot(table, "channels", "strategy", "b"),
    remark="A hash modulo N moves (N − 1)/N of all state, that is N − 1 fair shares: 31 for 32 channels, where the "
    "paper has 22. scan and readj hardly migrate more with more channels here. The likely reason: both weigh balance "
    "against migration, and with so many channels no placement is balanced at z = 1, so that staying wins.",
)
