"""Figure 10: the size of the partitioning function, over skew."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.report import Finding, Panel
from experiments.experiment import Experiment
from experiments.gedik.growing import mean_of
from experiments.gedik.sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def measure(
    keys: int, slots: int, tuples_per_key: int, exponents: Sequence[float], quadratic_exponents: Sequence[float]
) -> pa.Table:
    """Both sizes at every skew."""
    points = [*product(("LCL", "LLL"), exponents), *product(("LQL",), quadratic_exponents)]
    return sizes(({"resources": r, "exponent": z, "keys": keys, "slots": slots} for r, z in points), tuples_per_key)


def findings(table: pa.Table) -> list[Finding]:
    """What grows with skew, and what does not."""
    exponents = sorted({row["exponent"] for row in table.to_pylist() if row["resources"] == "LCL"})
    counted = [mean_of(table, "counted", resources="LCL", exponent=z) for z in exponents]
    explicit = [mean_of(table, "explicit", resources="LCL", exponent=z) for z in exponents]
    slopes = np.diff(explicit) / np.diff(exponents)
    return [
        Finding.at_most("skew hardly changes the counter: largest over least (LCL)", max(counted) / min(counted), 3),
        Finding.at_most(
            "at the highest skew it shrinks: counted there over the most", counted[-1] / max(counted), 0.99
        ),
        Finding.rising(
            "the explicit hash grows (LCL)", {f"z={z:g}": n for z, n in zip(exponents, explicit, strict=True)}
        ),
        Finding.at_least(
            "ever faster: the last slope over the mean of those before", slopes[-1] / max(slopes[:-1].mean(), 1e-9), 1.5
        ),
        Finding.at_most(
            "LCL and LLL need the same: largest difference of both",
            max(
                abs(
                    mean_of(table, column, resources="LCL", exponent=z)
                    - mean_of(table, column, resources="LLL", exponent=z)
                )
                for column in ("counted", "explicit")
                for z in exponents
            ),
            0,
        ),
    ]


EXPERIMENT = Experiment(
    title="Size of the partitioning function, over skew",
    claim="Skew hardly changes the number of items in the lossy counter; it falls a little for high skew. The explicit "
    "hash grows with skew, ever faster. LCL and LLL are the same.",
    setup="As for Figure 9 with σ = 0.1, over the Zipf exponent.",
    settings={
        "small": {
            "keys": 50_000,
            "slots": 1 << 14,
            "tuples_per_key": 5,
            "exponents": (0.4, 0.6, 0.8, 1.0),
            "quadratic_exponents": (0.25, 0.5),
        },
        "full": {
            "keys": 1_000_000,
            "slots": 1 << 17,
            "tuples_per_key": 10,
            "exponents": (0.1, 0.25, 0.4, 0.6, 0.8, 0.9, 1.0),
            "quadratic_exponents": (0.1, 0.25, 0.4, 0.5),
        },
    },
    measure=measure,
    findings=findings,
    panels=(
        Panel(
            x="exponent",
            y="counted",
            by="resources",
            log_y=True,
            x_label="Zipf exponent z",
            y_label="items in the lossy counter",
        ),
        Panel(
            x="exponent", y="explicit", by="resources", x_label="Zipf exponent z", y_label="keys in the explicit hash"
        ),
    ),
    remark="The explicit hash grows with skew; with few keys and few points its growth is about linear from z = 0.6 "
    "on.",
)
