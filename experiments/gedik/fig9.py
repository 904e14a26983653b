"""Figure 9: the size of the partitioning function, over σ."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenkeel.report import Finding, Panel
from experiments.experiment import Experiment
from experiments.gedik.growing import mean_of
from experiments.gedik.sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def measure(keys: int, slots: int, tuples_per_key: int, shares: Sequence[float]) -> pa.Table:
    """Both sizes at every σ."""
    points = product(("LCL", "LLL", "LQL"), shares)
    return sizes(
        ({"resources": r, "untracked_share": x, "keys": keys, "slots": slots} for r, x in points), tuples_per_key
    )


def findings(table: pa.Table) -> list[Finding]:
    """How small it is."""
    shares = sorted(set(table["untracked_share"].to_pylist()))

    def of(column: str, resources: str, share: float) -> float:
        return mean_of(table, column, resources=resources, untracked_share=share)

    return [
        Finding.rising(
            "the counter grows as σ falls (LCL)", {f"σ={x:g}": of("counted", "LCL", x) for x in reversed(shares)}
        ),
        Finding.between("it is small at σ = 0.1 (paper: about 2,500 items)", of("counted", "LCL", 0.1), 800, 8000),
        Finding.at_most(
            "LCL and LLL need the same: largest difference",
            max(abs(of("counted", "LCL", x) - of("counted", "LLL", x)) for x in shares),
            0,
        ),
        Finding.at_least(
            "quadratic computation needs many times as many (paper: 50,000 / 2,500)",
            of("counted", "LQL", 0.1) / of("counted", "LCL", 0.1),
            4,
        ),
        Finding.between(
            "the explicit hash has few keys at σ = 0.1 (paper: about 50)", of("explicit", "LCL", 0.1), 15, 100
        ),
        Finding.between(
            "for quadratic computation it has about as many, for the threshold is raised again: ratio at σ = 0.1",
            of("explicit", "LQL", 0.1) / of("explicit", "LCL", 0.1),
            0.5,
            2,
        ),
    ]


EXPERIMENT = Experiment(
    title="Size of the partitioning function, over σ",
    claim="At σ = 0.1 the lossy counter holds about 2,500 of a million keys, 50,000 for quadratic computation, and the "
    "explicit hash about 50, the same for all resource functions. Both grow as σ falls.",
    setup="A lossy counter with the paper's threshold δ and ε = δ/10 sees the tuples of a Zipf stream (z = 1) one by "
    "one; redist builds the explicit hash for 10 channels. A hot key whose place is where the hash puts it anyway "
    "needs no entry, so a few less are counted than are hot.",
    settings={
        "small": {"keys": 100_000, "slots": 1 << 14, "tuples_per_key": 5, "shares": (0.03, 0.1, 0.3, 1.0)},
        "full": {"keys": 1_000_000, "slots": 1 << 17, "tuples_per_key": 10, "shares": (0.01, 0.03, 0.1, 0.3, 1.0)},
    },
    measure=measure,
    findings=findings,
    panels=(
        Panel(
            x="untracked_share",
            y="counted",
            by="resources",
            log_x=True,
            log_y=True,
            x_label="σ",
            y_label="items in the lossy counter",
        ),
        Panel(
            x="untracked_share",
            y="explicit",
            by="resources",
            log_x=True,
            log_y=True,
            x_label="σ",
            y_label="keys in the explicit hash",
        ),
    ),
    remark="The factor between quadratic and linear computation grows with the number of keys: δ is proportional to "
    "1/√(|D| N) for one and to 1/N for the other.",
)
