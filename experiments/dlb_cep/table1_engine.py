"""Table 1 on the engine: throughput, first stories and deviation of five techniques."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenkeel.report import Finding, Panel
from experiments.dlb_cep.stories_engine import MODEL, compared, totals
from experiments.dlb_cep.table1 import even_and_quick
from experiments.experiment import Experiment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from experiments.experiment import Scale

SETTINGS: Mapping[Scale, Mapping[str, Any]] = {
    "small": {"windows": 3, "tweets": 1200, "keys": 64, "work_ms": 1.0},
    "full": {"windows": 18, "tweets": 2000, "keys": 512, "work_ms": 4.0},
}


def measure(windows: int, tweets: int, keys: int, work_ms: float) -> pa.Table:
    """The table's three rows, turned over."""
    found = totals(compared(windows, tweets, keys, work_ms)).to_pylist()
    return pa.Table.from_pylist(
        [row for row in found if row["order"] == "default" and row["strategy"] != "KG, 6 engines"]
    ).drop_columns(["order"])


def findings(table: pa.Table) -> list[Finding]:
    """Who is even, who is quick, who is right."""
    of = {row["strategy"]: row for row in table.to_pylist()}
    stories = {name: row["first stories"] for name, row in of.items()}
    whole = [stories[name] for name in ("DLB-L", "DLB-H", "LPTF", "KG")]
    return [
        Finding.at_most(
            "moving keys with their state changes no event: most minus fewest of DLB-L, DLB-H, LPTF and KG",
            max(whole) - min(whole),
            0,
        ),
        Finding.at_least(
            "PKG reports stories that are none: its events over KG's (paper: 1.16)",
            stories["PKG"] / stories["KG"],
            1.05,
        ),
        *even_and_quick(of, "tweets/s"),
    ]


EXPERIMENT = Experiment(
    title="Throughput, first stories and deviation (engine)",
    claim="Both DLB policies process more tweets than KG, as many as PKG, and far more than LPTF, which moves too "
    "much. LPTF is more even, PKG the most. Moving keys with their state leaves the detected first stories as they "
    "are; PKG splits keys and reports some 15 % more.",
    setup=MODEL,
    settings=SETTINGS,
    needs=("pyspark",),
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="strategy", y="tweets/s", by=None, kind="bars", x_label="", y_label="tweets/s"),
        Panel(x="strategy", y="first stories", by=None, kind="bars", x_label="", y_label="first stories"),
        Panel(x="strategy", y="deviation %", by=None, kind="bars", x_label="", y_label="deviation of loads (%)"),
    ),
    columns=3,
    remark="The paper's LPTF fetched each moved tweet from a database, 1 ms each. Here moved state rides the shuffle "
    "of the next batch, so that LPTF pays for the carrying alone. Times at small scale are mostly Spark's own.",
)
