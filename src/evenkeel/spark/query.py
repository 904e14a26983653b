"""A running query: batches in, results out, tables and state committed together."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.control import BatchReport, ChannelReport, Choice, Controller, Decision, Saved, Tally
from evenkeel.routing import RoutingTable
from evenkeel.state import Lease, StoredFile, clean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from evenkeel.spark.sinks import WriteBatch
    from evenkeel.spark.stage import KeyedStage, StageRun
    from evenkeel.state import Checkpoint, Commit, ManifestRef

__all__ = ["BalancedStage", "Query"]

_KEPT_COMMITS = 20


@dataclass(slots=True)
class BalancedStage:
    """A keyed stage with its routing table and the controller that keeps it even."""

    stage: KeyedStage
    controller: Controller
    table: RoutingTable
    """The table of the next batch."""
    before: RoutingTable
    """The table of the last committed batch."""
    versions: dict[int, ManifestRef] = field(default_factory=dict)
    _stored: dict[int, StoredFile] = field(default_factory=dict)
    _controller: StoredFile | None = None

    def run(self, rows: DataFrame, batch: int) -> StageRun:
        """Run one batch; nothing counts before :meth:`advance`."""
        return self.stage.run(rows, batch, self.table, self.before, self.versions)

    def decide(self, run: StageRun, batch: int, now: float) -> tuple[Decision | None, RoutingTable]:
        """Tell the controller what the batch brought, and ask for the table of the next one."""
        self.controller.observe(_batch_report(run.reports, batch, now))
        decision, table = self.controller.decide(self.table, now)
        return decision, table or self.table

    def facts(self, decision: Decision | None, following: RoutingTable) -> dict[str, Any]:
        """Give what a commit must say for the query to go on from it.

        The controller is stored when it has decided something. After a crash it has lost at most the statistics of a
        window that was not over; tables and state are always those of the commit.
        """
        if self._controller is None or decision is None or decision.choice is not Choice.WAIT:
            self._controller = self._store("controller", self.controller.snapshot().to_arrow())
        return {
            "table": self._store_table(self.table),
            "next": self._store_table(following),
            "controller": self._controller.to_json(),
        }

    def advance(self, run: StageRun, following: RoutingTable) -> None:
        """Go on to the next batch, now that this one is committed."""
        self.versions = {ref.channel: ref for ref in run.manifests}
        self.before, self.table = self.table, following
        self._stored = {epoch: file for epoch, file in self._stored.items() if epoch >= self.before.epoch}
        if self.before.channels == self.table.channels:
            self.stage.forget_homes(but=self.table.channels)

    def restore(self, commit: Commit) -> None:
        """Go on from a commit."""
        files = self.stage.checkpoint.files
        facts = commit.metadata["stages"][self.stage.name]
        self.before, self.table = (_read_table(files, facts[name]) for name in ("table", "next"))
        self.versions = {ref.channel: ref for ref in commit.manifests if ref.stage == self.stage.name}
        saved = pa.ipc.open_stream(files.read(StoredFile(*facts["controller"]))).read_all()
        self.controller.restore(Saved.from_arrow(saved))

    def _store_table(self, table: RoutingTable) -> list[Any]:
        """Write a table once, however many commits name it."""
        if table.epoch not in self._stored:
            self._stored[table.epoch] = self._store("table", table.to_arrow())
        return self._stored[table.epoch].to_json()

    def _store(self, kind: str, table: pa.Table) -> StoredFile:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return self.stage.checkpoint.files.write(f"tables/{self.stage.name}-{kind}-{uuid.uuid4().hex}", sink.getvalue())


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
        self.history: list[dict[str, Any]] = []
        """Each batch of this run: its number, milliseconds, and the reports of every stage's channels."""
        if self._last is not None:
            for stage in stages:
                stage.restore(self._last)
        self._running: StreamingQuery | None = None
        if source.isStreaming:
            writer = source.writeStream.foreachBatch(self._process).option("checkpointLocation", spark_checkpoint)
            self._running = (writer.trigger(**trigger) if trigger else writer).start()
        else:
            try:
                self._process(source, 0)
            finally:
                self._lease.release()

    @property
    def table(self) -> RoutingTable:
        """The routing table of the first stage's next batch."""
        return self._stages[0].table

    @property
    def decisions(self) -> list[Decision]:
        """All decisions of the first stage's controller that are remembered, also those to stay."""
        return list(self._stages[0].controller.decisions)

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
        self._lease.release()

    def _process(self, rows: DataFrame, batch: int) -> None:
        if self._last is not None and batch <= self._last.batch:
            return  # It was committed; Spark died before it noted that. Its results are in the sink.
        started = time.time()
        self._lease.renew(started)
        runs: list[StageRun] = []
        try:
            for stage in self._stages:
                runs.append(stage.run(rows, batch))
                rows = runs[-1].output
            self._sink(rows, batch)
            self._commit(batch, runs)
        except BaseException:
            self._lease.release()  # Spark ends the query; another may go on from the last commit.
            raise
        finally:
            for run in runs:
                run.release()
        took_ms = 1000 * (time.time() - started)
        self.history.append({"batch": batch, "ms": took_ms, "reports": [run.reports for run in runs]})
        if batch % _KEPT_COMMITS == _KEPT_COMMITS - 1:
            clean(self._checkpoint, keep=_KEPT_COMMITS)
            self._remove_old_tables()

    def _commit(self, batch: int, runs: list[StageRun]) -> None:
        now = time.time()
        verdicts = [stage.decide(run, batch, now) for stage, run in zip(self._stages, runs, strict=True)]
        facts = {
            stage.stage.name: stage.facts(decision, following)
            for stage, (decision, following) in zip(self._stages, verdicts, strict=True)
        }
        manifests = [ref for run in runs for ref in run.manifests]
        self._last = self._checkpoint.commit(
            batch, manifests, epoch=self._stages[0].table.epoch, metadata={"stages": facts}
        )
        for stage, run, (_, following) in zip(self._stages, runs, verdicts, strict=True):
            stage.advance(run, following)

    def _remove_old_tables(self) -> None:
        """Remove tables and controllers that no kept commit names."""
        named = set()
        for batch in self._checkpoint.batches():
            for facts in self._checkpoint.read_commit(batch).metadata["stages"].values():
                named |= {StoredFile(*stored).path for stored in facts.values()}
        for path in set(self._checkpoint.files.list("tables")) - named:
            self._checkpoint.files.delete(path)


def _read_table(files: Any, stored: list[Any]) -> RoutingTable:
    return RoutingTable.from_arrow(pa.ipc.open_stream(files.read(StoredFile(*stored))).read_all())


def _batch_report(reports: list[dict[str, Any]], batch: int, now: float) -> BatchReport:
    channels = []
    for report in reports:
        loads = report["loads"]
        zeros = np.zeros(len(loads["held_slots"]))
        slots = Tally(
            [*loads["slots"], *loads["held_slots"]],
            [*loads["slot_counts"], *zeros],
            [*loads["slot_counts"], *zeros],
            [*np.zeros(len(loads["slots"]), int), *loads["held_bytes"]],
        )
        keys = Tally(loads["keys"], loads["key_counts"], loads["key_counts"], loads["key_bytes"])
        channels.append(ChannelReport(report["channel"], report["busy_ms"], slots, keys, int(sum(loads["held_keys"]))))
    return BatchReport(batch, now, tuple(channels), moved_bytes=sum(report["imported_bytes"] for report in reports))
