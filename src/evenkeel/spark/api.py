"""What a user writes: ``stream(events, key="word").apply(Count(), channels=8).start(sink, checkpoint=…)``."""

from __future__ import annotations

import os
import socket
import tempfile
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from evenkeel.control import Controller, ServiceLevels
from evenkeel.errors import InvalidArgumentError
from evenkeel.operators import Mergeable
from evenkeel.operators.durations import microseconds
from evenkeel.operators.mergeable import sql_name
from evenkeel.operators.split import PART, Merged, Partial
from evenkeel.planning import make_planner
from evenkeel.routing import RoutingTable
from evenkeel.spark.balanced import BalancedStage
from evenkeel.spark.query import Query
from evenkeel.spark.sinks import as_sink
from evenkeel.spark.stage import KeyedStage
from evenkeel.spark.strategies import Strategy, as_strategy
from evenkeel.spark.times import check_event_time
from evenkeel.state import Checkpoint, Lease

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from evenkeel.operators import Operator
    from evenkeel.planning import Planner
    from evenkeel.routing import Router
    from evenkeel.spark.sinks import Sink
    from evenkeel.spark.stage import NullKeys

__all__ = ["Flow", "KeyedRows", "stream"]


def stream(
    rows: DataFrame,
    key: str | Sequence[str],
    *,
    event_time: str | None = None,
    delay: str | timedelta = "0 seconds",
    null_keys: NullKeys = "keep",
) -> KeyedRows:
    """Group rows by key; any DataFrame, streaming or static.

    Parameters
    ----------
    rows
        The tuples.
    key
        The key column, or several.
    event_time
        The column that says when each tuple happened: a timestamp or a date.
    delay
        How late tuples may come, in event time: ``"10 seconds"``. The watermark is the newest event time of the batches
        before, less this.
    null_keys
        What to do with rows that have a null in their key: ``"keep"`` them as a key of their own, ``"drop"`` them, or
        fail (``"error"``).
    """
    return Flow(rows, ()).key_by(*_as_keys(key), event_time=event_time, delay=delay, null_keys=null_keys)


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows grouped by key, waiting for an operator."""

    flow: Flow
    keys: tuple[str, ...]
    event_time: str | None = None
    delay_us: int = 0
    null_keys: NullKeys = "keep"

    def apply(
        self,
        operator: Operator,
        strategy: str | Planner | Controller | Router = "keel",
        channels: int = 8,
        *,
        slots: int | None = None,
        combine: bool | None = None,
        replicas: int | Mapping[str, Any] | ServiceLevels = 0,
        aggregate_every: int | str | timedelta = 1,
        split_results: Literal["merge", "partial"] = "merge",
        probe: str | None = None,
    ) -> Flow:
        """Apply an operator to each key, on a number of channels that a strategy keeps even.

        Parameters
        ----------
        operator
            What to compute.
        strategy
            A planner by name or as an object, or a whole controller: keys move while the query runs. Or a router, such
            as ``"pkg"``, that gives each tuple a channel; if it splits keys, the operator's partial states must merge.
        channels
            Parallel tasks.
        slots
            Hash buckets of keys; enough for ``channels`` by default.
        replicas
            Backup copies on other channels, and on other hosts where there are any: of every key, or by service levels
            (:class:`~evenkeel.control.ServiceLevels`). They take over when a host is lost, and let keys change channels
            without moving state.
        combine
            Whether to combine tuples to partial states before the shuffle, for an operator whose states merge. By
            default while it pays: in large batches with far fewer keys than tuples, and on static rows.
        aggregate_every
            Where keys are split: after how many batches, or how much time, partial states are merged. Results are then
            given as often.
        split_results
            Where keys are split: ``"merge"`` brings the partial states of a key together in a second stage;
            ``"partial"`` gives the results of each channel as they are, even those of an operator that does not merge.
        probe
            Where a router decides: a column of booleans. Rows for which it is true go to every channel that may hold a
            part of their key.
        """
        if channels < 1:
            raise InvalidArgumentError(f"channels must be at least 1; got {channels}.")
        step = _Step(
            operator,
            self,
            as_strategy(strategy, channels),
            channels,
            slots,
            combine,
            *_period(aggregate_every),
            split_results,
            probe,
            ServiceLevels.of(replicas),
        )
        step.check()
        return replace(self.flow, steps=(*self.flow.steps, step))


@dataclass(frozen=True, slots=True)
class _Step:
    """One operator to be: one keyed stage, or two where keys are split."""

    operator: Operator
    rows: KeyedRows
    strategy: Strategy
    channels: int
    slots: int | None
    combine: bool | None
    every: int
    clock: Literal["batch", "time"]
    split_results: Literal["merge", "partial"]
    probe: str | None
    levels: ServiceLevels

    @property
    def merges(self) -> bool:
        """Whether there are two stages."""
        return self.strategy.splits and self.split_results == "merge"

    @property
    def combines(self) -> bool | None:
        """Whether tuples are combined before the shuffle; ``None`` while it pays."""
        can = isinstance(self.operator, Mergeable) and self.strategy.router is None and not self.levels.where
        return self.combine if can else False

    def check(self) -> None:
        """Complain about what cannot be."""
        name = self.operator.name
        if self.merges and not isinstance(self.operator, Mergeable):
            assert self.strategy.router is not None
            raise InvalidArgumentError(
                f"{self.strategy.router.name!r} splits keys over channels, and the partial states of operator {name!r} "
                "do not merge: its results would be wrong. Take a strategy that moves whole keys, such as 'keel'; or "
                "split_results='partial' if you want the results of parts of keys."
            )
        if self.combine and not isinstance(self.operator, Mergeable):
            raise InvalidArgumentError(f"Operator {name!r} cannot be combined before the shuffle: it does not merge.")
        if self.combine and self.strategy.router is not None:
            raise InvalidArgumentError("combine is for strategies with a table; a router looks at every tuple.")
        if (self.every, self.clock) != (1, "batch"):
            if not self.merges:
                raise InvalidArgumentError("aggregate_every is for strategies that split keys.")
            if self.operator.wakes_by is not None:
                raise InvalidArgumentError(
                    f"Operator {name!r} has a clock of its own; its partial states must be merged in every batch."
                )
        if self.levels.highest:
            self._check_replicas()
        if self.probe is not None and self.strategy.router is None:
            raise InvalidArgumentError("probe is for strategies that look at every tuple, such as 'pkg'.")
        if self.operator.needs_event_time and self.rows.event_time is None:
            raise InvalidArgumentError(
                f"Operator {name!r} needs event times; name their column: stream(…, event_time=…)."
            )

    def _check_replicas(self) -> None:
        if self.strategy.router is not None:
            raise InvalidArgumentError(
                "replicas are for strategies with a table, such as 'ftlb' or 'keel'; a router has no place for backups."
            )
        if self.channels == 1:
            raise InvalidArgumentError("replicas need at least 2 channels: a backup is never beside its active copy.")


@dataclass(frozen=True, slots=True)
class Flow:
    """Rows and the keyed stages that they go through."""

    rows: DataFrame
    steps: tuple[_Step, ...]

    def key_by(
        self,
        *key: str,
        event_time: str | None = None,
        delay: str | timedelta = "0 seconds",
        null_keys: NullKeys = "keep",
    ) -> KeyedRows:
        """Group the results of the last stage by key again, for another stage; as :func:`stream` does."""
        if null_keys not in ("keep", "drop", "error"):
            raise InvalidArgumentError(f"null_keys must be 'keep', 'drop' or 'error'; got {null_keys!r}.")
        return KeyedRows(self, _as_keys(key), event_time, microseconds(delay), null_keys)

    def start(
        self,
        sink: Sink,
        *,
        checkpoint: str,
        trigger: dict[str, Any] | None = None,
        local_directory: str | None = None,
        job: str = "evenkeel",
    ) -> Query:
        """Start the query; on static rows it has run when this returns.

        Parameters
        ----------
        sink
            A path, ``"console"``, ``"memory"``, or ``function(results, batch)``; see :mod:`evenkeel.spark.sinks`.
        checkpoint
            A directory, or a URI that ``pyarrow.fs`` knows. A query that is started again on it goes on where it was.
        trigger
            As for Spark's ``DataStreamWriter.trigger``, such as ``{"availableNow": True}``.
        local_directory
            Where each host keeps working copies of its channels' state: one path for all, from the driver's working
            directory if it is relative; the temporary directory by default.
        job
            Name of the job; a checkpoint belongs to one.
        """
        if not self.steps:
            raise InvalidArgumentError("There is no stage to run; call apply(…) first.")
        local = str(Path(local_directory or Path(tempfile.gettempdir()) / f"evenkeel-{os.getuid()}").absolute())
        stages = self._stages(local)  # complains about mistakes before anything is written
        write = as_sink(sink)
        filesystem, path = _filesystem(checkpoint)
        owner = f"{job}-{uuid.uuid4().hex}"
        shape = " → ".join(stage.shape for stage in stages if stage.shape)
        opened = Checkpoint.open(filesystem, path, job=job, run=uuid.uuid4().hex, fingerprint=shape)
        lease = Lease(opened.files, owner, socket.gethostname(), os.getpid()).acquire(time.time())
        try:
            for stage in stages:
                stage.stage.checkpoint = opened
            # Spark would look for a relative path from where its JVM was started.
            spark_checkpoint = checkpoint if "://" in checkpoint else str(Path(checkpoint).absolute())
            # Nothing that Spark does within a batch tells the source which columns it may leave out.
            needed = self.rows.selectExpr(*map(sql_name, stages[0].stage.row_schema.names))
            return Query(needed, stages, write, opened, lease, f"{spark_checkpoint}/spark", trigger)
        except BaseException:
            lease.release()
            raise

    def _stages(self, local: str) -> list[BalancedStage]:
        stages: list[BalancedStage] = []
        schema = _arrow_schema(self.rows)
        for number, step in enumerate(self.steps):
            made = _make_stages(self.rows, local, schema, step, number)
            stages += made
            schema = made[-1].stage.output_schema()
        return stages


def _make_stages(rows: DataFrame, local: str, schema: pa.Schema, step: _Step, number: int) -> list[BalancedStage]:
    keyed, operator, name = step.rows, step.operator, f"stage{number}"
    schema = _needed(schema, step)

    def stage(called: str, what: Operator, columns: pa.Schema, event_time: str | None, **options: Any) -> KeyedStage:
        place = (rows.sparkSession, called, local)
        return KeyedStage(*place, what, keyed.keys, columns, event_time, streams=rows.isStreaming, **options)

    even = RoutingTable.even(step.channels, step.slots)
    shape = _shape(step, schema)
    keys = [schema.field(key) for key in keyed.keys]
    routed = {"router": step.strategy.router, "probe": step.probe, "splits": step.strategy.splits}
    first = {"null_keys": keyed.null_keys}
    if step.merges:
        assert isinstance(operator, Mergeable)
        parts = pa.schema([*keys, pa.field(PART, pa.binary())])
        half = Partial(operator, step.every, step.clock)
        spread = stage(f"{name}-partial", half, schema, keyed.event_time, **first, **routed)
        partial = BalancedStage(spread, step.strategy.controller, even, keyed.delay_us, number)
        merged = stage(name, Merged(operator, schema), parts, None)
        return [partial, BalancedStage(merged, Controller(make_planner("keel")), even, 0, number, partial, shape=shape)]
    combine = True if step.combines is None and not rows.isStreaming else step.combines
    levels = step.levels if step.levels.highest else None
    options = {"combine": combine, "levels_where": step.levels.where, **first, **routed}
    only = stage(name, operator, schema, keyed.event_time, **options)
    return [BalancedStage(only, step.strategy.controller, even, keyed.delay_us, number, levels=levels, shape=shape)]


def _shape(step: _Step, schema: pa.Schema) -> str:
    """What must stay as it is when a query is started again: operator, columns of keys and states, slots."""
    keys = ", ".join(f"{name} {schema.field(name).type}" for name in step.rows.keys)
    states = ", ".join(f"{field.name} {field.type}" for field in step.operator.state_schema(schema))
    slots = "" if step.slots is None else f", {step.slots} slots"
    return f"{step.operator.name} by ({keys}) keeping ({states}){slots}"


def _needed(schema: pa.Schema, step: _Step) -> pa.Schema:
    """The columns that a step needs of those that there are; complains about those that are not."""
    keyed, operator = step.rows, step.operator
    if keyed.event_time is not None:
        check_event_time(schema, keyed.event_time)
    where = tuple(step.levels.where)
    named = {"key": keyed.keys, "probe": () if step.probe is None else (step.probe,), "service level": where}
    for what, names in named.items():
        for name in names:
            if name not in schema.names:
                raise InvalidArgumentError(
                    f"There is no {what} column {name!r}. Columns: {', '.join(schema.names)}.", column=name
                )
    operator.state_schema(schema)  # complains about columns that are not there
    wanted = [*keyed.keys, *operator.columns(schema), keyed.event_time, step.probe, *where]
    return pa.schema([schema.field(name) for name in dict.fromkeys(wanted) if name is not None])


def _as_keys(key: str | Sequence[str]) -> tuple[str, ...]:
    keys = (key,) if isinstance(key, str) else tuple(key)
    if not keys:
        raise InvalidArgumentError("A key needs at least one column; got none.")
    return keys


def _period(every: int | str | timedelta) -> tuple[int, Literal["batch", "time"]]:
    if isinstance(every, int):
        if every < 1:
            raise InvalidArgumentError(f"aggregate_every must be at least 1 batch; got {every}.")
        return every, "batch"
    return max(1, microseconds(every)), "time"


def _arrow_schema(rows: DataFrame) -> pa.Schema:
    """The schema as Spark itself gives it to Arrow; the functions that map types differ between its versions."""
    return rows.sparkSession.createDataFrame([], rows.schema).toArrow().schema


def _filesystem(location: str) -> tuple[Any, str]:
    from pyarrow import fs

    if "://" in location:
        found: tuple[Any, str] = fs.FileSystem.from_uri(location)
        return found
    return fs.LocalFileSystem(), str(Path(location).absolute())
