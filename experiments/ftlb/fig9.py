"""Figure 9: planning time and migration cost for different numbers of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.report import Finding, Panel, pivot
from experiments.experiment import Experiment
from experiments.ftlb.replicas import planned, table_of, warmed_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def measure(keys: Sequence[int], tasks: int, windows: int, rate: float, theta_max: float) -> pa.Table:
    """Every planner for every number of keys."""
    warmed_up()
    return table_of([row for k in keys for row in planned(k, theta_max, tasks, windows, rate)])


def findings(table: pa.Table) -> list[Finding]:
    """What more keys cost."""
    rows = table.to_pylist()
    numbers = sorted({row["keys"] for row in rows})

    def of(column: str, strategy: str, keys: int) -> float:
        return next(row[column] for row in rows if (row["strategy"], row["keys"]) == (strategy, keys))

    few, many = numbers[0], numbers[-1]
    ratio = {
        s: float(np.mean([of("plan_ms", s, k) / of("plan_ms", "MRT", k) for k in numbers])) for s in ("FTLB", "Mixed")
    }
    return [
        *(
            Finding.at_least(
                f"more keys take longer: {s}, the most over the fewest",
                of("plan_ms", s, many) / of("plan_ms", s, few),
                1.5,
            )
            for s in ("FTLB", "Mixed", "MRT")
        ),
        Finding.at_most(
            "FTLB is closer to MRT than Mixed is: time over MRT's, FTLB less Mixed", ratio["FTLB"] - ratio["Mixed"], 0.0
        ),
        Finding.at_most(
            "FTLB moves least: its share over the least of Mixed and MRT, the most",
            max(
                of("moved_percent", "FTLB", k) / min(of("moved_percent", s, k) for s in ("Mixed", "MRT"))
                for k in numbers
            ),
            1.0,
        ),
    ]


EXPERIMENT = Experiment(
    title="Planning time and migration cost, over the number of keys",
    claim="With more keys all planners take longer, Mixed the longest; FTLB is close to MRT. FTLB moves least at every "
    "number of keys.",
    setup="As for Figure 8 with θ_max = 0.08, over the number of keys K.",
    settings={
        "small": {"keys": (5000, 50_000), "tasks": 10, "windows": 5, "rate": 0.5, "theta_max": 0.08},
        "full": {"keys": (5000, 10_000, 100_000, 1_000_000), "tasks": 10, "windows": 8, "rate": 0.5, "theta_max": 0.08},
    },
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="keys", y="plan_ms", log_x=True, log_y=True, x_label="keys K", y_label="planning (ms)"),
        Panel(x="keys", y="moved_percent", log_x=True, x_label="keys K", y_label="state moved (%)"),
    ),
    digest=lambda table: pivot(table, "keys", "strategy", "moved_percent"),
    remark="Planning time differs as in Figure 8.",
)
