"""Jobs on Spark: from what a job file says to a running query."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, cast

from evenkeel.errors import EvenkeelError, InvalidArgumentError, StageFailedError
from evenkeel.jobs import check_columns, progress_of
from evenkeel.jobs.document import blamed
from evenkeel.spark.api import Flow

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from evenkeel.jobs import Job, Progress
    from evenkeel.jobs.lines import Path
    from evenkeel.spark.query import Query

__all__ = ["WITHOUT_PROCESSES", "RunningJob", "check_job", "make_session", "stop_session"]

_LOOK_EVERY_SECONDS, _LAST_WORDS_SECONDS = 0.1, 10.0
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "evenkeel.spark.daemon",
}
_LOG = "spark.sql.streaming.checkpointFileManagerClass"
WITHOUT_PROCESSES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def check_job(job: Job) -> None:
    """Check all that can be known without the source's columns; starts no Spark."""
    _flow(job, cast("DataFrame", None))


def make_session(job: Job) -> SparkSession:
    """Give the session that there is, or make one with the job's settings.

    What fails in a batch is raised by `RunningJob`, and in Spark's log; py4j does not print it as well.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    # Workers must run the interpreter that runs us, and find the modules that the job names beside its file.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    beside = str(FilePath(job.document.name).absolute().parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([beside, os.environ.get("PYTHONPATH", "")])
    builder = SparkSession.builder.appName(job.name)
    for name, value in {**_SETTINGS, **job.spark}.items():
        builder = builder.config(name, value)
    with _telling(job, ("spark",)):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if "://" not in job.checkpoint and _LOG not in job.spark:
        _log_without_processes(session)
    return session


def _log_without_processes(session: SparkSession) -> None:
    """Have Spark write its log of a stream to a local disk without starting processes for it, some thirty a batch.

    By default it asks the shell about every file, unless Hadoop's native library is there.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - whether this Spark has the class by that name
    with suppress(Py4JJavaError):
        jvm.java.lang.Class.forName(WITHOUT_PROCESSES)
        session.conf.set(_LOG, WITHOUT_PROCESSES)


class RunningJob:
    """A job's query, and its batches as they are committed.

    Raises
    ------
    InvalidArgumentError
        With the line of what Spark does not know, or of a column that is not there.
    """

    def __init__(self, job: Job, spark: SparkSession) -> None:
        plain = isinstance(job.sink, str) and job.sink != "console"
        rows = _rows(job, spark)
        check_columns(job, spark.createDataFrame([], rows.schema).toArrow().schema)
        flow = _flow(job, rows)
        try:
            self._query = flow.start(
                _absolute(str(job.sink)) if plain else job.sink,
                checkpoint=job.checkpoint,
                trigger=None if job.trigger is None else dict(job.trigger),
                local_directory=job.local_directory,
                job=job.name,
            )
        except InvalidArgumentError as error:
            raise job.document.error((("stage",), str(error))) from error

    def batches(self, stop: threading.Event) -> Iterator[Progress]:
        """Give every batch that is committed, until the query ends, or one asks to ``stop`` and the last is done.

        However it ends, the checkpoint is free afterwards.
        """
        with _unless_java_ends():
            try:
                yield from self._batches(stop)
                _raise_failure(self._query)
            finally:
                self._query.stop()

    def _batches(self, stop: threading.Event) -> Iterator[Progress]:
        query, seen = self._query, -1
        active = True
        while active:
            running = query.spark_query
            active = running is not None and running.isActive  # Asked first, so that no batch before it is missed.
            for entry in query.history:
                if entry["batch"] > seen:
                    seen = entry["batch"]
                    yield progress_of(entry, query.decisions)
            if active and stop.wait(_LOOK_EVERY_SECONDS):
                query.stop()


def stop_session(spark: SparkSession) -> None:
    """Stop Spark, unless that has ended by itself."""
    with suppress(EvenkeelError), _unless_java_ends():
        spark.stop()


@contextmanager
def _unless_java_ends() -> Iterator[None]:
    """Say in a line that Spark's process is gone, or going, as it is where a signal was sent to it as well."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    root = logging.getLogger()
    root.addFilter(_not_of_py4j)
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise StageFailedError(f"Spark failed. {str(error).strip().splitlines()[0]}") from error
    except (Py4JError, ConnectionError) as error:
        _await_java()
        raise StageFailedError(
            "Spark's Java process has ended, and the batch in progress with it. All that was committed is kept: run "
            "the job again, and it goes on from there."
        ) from error
    finally:
        root.removeFilter(_not_of_py4j)


def _await_java() -> None:
    """Wait until Spark's process is gone, or our line would stand in the middle of its last words."""
    from pyspark import SparkContext

    java = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - nothing else knows the process
    if java is not None:
        with suppress(subprocess.TimeoutExpired):
            java.wait(_LAST_WORDS_SECONDS)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Keep out what Py4J logs, at the root and with a traceback of all its callers, before it raises the same."""
    return record.msg != "Exception while sending command."


def _raise_failure(query: Query) -> None:
    """Raise what ended a query, told in a line: the last error named in Spark's long account of it."""
    from pyspark.errors import StreamingQueryException

    try:
        query.await_termination()
    except StreamingQueryException as error:
        named = re.findall(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception)): (.+)$", str(error), re.MULTILINE)
        told = f"{named[-1][0]}: {named[-1][1]}" if named else str(error).strip().splitlines()[0]
        raise StageFailedError(f"The query failed. {told}") from error


def _flow(job: Job, rows: DataFrame) -> Flow:
    flow = Flow(rows, ())
    for number, stage in enumerate(job.stage):
        with _blaming(job, number):
            keyed = flow.key_by(*stage.keys, event_time=stage.event_time, delay=stage.delay, null_keys=stage.null_keys)
            flow = keyed.apply(
                stage.operator,
                stage.chosen(),
                stage.channels,
                slots=stage.slots,
                combine=stage.combine,
                replicas=stage.replicas,
                aggregate_every=stage.aggregate_every,
                split_results=stage.split_results,
                probe=stage.probe,
            )
    return flow


@contextmanager
def _blaming(job: Job, number: int) -> Iterator[None]:
    """Tell a mistake in a stage with the line of the key that it is about."""
    try:
        yield
    except EvenkeelError as error:
        said = job.document.values["stage"][number]
        path: Path = ("stage", number, blamed(error, said) or "strategy")
        raise job.document.error((path, str(error))) from error


def _rows(job: Job, spark: SparkSession) -> DataFrame:
    """Open the source; what Spark says against it is told with the line."""
    source = job.source
    reader: Any = (spark.readStream if source.stream else spark.read).format(source.format).options(**source.options)
    if source.schema is not None:
        with _telling(job, ("source", "schema")):
            reader = reader.schema(source.schema)
    with _telling(job, ("source", "format" if source.path is None else "path")):
        rows: DataFrame = reader.load() if source.path is None else reader.load(_absolute(source.path))
    if source.where is not None:
        with _telling(job, ("source", "where")):
            rows = rows.where(source.where)
    for number, expression in enumerate(source.select):
        with _telling(job, ("source", "select", number)):
            rows.selectExpr(expression)
    return rows.selectExpr(*source.select) if source.select else rows


@contextmanager
def _telling(job: Job, path: Path) -> Iterator[None]:
    """Tell what Spark complains about as a mistake in a line of the job file."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise job.document.error((path, str(error).strip().splitlines()[0])) from error
    except Py4JJavaError as error:
        # An error that PySpark has no name for: there is no such format.
        told = error.java_exception.getMessage().splitlines()[0]
        raise job.document.error((("source", "format"), told)) from error


def _absolute(path: str) -> str:
    """Give a path as Spark understands it: its JVM may have been started elsewhere."""
    return path if "://" in path else str(FilePath(path).absolute())
