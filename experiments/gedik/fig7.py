"""Figure 7: utility functions."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenkeel.report import Finding, Panel
from experiments.experiment import Experiment
from experiments.gedik.growing import mean_of, sweep

if TYPE_CHECKING:
    import pyarrow as pa

RESOURCES = ("LCL", "LLL", "LQL")
UTILITIES = ("A", "APM", "APLM", "ATM", "ATLM")


def measure(keys: int, slots: int, runs: int) -> pa.Table:
    """Readj and redist under every utility."""
    table = sweep(
        (
            {"strategy": s, "resources": r, "utility": u, "keys": keys, "slots": slots}
            for s, r, u in product(("readj", "redist"), RESOURCES, UTILITIES)
        ),
        runs,
    )
    return table.select(["strategy", "resources", "utility", "m", "b", "pins"])


def findings(table: pa.Table) -> list[Finding]:
    """What looking at migration brings."""

    def of(strategy: str, column: str, utility: str, resources: str) -> float:
        return mean_of(table, column, strategy=strategy, utility=utility, resources=resources)

    def worst(strategy: str, column: str, utility: str, other: str) -> float:
        return max(of(strategy, column, utility, r) / of(strategy, column, other, r) for r in RESOURCES)

    linear = ("LCL", "LLL")
    spread = max(
        max(of("readj", "b", u, r) for u in UTILITIES) / min(of("readj", "b", u, r) for u in UTILITIES) for r in linear
    )
    return [
        Finding.at_least(
            "readj: A ignores migration and migrates most: its m over APM's, the most",
            worst("readj", "m", "A", "APM"),
            1.1,
        ),
        Finding.at_most("readj: the utilities hardly differ in b for LCL and LLL: largest over least", spread, 1.15),
        Finding.at_most(
            "redist: APM is balanced about as well as the best: its b over the least, the most",
            max(of("redist", "b", "APM", r) / min(of("redist", "b", u, r) for u in UTILITIES) for r in RESOURCES),
            1.15,
        ),
        Finding.between(
            "redist: ATM is worse by a factor for LQL (paper: up to 3)",
            of("redist", "b", "ATM", "LQL") / of("redist", "b", "APM", "LQL"),
            2,
            5,
        ),
        Finding.between(
            "redist: ATM migrates less: its m over APM's for LLL (paper: 0.60 to 0.65)",
            of("redist", "m", "ATM", "LLL") / of("redist", "m", "APM", "LLL"),
            0.45,
            0.8,
        ),
        Finding.between(
            "redist: APLM migrates more: its m over APM's for LLL (paper: 1.30 to 1.35)",
            of("redist", "m", "APLM", "LLL") / of("redist", "m", "APM", "LLL"),
            1.02,
            1.5,
        ),
    ]


EXPERIMENT = Experiment(
    title="Utility functions for readj and redist",
    claim="With readj, A migrates much, as it ignores migration, and the utilities hardly differ in balance. With "
    "redist, APM and APLM are balanced best, for LQL up to 3 times better; ATM and ATLM migrate 35 to 40 % less than "
    "APM, APLM 30 to 35 % more. All in all APM is the best choice.",
    setup="As for Figure 3, over the utility function.",
    settings={
        "small": {"keys": 60_000, "slots": 1 << 14, "runs": 1},
        "full": {"keys": 1_000_000, "slots": 1 << 17, "runs": 2},
    },
    measure=measure,
    findings=findings,
    panels=tuple(
        Panel(
            x="resources",
            y=y,
            by="utility",
            kind="bars",
            where={"strategy": s},
            title=s,
            y_label={"m": "relative migration m", "b": "relative imbalance b"}[y],
            reference=1.0,
        )
        for s, y in product(("readj", "redist"), ("m", "b"))
    ),
    remark="How much more APLM migrates than APM is a matter of the keys drawn; all other statements are clear.",
)
