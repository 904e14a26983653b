"""Figure 11: the size of the partitioning function, over the number of channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenkeel.report import Finding, Panel
from experiments.experiment import Experiment
from experiments.gedik.growing import mean_of
from experiments.gedik.sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def measure(keys: int, slots: int, tuples_per_key: int, channels: Sequence[int]) -> pa.Table:
    """Both sizes at every N."""
    return sizes(({"channels": n, "keys": keys, "slots": slots} for n in channels), tuples_per_key)


def findings(table: pa.Table) -> list[Finding]:
    """That both grow in proportion to N."""
    numbers = table["channels"].to_pylist()
    few, many = numbers[0], numbers[-1]

    def growth(column: str) -> float:
        return (mean_of(table, column, channels=many) / mean_of(table, column, channels=few)) / (many / few)

    return [
        Finding.between("the counter grows linearly: its growth over that of N", growth("counted"), 0.6, 1.4),
        Finding.between("so does the explicit hash", growth("explicit"), 0.6, 1.4),
    ]


EXPERIMENT = Experiment(
    title="Size of the partitioning function, over channels",
    claim="The more channels, the lower the threshold: both the lossy counter and the explicit hash grow linearly with "
    "N.",
    setup="As for Figure 9 with LCL and σ = 0.1, over N.",
    settings={
        "small": {"keys": 100_000, "slots": 1 << 14, "tuples_per_key": 10, "channels": (4, 8, 16, 32)},
        "full": {"keys": 1_000_000, "slots": 1 << 17, "tuples_per_key": 10, "channels": (4, 8, 12, 16, 20, 24, 28, 32)},
    },
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="channels", y="counted", by=None, x_label="channels N", y_label="items in the lossy counter"),
        Panel(x="channels", y="explicit", by=None, x_label="channels N", y_label="keys in the explicit hash"),
    ),
    remark="A lossy counter drops entries when one of its windows ends, and it is looked at wherever the stream ends: "
    "its size varies by that.",
)
