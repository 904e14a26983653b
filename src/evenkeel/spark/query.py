"""A running query: batches in, results out, tables and state committed together."""

from __future__ import annotations

import itertools
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from evenkeel.errors import IncompatibleCheckpointError
from evenkeel.spark.task import COLD
from evenkeel.state import Lease, StoredFile, clean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from evenkeel.control import Decision
    from evenkeel.routing import RoutingTable
    from evenkeel.spark.balanced import BalancedStage
    from evenkeel.spark.sinks import WriteBatch
    from evenkeel.spark.stage import StageRun
    from evenkeel.state import Checkpoint, Commit

__all__ = ["Query"]

_KEPT_COMMITS = 20
_KEPT_HISTORY = 1000
_ATTEMPTS = 10  # of a batch during which channel after channel loses its state


class Query:
    """A query that is running or has run.

    Parameters
    ----------
    source
        Streaming or static rows.
    stages
        The keyed stages, each on the results of the one before.
    sink
        Writes one batch's results.
    checkpoint
        Where state, tables and decisions are kept.
    lease
        Keeps other queries off the checkpoint.
    """

    def __init__(
        self,
        source: DataFrame,
        stages: list[BalancedStage],
        sink: WriteBatch,
        checkpoint: Checkpoint,
        lease: Lease,
        spark_checkpoint: str,
        trigger: dict[str, Any] | None,
    ) -> None:
        self._stages = stages
        self._sink = sink
        self._checkpoint = checkpoint
        self._lease = lease
        self._last = checkpoint.last_commit()
        self._history: deque[dict[str, Any]] = deque(maxlen=_KEPT_HISTORY)
        if self._last is not None:
            self._restore(self._last)
        self._running: StreamingQuery | None = None
        if source.isStreaming:
            writer = source.writeStream.foreachBatch(self._process).option("checkpointLocation", spark_checkpoint)
            self._running = (writer.trigger(**trigger) if trigger else writer).start()
        else:
            try:
                self._process(source, 0)
                if any(stage.needs_closing for stage in stages):
                    for steps in range(1, stages[-1].step + 2):
                        self._process(source.limit(0), steps, closed_steps=steps)
            finally:
                self._end()

    def _restore(self, commit: Commit) -> None:
        names = {stage.name for stage in self._stages}
        for ref in commit.manifests:
            if ref.stage not in names and any(self._checkpoint.read_manifest(ref).report["loads"]["held_keys"]):
                raise IncompatibleCheckpointError(
                    f"The checkpoint holds partial results in {ref.stage!r}, which this strategy has no place for. "
                    "Run a batch with the former strategy and aggregate_every=1, then change it.",
                    stage=ref.stage,
                )
        for stage in self._stages:
            stage.restore(commit)

    @property
    def table(self) -> RoutingTable:
        """The routing table of the first stage's next batch."""
        return self._stages[0].table

    @property
    def decisions(self) -> list[Decision]:
        """All decisions of the first stage's controller that are remembered, also those to stay."""
        return list(self._stages[0].controller.decisions)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The last batches of this run: their number, milliseconds, and the reports of every stage's channels."""
        return list(self._history)

    @property
    def spark_query(self) -> StreamingQuery | None:
        """Spark's own handle of a streaming query."""
        return self._running

    @property
    def sink(self) -> WriteBatch:
        """What the results are given to."""
        return self._sink

    def await_termination(self, timeout_seconds: int | None = None) -> bool:
        """Wait until the query ends; says whether it did. Raises what it failed with."""
        if self._running is None:
            return True
        ended = self._running.awaitTermination(timeout_seconds)
        return True if ended is None else ended

    def process_all_available(self) -> None:
        """Wait until all input that is there now has been processed."""
        if self._running is not None:
            self._running.processAllAvailable()

    def stop(self) -> None:
        """Stop after the batch in progress, and free the checkpoint."""
        if self._running is not None:
            self._running.stop()
        self._end()

    def _end(self) -> None:
        for stage in self._stages:
            stage.stage.close()
        self._lease.release()

    def _process(self, rows: DataFrame, batch: int, *, closed_steps: int = 0) -> None:
        if self._last is not None and batch <= self._last.batch:
            return  # It was committed; Spark died before it noted that. Its results are in the sink.
        started = time.time()
        self._lease.renew(started)
        try:
            runs = self._run(rows, batch, started, closed_steps)
        except BaseException:
            self._lease.release()  # Spark ends the query; another may go on from the last commit.
            raise
        took_ms = 1000 * (time.time() - started)
        self._history.append({"batch": batch, "ms": took_ms, "reports": [run.reports for run in runs]})
        if batch % _KEPT_COMMITS == _KEPT_COMMITS - 1:
            clean(self._checkpoint, keep=_KEPT_COMMITS)
            self._remove_old_tables()

    def _run(self, rows: DataFrame, batch: int, started: float, closed_steps: int) -> list[StageRun]:
        """Run a batch and commit it.

        Again with other roles where channels turn out to have lost their state; and again with results that are kept
        where a task was run twice, so that it is not certain which of its attempts the sink has seen.
        """
        keep_all = False
        for attempt in itertools.count(1):
            runs: list[StageRun] = []
            results = rows
            try:
                for stage in self._stages:
                    keep = keep_all or (stage is self._stages[-1] and not getattr(self._sink, "reads_once", False))
                    closing = stage.step < closed_steps
                    runs.append(stage.run(results, batch, started, keep=keep, closing=closing))
                    results = runs[-1].output
                self._sink(results, batch)
                if not all([run.finish() for run in runs]):  # noqa: C419 - every one is to finish
                    keep_all = True
                    continue
                self._commit(batch, runs, started)
            except Exception as error:
                if COLD not in str(error) or attempt == _ATTEMPTS:
                    raise
                for stage in self._stages:
                    stage.suspected = True
            else:
                return runs
            finally:
                for run in runs:
                    run.release()
        raise AssertionError

    def _commit(self, batch: int, runs: list[StageRun], started: float) -> None:
        now = time.time()
        took_ms = 1000 * (now - started)
        verdicts = [stage.decide(run, batch, now, took_ms) for stage, run in zip(self._stages, runs, strict=True)]
        facts = {
            stage.name: stage.facts(run, decision, following)
            for stage, run, (decision, following) in zip(self._stages, runs, verdicts, strict=True)
        }
        manifests = [ref for run in runs for ref in run.manifests]
        self._last = self._checkpoint.commit(
            batch, manifests, epoch=self._stages[0].table.epoch, metadata={"stages": facts, "took_ms": took_ms}
        )
        for stage, run, (_, following) in zip(self._stages, runs, verdicts, strict=True):
            stage.advance(run, following)

    def _remove_old_tables(self) -> None:
        """Remove tables and controllers that no kept commit names."""
        named = set()
        for batch in self._checkpoint.batches():
            for facts in self._checkpoint.read_commit(batch).metadata["stages"].values():
                named |= {StoredFile(*stored).path for stored in facts["files"].values()}
        for path in set(self._checkpoint.files.list("tables")) - named:
            self._checkpoint.files.delete(path)
