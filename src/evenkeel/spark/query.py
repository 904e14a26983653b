"""A running query: batches in, results out, tables and state committed together."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from evenkeel.errors import IncompatibleCheckpointError
from evenkeel.logs import StageTeller, tell
from evenkeel.planning import warm_up
from evenkeel.spark.own_session import OwnSession
from evenkeel.spark.task import COLD
from evenkeel.spark.vigil import Vigil
from evenkeel.state import Lease, StoredFile, clean
from evenkeel.state.pages import load_loops

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from evenkeel.control import Decision
    from evenkeel.routing import RoutingTable
    from evenkeel.spark.balanced import BalancedStage
    from evenkeel.spark.run import StageRun
    from evenkeel.spark.sinks import WriteBatch
    from evenkeel.state import Checkpoint, Commit

__all__ = ["Query", "StageStatus"]

_KEPT_COMMITS = 20
_KEPT_HISTORY, _KEPT_LOADS = 1000, 10
_ATTEMPTS = 10  # of a batch during which channel after channel loses its state
_LOOK_EVERY_SECONDS = 0.05
# How Spark tells a batch that its own `stop` has ended from one that failed.
_INTERRUPTED = "py4j.protocol.Py4JJavaError: An error occurred while calling stop: java.lang.InterruptedException"


class StageStatus(NamedTuple):
    """One keyed stage of a query, as it stands after the last batch."""

    table: RoutingTable
    """Where keys go in the next batch."""
    decisions: list[Decision]
    """All that are remembered, also those to stay."""


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
        self._turn = threading.Condition()
        self._streams = source.isStreaming
        self._session = OwnSession()
        self._vigil = Vigil(source.sparkSession)
        self._at_work: int | None = None  # the thread of the batch in progress
        self._stopping = self._holds = False
        self._history: deque[dict[str, Any]] = deque(maxlen=_KEPT_HISTORY)
        self._metrics: deque[tuple[int, dict[str, dict[str, float]]]] = deque(maxlen=_KEPT_HISTORY)
        if self._last is not None:
            self._restore(self._last)
            tell("resume", f"The query goes on after batch {self._last.batch}.", batch=self._last.batch)
        self._tellers = [StageTeller(stage.name, stage.controller.decisions) for stage in stages]
        source = stages[0].stage.route_ahead(source)
        self._running: StreamingQuery | None = None
        if source.isStreaming:
            threading.Thread(target=_warm_up, args=(stages,)).start()
            writer = source.writeStream.foreachBatch(self._take_turn).option("checkpointLocation", spark_checkpoint)
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
    def stages(self) -> dict[str, StageStatus]:
        """Every keyed stage by its name, in the order in which rows pass them."""
        return {stage.name: StageStatus(stage.table, list(stage.controller.decisions)) for stage in self._stages}

    @property
    def table(self) -> RoutingTable:
        """The routing table of the first stage's next batch; `stages` has all."""
        return self._stages[0].table

    @property
    def decisions(self) -> list[Decision]:
        """What was decided for the first stage, also to stay; `stages` has all."""
        return list(self._stages[0].controller.decisions)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The last batches of this run: their number, milliseconds, and the reports of every stage's channels.

        Loads by slot and by key are kept of the last ten only: for many channels and keys they are a megabyte each.
        """
        return list(self._history)

    @property
    def progress(self) -> list[dict[str, Any]]:
        """Spark's own progress of the last batches, each with this query's numbers of it in ``observedMetrics``.

        They are there once for the query, as ``evenkeel``, and once for each stage, as ``evenkeel.<stage>``, under the
        names of the metrics. On static rows there is no progress of Spark's, only these numbers.
        """
        metrics = dict(self._metrics)
        if self._running is None:
            return [{"batchId": batch, "observedMetrics": found} for batch, found in metrics.items()]
        entries = [json.loads(entry.json) for entry in self._running.recentProgress]
        for entry in entries:
            entry["observedMetrics"] = {**entry.get("observedMetrics", {}), **metrics.get(entry["batchId"], {})}
        return entries

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
        """Stop after the batch in progress, and free the checkpoint. A sink may call it too, and goes on at once."""
        if self._at_work == threading.get_ident():
            threading.Thread(target=self.stop).start()
            return
        try:
            if self._running is not None:
                self._stop(self._running)
        finally:
            self._end()

    def _stop(self, running: StreamingQuery) -> None:
        with self._turn:
            self._stopping = True
            self._turn.wait_for(lambda: self._at_work is None)
        # Spark's own `stop` breaks off what is running. Between two batches that is its own thread, which would
        # complain at length: so wait until it has nothing to do, or has come with a batch, which is held.
        while running.isActive and not self._holds and running.status["isTriggerActive"]:
            time.sleep(_LOOK_EVERY_SECONDS)
        running.stop()

    def _end(self) -> None:
        self._lease.release()
        self._vigil.close()
        for stage in self._stages:
            stage.stage.close()

    def _take_turn(self, rows: DataFrame, batch: int) -> None:
        """Process a batch of the stream, unless it came after one asked to stop."""
        with self._turn:
            if not self._stopping:
                self._at_work = threading.get_ident()
        if self._at_work is None:
            self._hold()
        if not self._history:
            self._session.prepare(rows.sparkSession, self._stages[0].stage.spark)
        try:
            self._process(rows, batch)
        finally:
            with self._turn:
                self._at_work = None
                self._turn.notify_all()

    def _hold(self) -> None:
        """Wait until Spark has stopped, and end as a batch does that it broke off."""
        self._holds = True
        while self._running is not None and self._running.isActive:
            time.sleep(_LOOK_EVERY_SECONDS)
        raise RuntimeError(_INTERRUPTED)

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
        if self._streams:
            reports = [report for run in runs for report in run.reports]
            self._session.fit(rows.sparkSession, reports, slow=any(stage.stage.slow for stage in self._stages))
        took_ms = 1000 * (time.time() - started)
        self._history.append({"batch": batch, "ms": took_ms, "reports": [run.reports for run in runs]})
        if len(self._history) > _KEPT_LOADS:
            self._history[-_KEPT_LOADS - 1] = _without_loads(self._history[-_KEPT_LOADS - 1])
        if batch % _KEPT_COMMITS == _KEPT_COMMITS - 1:
            clean(self._checkpoint, keep=_KEPT_COMMITS)
            self._remove_old_tables()

    def _run(self, rows: DataFrame, batch: int, started: float, closed_steps: int) -> list[StageRun]:
        """Run a batch and commit it.

        Again with other roles where channels turn out to have lost their state; and again with results that are kept
        where it is not certain which attempt of a task the sink has seen, or a task gave up.
        """
        reads_once, overwrites = (getattr(self._sink, name, False) for name in ("reads_once", "overwrites"))
        keep_all = False
        for attempt in itertools.count(1):
            runs: list[StageRun] = []
            results = rows
            try:
                for stage in self._stages:
                    if runs:
                        results = stage.stage.route_ahead(runs[-1].output)
                    how = {
                        "keep": keep_all or (stage is self._stages[-1] and not reads_once),
                        "overwritten": overwrites and not keep_all,
                        "closing": stage.step < closed_steps,
                    }
                    runs.append(stage.run(results, batch, started, **how))
                with self._vigil.over([home for run in runs for home in run.switchable_homes if self._streams]):
                    self._sink(runs[-1].output, batch)
                if not all([run.finish() for run in runs]):  # noqa: C419 - every one is to finish
                    keep_all = True
                    self._suspect("A task was run twice, or gave up for want of its state.", batch)
                    continue
                self._commit(batch, runs, started)
            except Exception as error:
                if COLD not in str(error) or attempt == _ATTEMPTS:
                    raise
                self._suspect("Channels have lost their state, and copies of it are elsewhere.", batch)
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
        self._tell(batch, runs, [decision for decision, _ in verdicts], took_ms)
        for stage, run, (_, following) in zip(self._stages, runs, verdicts, strict=True):
            stage.advance(run, following)

    def _tell(self, batch: int, runs: list[StageRun], decisions: list[Decision | None], took_ms: float) -> None:
        """Log a batch that is committed, and keep its numbers."""
        self._tell_decisions()
        numbers = {"evenkeel": {"evenkeel_last_batch": batch, "evenkeel_batch_duration_seconds": took_ms / 1000}}
        for stage, teller, run, decision in zip(self._stages, self._tellers, runs, decisions, strict=True):
            choice = "wait" if decision is None else decision.choice.value
            told = teller.tell_batch(batch, took_ms, run.reports, stage.table, choice)
            numbers[f"evenkeel.{stage.name}"] = told
        self._metrics.append((batch, numbers))

    def _tell_decisions(self) -> None:
        for stage, teller in zip(self._stages, self._tellers, strict=True):
            teller.tell_decisions(stage.controller.decisions)

    def _suspect(self, reason: str, batch: int) -> None:
        """Have all channels asked for their state before the batch runs again."""
        for stage in self._stages:
            stage.suspected = True
        self._tell_decisions()
        tell("rerun", f"batch {batch} runs again. {reason}", logging.WARNING, batch=batch, reason=reason)

    def _remove_old_tables(self) -> None:
        """Remove tables and controllers that no kept commit names."""
        named = set()
        for batch in self._checkpoint.batches():
            for facts in self._checkpoint.read_commit(batch).metadata["stages"].values():
                named |= {StoredFile(*stored).path for stored in facts["files"].values()}
        for path in set(self._checkpoint.files.list("tables")) - named:
            self._checkpoint.files.delete(path)


def _without_loads(entry: dict[str, Any]) -> dict[str, Any]:
    """Give an entry of the history without what takes most of its room."""
    reports = [[{**report, "loads": {}} for report in channels] for channels in entry["reports"]]
    return {**entry, "reports": reports}


def _warm_up(stages: list[BalancedStage]) -> None:
    """Get ready while the first batch runs what others would wait for, on a new machine for long: to read, and to plan.

    A planner that fails here will say so where it counts: in its first decision.
    """
    load_loops()
    for stage in stages:
        with suppress(Exception):
            warm_up(stage.controller.planner, stage.table)
