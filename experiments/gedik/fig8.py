"""Figure 8: domain size."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenkeel.report import Finding, Panel, pivot
from experiments.experiment import Experiment
from experiments.gedik.growing import CONSTRUCTED, STRATEGIES, best, mean_of, sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def measure(domains: Sequence[int], slots: int, runs: int) -> pa.Table:
    """Every strategy for every number of keys."""
    table = sweep(({"strategy": s, "keys": k, "slots": slots} for k, s in product(domains, STRATEGIES)), runs)
    return table.select(["keys", "strategy", "m", "b", "pins"])


def findings(table: pa.Table) -> list[Finding]:
    """What more keys make easier."""
    domains = sorted(set(table["keys"].to_pylist()))
    few, many = domains[0], domains[-1]
    mean = {k: sum(mean_of(table, "b", strategy=s, keys=k) for s in CONSTRUCTED) / 3 for k in domains}
    moved = {k: sum(mean_of(table, "m", strategy=s, keys=k) for s in CONSTRUCTED) / 3 for k in domains}
    ahead = max(
        best(table, "b", CONSTRUCTED, keys=k) / best(table, "b", ("uniform", "consistent"), keys=k) for k in domains
    )
    return [
        Finding.at_most("the three are balanced better than both hashes: best b over theirs, the most", ahead, 1.0),
        Finding.at_most(
            "more keys are easier to balance: b of the three at the most over the least", mean[many] / mean[few], 1.0
        ),
        Finding.at_least("yet at z = 1 none reaches the tolerance: least b", min(mean.values()), 1.0),
        Finding.at_least(
            "uniform hash moves many times the ideal (paper: 6.5 to 7.5)",
            min(mean_of(table, "m", strategy="uniform", keys=k) for k in domains),
            6.5,
        ),
        Finding.at_most(
            "consistent hash moves less than the ideal, as the hottest keys tend to stay: most m",
            max(mean_of(table, "m", strategy="consistent", keys=k) for k in domains),
            1.0,
        ),
        Finding.between("the three move somewhat more: m at the most keys (paper: 1.25)", moved[many], 1.0, 1.6),
        Finding.at_most(
            "and more with few keys: m at the most over the least (paper: 1.25 / 2.2)", moved[many] / moved[few], 1.0
        ),
    ]


EXPERIMENT = Experiment(
    title="Domain size: imbalance and migration",
    claim="The three constructions are balanced better than both hashes at every domain size. Balance gets easier with "
    "more keys, and flattens; at z = 1 none reaches the tolerance. Uniform hashing migrates 6.5 to 7.5 times the "
    "ideal, consistent hashing less than the ideal, the three 2.2 to 1.25 times, less with more keys.",
    setup="As for Figure 3, over the number of keys; up to 10 million at full scale (the paper: 100 million).",
    settings={
        "small": {"domains": (10_000, 100_000), "slots": 1 << 14, "runs": 3},
        "full": {"domains": (10_000, 100_000, 1_000_000, 10_000_000), "slots": 1 << 17, "runs": 2},
    },
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="keys", y="b", log_x=True, reference=1.0, x_label="keys |D|", y_label="relative imbalance b"),
        Panel(
            x="keys", y="m", log_x=True, log_y=True, reference=1.0, x_label="keys |D|", y_label="relative migration m"
        ),
    ),
    digest=lambda table: pivot(table, "keys", "strategy", "b"),
    remark="The migration of one step varies with the keys drawn by more than it changes with their number.",
)
