"""What a user writes: ``stream(events, key="word").apply(Count(), channels=8).start(sink, checkpoint=…)``."""

from __future__ import annotations

import os
import socket
import tempfile
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenkeel.control import Controller
from evenkeel.errors import InvalidArgumentError
from evenkeel.planning import Planner, make_planner
from evenkeel.routing import RoutingTable
from evenkeel.spark.query import BalancedStage, Query
from evenkeel.spark.sinks import as_sink
from evenkeel.spark.stage import KeyedStage
from evenkeel.state import Checkpoint, Lease

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from evenkeel.operators import Operator
    from evenkeel.spark.sinks import Sink
    from evenkeel.spark.stage import NullKeys

__all__ = ["Flow", "KeyedRows", "stream"]


def stream(rows: DataFrame, key: str | Sequence[str], *, null_keys: NullKeys = "keep") -> KeyedRows:
    """Group rows by key; any DataFrame, streaming or static.

    Parameters
    ----------
    rows
        The tuples.
    key
        The key column, or several.
    null_keys
        What to do with rows that have a null in their key: ``"keep"`` them as a key of their own, ``"drop"`` them, or
        fail (``"error"``).
    """
    if null_keys not in ("keep", "drop", "error"):
        raise InvalidArgumentError(f"null_keys must be 'keep', 'drop' or 'error'; got {null_keys!r}.")
    return KeyedRows(Flow(rows, ()), _as_keys(key), null_keys)


@dataclass(frozen=True, slots=True)
class _Step:
    """One keyed stage to be."""

    operator: Operator
    keys: tuple[str, ...]
    controller: Controller
    channels: int
    slots: int | None
    null_keys: NullKeys


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows grouped by key, waiting for an operator."""

    flow: Flow
    keys: tuple[str, ...]
    null_keys: NullKeys = "keep"

    def apply(
        self,
        operator: Operator,
        strategy: str | Planner | Controller = "keel",
        channels: int = 8,
        *,
        slots: int | None = None,
    ) -> Flow:
        """Apply an operator to each key, on a number of channels that a strategy keeps even.

        Parameters
        ----------
        operator
            What to compute.
        strategy
            A planner by name or as an object, or a whole controller.
        channels
            Parallel tasks.
        slots
            Hash buckets of keys; enough for ``channels`` by default.
        """
        if channels < 1:
            raise InvalidArgumentError(f"channels must be at least 1; got {channels}.")
        planner = make_planner(strategy) if isinstance(strategy, str) else strategy
        controller = Controller(planner) if isinstance(planner, Planner) else planner
        step = _Step(operator, self.keys, controller, channels, slots, self.null_keys)
        return replace(self.flow, steps=(*self.flow.steps, step))


@dataclass(frozen=True, slots=True)
class Flow:
    """Rows and the keyed stages that they go through."""

    rows: DataFrame
    steps: tuple[_Step, ...]

    def key_by(self, *key: str) -> KeyedRows:
        """Group the results of the last stage by key again, for another stage."""
        return KeyedRows(self, _as_keys(key))

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
            A path, ``"console"``, or ``function(results, batch)``; see :mod:`evenkeel.spark.sinks`.
        checkpoint
            A directory, or a URI that ``pyarrow.fs`` knows. A query that is started again on it goes on where it was.
        trigger
            As for Spark's ``DataStreamWriter.trigger``, such as ``{"availableNow": True}``.
        local_directory
            Where each host keeps working copies of its channels' state; its temporary directory by default.
        job
            Name of the job; a checkpoint belongs to one.
        """
        if not self.steps:
            raise InvalidArgumentError("There is no stage to run; call apply(…) first.")
        filesystem, path = _filesystem(checkpoint)
        owner = f"{job}-{uuid.uuid4().hex}"
        opened = Checkpoint.open(filesystem, path, job=job, run=uuid.uuid4().hex, fingerprint=self._fingerprint())
        lease = Lease(opened.files, owner, socket.gethostname(), os.getpid()).acquire(time.time())
        try:
            local = local_directory or str(Path(tempfile.gettempdir()) / f"evenkeel-{os.getuid()}")
            stages = self._stages(opened, local)
            return Query(self.rows, stages, as_sink(sink), opened, lease, f"{checkpoint}/spark", trigger)
        except BaseException:
            lease.release()
            raise

    def _stages(self, checkpoint: Checkpoint, local: str) -> list[BalancedStage]:
        stages = []
        schema = _arrow_schema(self.rows)
        for number, step in enumerate(self.steps):
            missing = [name for name in step.keys if name not in schema.names]
            if missing:
                raise InvalidArgumentError(
                    f"There is no key column {missing[0]!r}. Columns: {', '.join(schema.names)}.", column=missing[0]
                )
            step.operator.state_schema(schema)  # complains about columns that are not there
            needed = [*step.keys, *(name for name in step.operator.columns(schema) if name not in step.keys)]
            schema = pa.schema([schema.field(name) for name in needed])
            stage = KeyedStage(
                self.rows.sparkSession,
                checkpoint,
                f"stage{number}",
                local,
                step.operator,
                step.keys,
                schema,
                step.null_keys,
            )
            table = RoutingTable.even(step.channels, step.slots)
            stages.append(BalancedStage(stage, step.controller, table, table))
            schema = stage.output_schema()
        return stages

    def _fingerprint(self) -> str:
        parts = [f"{step.operator.name}({', '.join(step.keys)}; slots {step.slots})" for step in self.steps]
        return " → ".join(parts)


def _as_keys(key: str | Sequence[str]) -> tuple[str, ...]:
    keys = (key,) if isinstance(key, str) else tuple(key)
    if not keys:
        raise InvalidArgumentError("A key needs at least one column; got none.")
    return keys


def _arrow_schema(rows: DataFrame) -> pa.Schema:
    """The schema as Spark itself gives it to Arrow; the functions that map types differ between its versions."""
    return rows.sparkSession.createDataFrame([], rows.schema).toArrow().schema


def _filesystem(location: str) -> tuple[Any, str]:
    from pyarrow import fs

    if "://" in location:
        found: tuple[Any, str] = fs.FileSystem.from_uri(location)
        return found
    return fs.LocalFileSystem(), str(Path(location).absolute())
