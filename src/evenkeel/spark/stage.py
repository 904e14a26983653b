"""A keyed stage: route, shuffle once, update state where it lives."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.routing import Action
from evenkeel.routing.ragged import union
from evenkeel.spark.columns import literal_array, with_channel
from evenkeel.spark.homes import PLACE, Homes
from evenkeel.spark.task import REPORT, STATE_COLUMNS, StageTask
from evenkeel.state import ManifestRef, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from evenkeel.operators import Operator
    from evenkeel.routing import RoutingTable
    from evenkeel.state import Checkpoint

__all__ = ["KeyedStage", "NullKeys", "StageRun"]

NullKeys = Literal["keep", "drop", "error"]


@dataclass(slots=True)
class StageRun:
    """One batch that went through a keyed stage."""

    output: DataFrame
    """The results; the stage ran once, however often this is read."""
    manifests: list[ManifestRef]
    reports: list[dict[str, Any]]
    _held: DataFrame

    def release(self) -> None:
        """Give up the cached results."""
        self._held.unpersist()


@dataclass(slots=True)
class KeyedStage:
    """An operator over keyed rows on a number of channels.

    Parameters
    ----------
    spark
        The user's session; none of its settings is changed.
    checkpoint, name, directory
        Where the state is kept.
    operator, key_names, row_schema
        What to compute, over which columns.
    null_keys
        What to do with rows that have a null in their key: ``"keep"`` them as a key of their own, ``"drop"`` them, or
        fail (``"error"``).
    """

    spark: SparkSession
    checkpoint: Checkpoint
    name: str
    directory: str
    operator: Operator
    key_names: tuple[str, ...]
    row_schema: pa.Schema
    null_keys: NullKeys = "keep"
    _homes: dict[int, Homes] = field(default_factory=dict)

    def run(
        self,
        rows: DataFrame,
        batch: int,
        table: RoutingTable,
        before: RoutingTable,
        versions: Mapping[int, ManifestRef],
    ) -> StageRun:
        """Run one batch under ``table``; what ``before`` placed elsewhere moves in the same shuffle."""
        from pyspark import StorageLevel
        from pyspark.sql import functions as F

        if self.null_keys == "drop":
            rows = rows.dropna(subset=list(self.key_names))
        homes = self._homes_for(table.channels)
        leaving = leaving_channels(before, table)
        task = StageTask(
            checkpoint=self.checkpoint,
            stage=self.name,
            directory=self.directory,
            operator=self.operator,
            key_names=self.key_names,
            row_schema=self.row_schema,
            batch=batch,
            table=table,
            places=homes.places,
            versions=dict(versions),
            leaving=leaving,
            refuses_null_keys=self.null_keys == "error",
        )
        routed = with_channel(rows.select(*self.row_schema.names), self.key_names, table, PLACE)
        arriving = routed.withColumn(PLACE, F.get(literal_array(homes.places), F.col(PLACE)))
        if leaving:
            old = self._homes_for(before.channels).rows.mapInArrow(task.export, _STATE_DDL)
            arriving = arriving.unionByName(old, allowMissingColumns=True)
        shuffled = arriving.repartition(table.channels, PLACE)
        everything = homes.rows.unionByName(shuffled, allowMissingColumns=True)
        held = everything.mapInArrow(task.run, self._output_type()).persist(StorageLevel.MEMORY_AND_DISK)
        lines = [json.loads(row[0]) for row in held.where(F.col(REPORT).isNotNull()).select(REPORT).collect()]
        output = held.where(F.col(REPORT).isNull()).drop(REPORT)
        manifests = [ManifestRef.from_json(line.pop("manifest")) for line in lines]
        return StageRun(output, manifests, lines, held)

    def _homes_for(self, channels: int) -> Homes:
        if channels not in self._homes:
            self._homes[channels] = Homes.of(self.spark, channels)
        return self._homes[channels]

    def forget_homes(self, *, but: int) -> None:
        """Give up the homes of other numbers of channels."""
        for channels in [n for n in self._homes if n != but]:
            self._homes.pop(channels).release()

    def output_schema(self) -> pa.Schema:
        """The key columns and the operator's results."""
        keys = [self.row_schema.field(name) for name in self.key_names]
        results = self.operator.output_schema(self.row_schema)
        shared = set(self.key_names) & set(results.names)
        if shared:
            raise InvalidArgumentError(
                f"Operator {self.operator.name!r} has a result called {min(shared)!r}, and so is a key. Rename one.",
                column=min(shared),
            )
        return pa.schema([field.with_nullable(True) for field in (*keys, *results)])

    def _output_type(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.output_schema().append(pa.field(REPORT, pa.string())))


_STATE_TYPES = dict(zip(STATE_COLUMNS.values(), ("int", "long", "long", "binary"), strict=True))
_STATE_DDL = ", ".join([f"{PLACE} int", *(f"{name} {kind}" for name, kind in _STATE_TYPES.items())])


def leaving_channels(before: RoutingTable, after: RoutingTable) -> dict[int, Selection]:
    """Give what each channel sends away when ``after`` replaces ``before``."""
    moves = before.diff(after)
    sent = moves.actions == Action.MOVE
    listed = union(before.pin_hashes, before.split_hashes, after.pin_hashes, after.split_hashes)
    spare = (listed % before.slots, listed)
    leaving = {}
    for channel in np.unique(moves.sources[sent]).tolist():
        mine = sent & (moves.sources == channel)
        keys = moves.ids[mine & moves.is_key]
        leaving[channel] = Selection.of(moves.ids[mine & ~moves.is_key], spare, (keys % before.slots, keys))
    return leaving
