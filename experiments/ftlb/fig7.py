"""Figure 7: the distribution of workload skewness under a hash."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.report import Finding, Panel
from evenkeel.sim import Planned, Zipf, replay
from experiments.experiment import Experiment
from experiments.ftlb.replicas import hashed, replicated

if TYPE_CHECKING:
    from collections.abc import Sequence


def measure(tasks: Sequence[int], keys: Sequence[int], default_tasks: int, default_keys: int, windows: int) -> pa.Table:
    """Each task's load over the average, tasks in order of it, with and without a backup of every key."""
    points = [*(("tasks", n, default_keys) for n in tasks), *(("keys", default_tasks, k) for k in keys)]
    rows = []
    for sweep, n, k in points:
        tables = {
            "active": Planned("stay_put", table=hashed(n)),
            "active + backup": Planned("stay_put", table=replicated(n), backup_cost=1.0),
        }
        done = replay(Zipf(k, 0.8, tuples=10 * k), tables, channels=n, windows=windows, keep_loads=True)
        for name, place in product(tables, range(n)):
            ordered = np.mean([np.sort(loads / loads.mean()) for loads in done.loads[name]], axis=0)
            rows.append(
                {
                    "sweep": sweep,
                    "tasks": n,
                    "keys": k,
                    "copies": name,
                    "series": f"{n} tasks" if sweep == "tasks" else f"{k:,} keys",
                    "percentile": 100 * (place + 1) / n,
                    "skewness": float(ordered[place]),
                }
            )
    return pa.Table.from_pylist(rows)


def digest(table: pa.Table) -> pa.Table:
    """The most loaded task of each setting."""
    return pa.Table.from_pylist(
        [
            {name: row[name] for name in ("sweep", "tasks", "keys", "copies", "skewness")}
            for row in table.to_pylist()
            if row["percentile"] == 100
        ]
    )


def findings(table: pa.Table) -> list[Finding]:
    """What more tasks, more keys and backups do to the fullest task."""
    rows = digest(table).to_pylist()

    def fullest(sweep: str, copies: str) -> dict[int, float]:
        return {row[sweep]: row["skewness"] for row in rows if (row["sweep"], row["copies"]) == (sweep, copies)}

    by_tasks, by_keys = fullest("tasks", "active"), fullest("keys", "active")
    relieved = [
        fullest(sweep, "active + backup")[point] / value
        for sweep, alone in (("tasks", by_tasks), ("keys", by_keys))
        for point, value in alone.items()
    ]
    return [
        Finding.rising(
            "more tasks, more skewness: of the fullest task",
            {f"{n} tasks": v for n, v in sorted(by_tasks.items())},
            slack=0.1,
        ),
        Finding.rising(
            "fewer keys, more skewness: of the fullest task",
            {f"{k:,} keys": v for k, v in sorted(by_keys.items(), reverse=True)},
            slack=0.1,
        ),
        Finding.at_most(
            "backups relieve the fullest task: its skewness with them over without, on average",
            float(np.mean(relieved)),
            0.98,
        ),
        Finding.at_most("and in every setting", max(relieved), 1.0),
    ]


EXPERIMENT = Experiment(
    title="Workload skewness under a hash, with and without replicas",
    claim="Skewness among tasks grows with the number of tasks, and depends on the number of keys. Replicas of the "
    "data on other tasks lower the skewness of the fullest task, whatever the number of tasks or keys.",
    setup="A Zipf stream with z = 0.8, routed by a consistent hash; skewness is a task's load over the average, tasks "
    "in order of it. With replicas, every key has one backup on another task, whose copies of its tuples cost as much. "
    "The text names neither the numbers of tasks nor those of keys for this figure.",
    settings={
        "small": {
            "tasks": (5, 10, 20, 40),
            "keys": (5000, 50_000),
            "default_tasks": 10,
            "default_keys": 50_000,
            "windows": 1,
        },
        "full": {
            "tasks": (5, 10, 20, 40),
            "keys": (5000, 10_000, 100_000, 1_000_000),
            "default_tasks": 10,
            "default_keys": 100_000,
            "windows": 2,
        },
    },
    measure=measure,
    findings=findings,
    panels=tuple(
        Panel(
            x="percentile",
            y="skewness",
            by="series",
            where={"sweep": sweep, "copies": copies},
            title=f"by {sweep}, {copies}",
            x_label="percentile of tasks",
            y_label="load / average",
            reference=1.0,
        )
        for sweep, copies in product(("tasks", "keys"), ("active", "active + backup"))
    ),
    digest=digest,
)
