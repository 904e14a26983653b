"""Figure 11 on the engine: recovery latency and throughput by the size of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.report import Finding, Panel
from experiments.engine import PacedCount, paced, run, throughput
from experiments.experiment import Experiment
from experiments.ftlb.tasks_engine import FAILURE, losing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

REPLICAS = {"FTLB": 1, "TaskB": 0}
LOST = 1
FILLED = 250_000  # keys that one batch adds


def measure(keys_held: Sequence[int], key_bytes: int, tasks: int, tuples: int, batches: int) -> pa.Table:
    """How much longer the batch after a failure takes than those before, with few and with many keys held."""
    rng = np.random.default_rng(11)
    rows = []
    for held in keys_held:
        fills = [np.arange(start, min(start + FILLED, held)) for start in range(0, held, FILLED)]
        touches = [rng.integers(0, held, tuples) for _ in range(batches + 2)]  # the first is not timed
        tables = paced([_long(part, key_bytes) for part in (*fills, *touches)], 0.0)
        end = len(tables) - 2  # the last quiet batch
        for name, replicas in REPLICAS.items():
            done = run(
                tables,
                lambda words, replicas=replicas: words.apply(  # type: ignore[misc]
                    PacedCount(), strategy="key_grouping", channels=tasks, replicas=replicas, combine=False
                ),
                after=losing({end: LOST}),
            )
            quiet, failed = done[end - batches + 1 : end + 1], done[end + 1]
            quiet_ms = float(np.median([batch.ms for batch in quiet]))
            rows.append(
                {
                    "strategy": name,
                    "keys_held": held,
                    "state_mb": quiet[-1].held_bytes / 1e6,
                    "quiet_ms": quiet_ms,
                    "failed_ms": failed.ms,
                    "recovery_ms": failed.ms - quiet_ms,
                    "throughput": throughput([*quiet, failed]),
                    "rebuilt": failed.rebuilt,
                }
            )
    return pa.Table.from_pylist(rows)


def _long(keys: NDArray[np.int64], key_bytes: int) -> pa.Array:
    """Give keys of some length, which is held with every count."""
    return pc.utf8_lpad(pa.array(keys).cast(pa.string()), key_bytes, "0")


def findings(table: pa.Table) -> list[Finding]:
    """Who recovers sooner, and whether the size matters."""
    rows = table.to_pylist()
    of = {name: [row for row in rows if row["strategy"] == name] for name in REPLICAS}
    most = {name: mine[-1] for name, mine in of.items()}
    # Times of whole batches are compared: what a recovery adds may be lost in what a batch takes.
    slower = {name: [row["failed_ms"] / row["quiet_ms"] for row in mine] for name, mine in of.items()}
    return [
        Finding.at_most(
            "FTLB recovers sooner with the most state: the batch after the failure, over TaskB's",
            most["FTLB"]["failed_ms"] / most["TaskB"]["failed_ms"],
            0.95,
        ),
        Finding.at_least(
            "TaskB's recovery takes longer with more state: the batch over a quiet one, at the most over the least",
            slower["TaskB"][-1] / slower["TaskB"][0],
            1.2,
        ),
        Finding.at_least(
            "FTLB gets more done with the most state: ratio of the throughputs",
            most["FTLB"]["throughput"] / most["TaskB"]["throughput"],
            1.0,
        ),
        Finding.at_most(
            "FTLB restores nothing from the checkpoint: channels rebuilt", max(row["rebuilt"] for row in of["FTLB"]), 0
        ),
        Finding.between(
            "TaskB restores the task that was lost: channels rebuilt", min(row["rebuilt"] for row in of["TaskB"]), 1, 1
        ),
    ]


EXPERIMENT = Experiment(
    title="Recovery by the size of the state (engine)",
    claim="TaskB, which recovers whole tasks, has a higher recovery latency than FTLB, and the more so the more state "
    "there is; the throughput with failures shows the same.",
    setup=FAILURE + " FTLB has a backup of every key. TaskB's stand-in has none: the lost task is restored as a whole "
    "from the checkpoint. The state is that of so many counted keys, each as long as the settings say. A recovery's "
    "latency is by how much longer the batch after the failure takes than the quiet ones; the throughput is over both.",
    settings={
        "small": {"keys_held": (5_000, 50_000), "key_bytes": 16, "tasks": 4, "tuples": 2000, "batches": 1},
        "full": {
            "keys_held": (100_000, 400_000, 1_600_000, 4_800_000),
            "key_bytes": 400,
            "tasks": 4,
            "tuples": 20_000,
            "batches": 5,
        },
    },
    needs=("pyspark",),
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="state_mb", y="recovery_ms", log_x=True, x_label="state (MB)", y_label="recovery latency (ms)"),
        Panel(x="state_mb", y="throughput", log_x=True, x_label="state (MB)", y_label="tuples/s"),
    ),
    remark="FTLB's recovery runs the batch again, once a channel has left no results; restoring a task reads all that "
    "it held. Which is quicker depends on how much that is and how far away: the checkpoint is on the same disk "
    "here.",
)
