"""Figure 4: skew in the sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.report import Finding, Panel, pivot
from evenkeel.sim import Replay, Routed, Sourced, Trace, Workload, Zipf, replay
from experiments.experiment import Experiment
from experiments.pkg.datasets import graph

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOWS = 50


def edges(messages: int, sources: int, split: str) -> Workload:
    """Give the edges by destination, from sources by turn or by the edge's own source vertex."""
    path = graph()
    if path is None:
        stream = Zipf(80_000, 0.6, tuples=messages // WINDOWS)
        return Sourced(stream, sources) if split == "uniform" else Sourced(stream, sources, "zipf", exponent=0.5)
    cut = 948_464 // WINDOWS + 1
    if split == "uniform":
        return Sourced(Trace(path, key="dst", window_tuples=cut, shuffle_seed=0), sources)
    return Trace(path, key="dst", source="src", source_count=sources, window_tuples=cut, shuffle_seed=0)


def measure(messages: int, workers: Sequence[int], sources: Sequence[int]) -> pa.Table:
    """PKG behind sources with even and with uneven shares of the stream; and hashing."""
    rows = []
    for number in workers:
        for count in sources:
            for split in ("uniform", "skewed"):
                stream = edges(messages, count, split)
                done = replay(stream, {"L": Routed("pkg", count_pairs=False)}, channels=number, windows=WINDOWS)
                rows.append(_row(done, number, count, split, f"{split}, S={count}"))
        done = replay(
            edges(messages, 1, "uniform"),
            {"L": Routed("key_grouping", level="tuples", count_pairs=False)},
            channels=number,
            windows=WINDOWS,
        )
        rows.append(_row(done, number, 1, "hashing", "hashing"))
    return pa.Table.from_pylist(rows)


def _row(done: Replay, workers: int, sources: int, split: str, series: str) -> dict[str, object]:
    fraction = done.summary()["average_imbalance_fraction"][0].as_py()
    return {"workers": workers, "sources": sources, "split": split, "series": series, "fraction": fraction}


def findings(table: pa.Table) -> list[Finding]:
    """Whether uneven sources matter."""
    rows = table.to_pylist()
    found = {(row["workers"], row["sources"], row["split"]): max(row["fraction"], 1e-7) for row in rows}
    places = [key[:2] for key in found if key[2] == "skewed"]
    workers = sorted({at[0] for at in places})
    ratios = [found[at[0], at[1], "skewed"] / found[at[0], at[1], "uniform"] for at in places]
    mean = {
        number: float(np.mean([found[at[0], at[1], "skewed"] for at in places if at[0] == number]))
        for number in workers
    }
    return [
        Finding.between(
            "uneven sources change little: skewed over uniform, geometric mean",
            float(np.exp(np.mean(np.log(ratios)))),
            0.3,
            3,
        ),
        Finding.at_most(
            "the imbalance stays very low: most, as a fraction of the messages",
            max(found[at[0], at[1], "skewed"] for at in places),
            2e-3,
        ),
        Finding.at_least(
            "it grows somewhat with the workers: the most over the fewest", mean[workers[-1]] / mean[workers[0]], 1.0
        ),
        Finding.at_least(
            "hashing is worse: over PKG with skewed sources, least",
            min(found[at[0], 1, "hashing"] / found[at[0], at[1], "skewed"] for at in places),
            2,
        ),
    ]


EXPERIMENT = Experiment(
    title="Skew in the sources",
    claim="With edges dealt to sources by their source vertex, which is skewed, PKG is balanced about as well as with "
    "edges dealt evenly; the imbalance grows slightly with sources and workers, and stays very low.",
    setup="LiveJournal is too large to be had here; the paper says that Slashdot is similar. `slashdot0902_edges`, "
    "shuffled, where EVENKEEL_DATA has it; else a Zipf stream (z = 0.6) whose sources are drawn by a Zipf distribution "
    "(z = 0.5).",
    settings={
        "small": {"messages": 200_000, "workers": (5, 50), "sources": (5, 10)},
        "full": {"messages": 948_464, "workers": (5, 10, 50, 100), "sources": (5, 10, 15, 20)},
    },
    measure=measure,
    findings=findings,
    panels=(Panel(x="workers", y="fraction", by="series", log_x=True, log_y=True, y_label="fraction of imbalance"),),
    digest=lambda table: pivot(table, "workers", "series", "fraction"),
)
