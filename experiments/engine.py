"""The engine on Spark, for experiments: one session for all, streams of prepared batches, and what they took."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evenkeel.control import Controller, ControlOptions, CoolDown, Imbalance, RelativeGain, WindowOptions, WorthItsCost
from evenkeel.errors import EvenkeelError
from evenkeel.operators import Count, Groups, Operator, Update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

    from evenkeel.control import Elasticity
    from evenkeel.planning import Planner
    from evenkeel.sim import Workload
    from evenkeel.spark.api import Flow, KeyedRows

__all__ = [
    "ENGINE",
    "Batch",
    "Paced",
    "PacedCount",
    "eager",
    "latencies_ms",
    "paced",
    "run",
    "throughput",
    "windows_of",
]

SLOTS_OF_SPARK = 16
"""Tasks that run side by side, whatever the number of cores: they sleep more than they compute."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}
WORK = "work_ms"
"""The column that says how long a tuple takes."""
ENGINE = (
    "The engine itself, on Spark in one process with 16 tasks side by side. A tuple's work is a sleep of its channel, "
    "so that channels work in parallel on any number of cores; a batch's time is that which Spark tells "
    "(`triggerExecution`), with reading, routing, shuffle, state, results and commit."
)


# -- operators that take their time -----------------------------------------------------------------------------------


def _work(groups: Groups) -> None:
    time.sleep((pc.sum(groups.rows[WORK]).as_py() or 0.0) / 1000)


@dataclass(frozen=True)
class PacedCount(Count):
    """A count that takes over each tuple the time that the tuple says."""

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """How long each takes."""
        return [WORK]

    def lift(self, groups: Groups) -> pa.Table:
        """Work, and count."""
        _work(groups)
        return super().lift(groups)


@dataclass(frozen=True)
class Paced(Operator):
    """Another operator that takes over each tuple the time that the tuple says."""

    name = "paced"
    operator: Operator

    def columns(self, rows: pa.Schema) -> list[str]:
        """Those of the operator, and how long each takes."""
        return [*self.operator.columns(rows), WORK]

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """As the operator."""
        return self.operator.state_schema(rows)

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """As the operator."""
        return self.operator.output_schema(rows)

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:
        """Work, and do what the operator does."""
        _work(groups)
        return self.operator.update(groups, states, known)


# -- running ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What one micro-batch took and did.

    Parameters
    ----------
    ms
        From its trigger to its commit.
    loads
        Tuples of each channel, backups not counted.
    results
        Rows that came out.
    moved_bytes, held_bytes
        State that changed channels before it, and all that the first stage held after it.
    held_keys
        States of keys that the first stage held after it; parts of a split key are counted one by one.
    rebuilt
        Channels that did not find their state on the host and restored it from the checkpoint.
    """

    ms: float
    loads: NDArray[np.int64]
    results: int
    moved_bytes: int
    held_bytes: int
    held_keys: int
    rebuilt: int

    @property
    def tuples(self) -> int:
        """How many there were."""
        return int(self.loads.sum())


@cache
def session() -> SparkSession:
    """Give the one session of all experiments; started when the first of them asks."""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession() or _started()
    if spark.sparkContext.defaultParallelism < SLOTS_OF_SPARK:
        raise EvenkeelError(
            f"These experiments need {SLOTS_OF_SPARK} tasks side by side; the session that is running already has "
            f"{spark.sparkContext.defaultParallelism}. Run them in a process of their own."
        )
    return spark


def _started() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Spark's workers import the operators of this module by its name.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{SLOTS_OF_SPARK}]").appName("evenkeel experiments")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except PySparkException as error:
        raise EvenkeelError(f"Spark did not start; is there a JDK 17 or newer? {error}") from error
    spark.sparkContext.setLogLevel("OFF")  # lost channels are told as errors, though queries go on; others are raised
    return spark


def eager(planner: Planner, *, every: int = 1, elasticity: Elasticity | None = None) -> Controller:
    """Plan as the papers do: after every window of one batch, or every so many; only what worsens is refused."""
    options = ControlOptions(
        windows=WindowOptions(batches=1, keep=max(4, every)),
        imbalance=Imbalance(start=1.0, stop=1.0),
        cool_down=CoolDown(windows=every - 1),
        relative_gain=RelativeGain(share=0.0),
        worth_its_cost=WorthItsCost(horizon_batches=1_000_000),
        elasticity=elasticity,
    )
    return Controller(planner, options)


def windows_of(stream: Workload, windows: int) -> list[pa.Array]:
    """Give the keys of each window's tuples, in order."""
    return [
        pa.array(np.concatenate([part.ids for part in window.tuples(full=True)])) for window in stream.first(windows)
    ]


def paced(keys: Iterable[pa.Array], work_ms: float) -> list[pa.Table]:
    """Give batches of tuples that all take as long."""
    return [pa.table({"key": part, WORK: np.full(len(part), work_ms)}) for part in keys]


def run(
    batches: Sequence[pa.Table],
    apply: Callable[[KeyedRows], Flow],
    *,
    key: str | Sequence[str] = "key",
    after: Callable[[int, Path], None] = lambda *_: None,
) -> list[Batch]:
    """Run a query over prepared batches, one micro-batch each, and give what each took; the first warms Spark up.

    Parameters
    ----------
    batches
        The stream.
    apply
        Adds the stages.
    key
        The key column, or several.
    after
        Called with each batch's number, when its results are out, and with the folder of the state's working copies.
    """
    from pyspark.errors import PySparkException

    from evenkeel.spark.api import stream

    folder = Path(tempfile.mkdtemp(prefix="evenkeel-experiment-"))

    def sink(results: DataFrame, batch: int) -> None:
        results.write.format("noop").mode("overwrite").save()
        after(batch, folder / "local")

    sink.reads_once = sink.overwrites = True  # type: ignore[attr-defined]
    try:
        rows = _as_stream(session(), batches, folder / "in")
        query = apply(stream(rows, key=key)).start(
            sink, checkpoint=str(folder / "checkpoint"), local_directory=str(folder / "local")
        )
        try:
            query.process_all_available()
        except PySparkException as error:
            raise EvenkeelError(f"The query failed: {error}") from error
        finally:
            query.stop()
        assert query.spark_query is not None
        took = [p["durationMs"]["triggerExecution"] for p in query.spark_query.recentProgress if p["numInputRows"] > 0]
        history = query.history
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [_measured(ms, batch["reports"]) for ms, batch in zip(took, history, strict=True)]


def _as_stream(spark: SparkSession, batches: Sequence[pa.Table], folder: Path) -> DataFrame:
    folder.mkdir()
    for number, batch in enumerate(batches):
        file = folder / f"{number:05d}.parquet"
        pq.write_table(batch, file)
        os.utime(file, (number, number))  # the stream goes by their times
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _measured(ms: float, stages: list[list[dict[str, Any]]]) -> Batch:
    first = stages[0]
    loads = np.zeros(max(report["channel"] for report in first) + 1, np.int64)
    for report in first:
        loads[report["channel"]] = report["tuples"]
    return Batch(
        float(ms),
        loads,
        results=sum(report["results"] for report in stages[-1]),
        moved_bytes=sum(report["imported_bytes"] for report in first),
        held_bytes=sum(sum(report["loads"]["held_bytes"]) for report in first),
        held_keys=sum(sum(report["loads"]["held_keys"]) for report in first),
        rebuilt=sum(report["opened"] == "rebuilt" for report in first),
    )


# -- what comes of it -------------------------------------------------------------------------------------------------


def throughput(batches: Sequence[Batch]) -> float:
    """Tuples per second."""
    return 1000 * sum(batch.tuples for batch in batches) / sum(batch.ms for batch in batches)


def latencies_ms(batches: Sequence[Batch], interval_ms: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Give latencies and how many tuples have them, if each batch's tuples come evenly within an interval.

    A batch begins when its interval is over and the batch before is done; a tuple's latency lasts until its batch is
    done. Each batch is told by 20 points of its interval.
    """
    points = (np.arange(20) + 0.5) / 20
    done, found = 0.0, []
    for number, batch in enumerate(batches, 1):
        done = max(done, number * interval_ms) + batch.ms
        found.append(done - (number - 1 + points) * interval_ms)
    return np.concatenate(found), np.repeat([batch.tuples for batch in batches], 20)
