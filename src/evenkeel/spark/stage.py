"""A keyed stage: route, shuffle once, update state where it lives."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from evenkeel.errors import IncompatibleCheckpointError, InvalidArgumentError, InvalidPlanError
from evenkeel.operators import Mergeable, Moment
from evenkeel.operators.mergeable import sql_name
from evenkeel.operators.split import Partial
from evenkeel.routing.replicas import switchable
from evenkeel.spark.carriage import Carriage, carriage
from evenkeel.spark.columns import ORDER, at_addresses, channel_of, with_channel, with_copies
from evenkeel.spark.combine import Combining, Form, Lift
from evenkeel.spark.homes import PLACE, ROWS, STATE, WIDTH, Homes, executors
from evenkeel.spark.parcels import parcel_type
from evenkeel.spark.probe import WarmProbe
from evenkeel.spark.routes import Route
from evenkeel.spark.run import StageRun
from evenkeel.spark.sending import SENT, Order, Sending, SendingAhead
from evenkeel.spark.steps import Steps
from evenkeel.spark.task import REPORT, StageTask
from evenkeel.spark.types import spark_type
from evenkeel.state import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from evenkeel.operators import Operator
    from evenkeel.routing import Router, RoutingTable
    from evenkeel.state import Checkpoint, ManifestRef, StoredFile

__all__ = ["KeyedStage", "NullKeys", "Placement"]

NullKeys = Literal["keep", "drop", "error"]

_PAYS, _PAYS_FROM = 5.0, 7.0
"""Tuples per partial state from which combining goes on; tuples per key from which it is tried."""
_MANY = 100_000
"""Tuples of a batch for which combining pays, where a further exchange costs as much as a small batch."""
_SLOW_US, _SLOW_MS = 10.0, 50.0
"""Microseconds of work per tuple, and milliseconds per channel, from which on it begins before all tuples have come:
Spark needs about one microsecond to bring a tuple."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where keys are: by a table, unless a router decides; a router is known by how it is written."""

    table: RoutingTable
    router: str | None = None
    splits: bool = False


@dataclass(slots=True)
class KeyedStage:
    """An operator over keyed rows on a number of channels.

    Parameters
    ----------
    spark
        The user's session; none of its settings is changed.
    name, directory
        Whose state it is, and where hosts keep working copies.
    operator, key_names, row_schema, event_time
        What to compute, over which columns.
    null_keys
        What to do with rows that have a null in their key: ``"keep"`` them as a key of their own, ``"drop"`` them, or
        fail (``"error"``).
    router
        Chooses a channel for each tuple, in place of the table.
    probe
        The column of tuples that go to every channel that may hold a part of their key.
    splits
        Whether a key may have partial states on several channels.
    combine
        Whether to lift tuples to partial states before the shuffle, for an operator whose states merge; ``None`` does
        so while it pays.
    levels_where
        By column and value of a tuple, how many backups its key is to have.
    streams
        Whether batch follows batch.
    """

    spark: SparkSession
    name: str
    directory: str
    operator: Operator
    key_names: tuple[str, ...]
    row_schema: pa.Schema
    event_time: str | None = None
    null_keys: NullKeys = "keep"
    router: Router | None = None
    probe: str | None = None
    splits: bool = False
    combine: bool | None = False
    levels_where: Mapping[str, Mapping[Any, int]] = field(default_factory=dict)
    streams: bool = False
    checkpoint: Checkpoint = field(init=False)
    """Where the state is kept; given when all else is known to be right."""
    hosts: dict[int, str] = field(default_factory=dict)
    """The host of each channel, as far as known."""
    _homes: Homes | None = None
    _left: list[Homes] = field(default_factory=list)
    _spare: dict[int, Homes] = field(default_factory=dict)
    """By number of channels, homes that were left: for when there are as many channels again."""
    _uprooted: bool = False
    _fetches: bool = False
    """Whether channels read what others of their host had: then none of it is removed before the next batch."""
    _steps: Steps = field(default_factory=Steps)
    _combines: bool = field(init=False)
    slow: bool = False
    """Whether the operator takes longer over tuples than Spark takes to bring them."""
    _sends_ahead: bool = False
    """Whether rows come packed by where they go, combined or not, as the order of the batch said."""

    def __post_init__(self) -> None:
        self._combines = self.combine is True

    def placement(self, table: RoutingTable) -> Placement:
        """Say where keys are under a table."""
        return Placement(table, None if self.router is None else repr(self.router), self.splits)

    def run(
        self,
        rows: DataFrame,
        batch: int,
        now: Moment,
        table: RoutingTable,
        before: Placement,
        versions: Mapping[int, ManifestRef],
        *,
        stored: Callable[[], StoredFile],
        keep: bool,
        overwritten: bool = False,
    ) -> StageRun:
        """Run one batch under ``table``; what was placed elsewhere before moves in the same shuffle.

        ``stored`` says where the table is in the checkpoint, for tasks that were planned without it.
        ``keep`` is for results that may be read more than once, ``overwritten`` for those that are replaced by the
        results of another attempt at the batch.
        """
        from pyspark import StorageLevel

        if len(table.split_hashes) and not self.splits:
            raise InvalidPlanError(f"The table splits keys, which operator {self.operator.name!r} does not allow here.")
        homes = self._homes
        assert homes is not None
        assert len(homes.places) == table.channels
        moved, rerouted = self._carriage(before, table, versions, homes)
        self._fetches = bool(moved.fetches)
        old = self._homes_of(before.table.channels) if moved.sends else homes
        lift = self._lift(now)
        combining = Combining(lift, in_python=self._sends_ahead) if lift is not None and self._combines else None
        early = lift if self._begins_early(table) and combining is None else None
        lifted = combining or early
        form = Form(self.operator, self.row_schema, self.event_time) if lifted is None else lifted.form
        attempts = uuid.uuid4().hex
        task = StageTask(
            checkpoint=self.checkpoint,
            stage=self.name,
            directory=self.directory,
            operator=form.operator,
            key_names=self.key_names,
            row_schema=form.rows,
            event_time=form.event_time,
            batch=batch,
            now=now,
            attempts=attempts,
            table=table,
            router=self.router,
            addresses=homes.addresses,
            marks=homes.marks,
            votes=homes.votes,
            seats=homes.channels,
            seats_before=old.channels,
            versions=dict(versions),
            sends=moved.sends,
            fetches=moved.fetches,
            drops=moved.drops,
            before=None if rerouted else before.table,
            stops_if_cold=switchable(before.table) & switchable(table),
            levels_where=self.levels_where,
            ordered=table.has_backups and not form.operator.any_order,
            lift=early,
            merges_arrivals=self.operator.merges and (before.splits or self.splits),
            stays=homes.by_host if self._uprooted and not self._fetches else None,
            refuses_null_keys=self.null_keys == "error",
            gives_up_quietly=overwritten,
            reports=keep,
            follows=self.streams,
            catches_up=self.streams and not self.slow,  # whose state is opened while cores are idle
        )
        if self._sends_ahead:
            Order(stored(), task.addresses, self._combines, task.ordered, now).give(rows.sparkSession)
        arriving, columns = self._routed(rows, combining, task)
        if moved.sends:
            exported = old.rows.mapInArrow(task.export, parcel_type(STATE))
            arriving, columns = arriving.unionByName(exported, allowMissingColumns=True), [*columns, STATE]
        shuffled = self._steps.repartition(arriving, table.channels, PLACE)
        columns = [PLACE, *columns]
        # A task sees its home rows first, and knows who it is before tuples come.
        everything = homes.with_rows(shuffled, columns)
        output = self._steps.map(everything, list(map(sql_name, columns)), task.run, self._output_type(task))
        run = StageRun(output, self.name, batch, attempts, task, self.checkpoint, homes)
        if keep:
            run.kept = output.persist(StorageLevel.MEMORY_AND_DISK)
            run.output = run.kept.where(f"{REPORT} IS NULL").drop(REPORT)
        return run

    def cold_channels(self, versions: Mapping[int, ManifestRef]) -> frozenset[int]:
        """Ask every channel, at home, whether its state is near; give those of which it is not.

        If all of it is, what moves leaves from there: in the batch before, a task may have run elsewhere than at home.
        """
        assert self._homes is not None
        probe = WarmProbe(self.checkpoint, self.name, self.directory, self._homes.channels, dict(versions))
        found = self._homes.rows.mapInArrow(probe, "channel long, warm boolean").collect()
        cold = frozenset(row["channel"] for row in found if not row["warm"])
        if not cold:
            self._leave([homes for homes in self._left if len(homes.places) == len(self._homes.places)])
        return cold

    def _lift(self, now: Moment) -> Lift | None:
        """What makes partial states of tuples, if states merge."""
        if not isinstance(self.operator, (Mergeable, Partial)):
            return None
        return Lift(self.operator, self.key_names, self.row_schema, self.event_time, now)

    def _begins_early(self, table: RoutingTable) -> bool:
        """Whether tuples are lifted as they come: of a slow operator, if nothing but the states is asked of them."""
        return self.slow and not self.levels_where and (not table.has_backups or self.operator.any_order)

    def learn(self, reports: list[dict[str, Any]]) -> None:
        """Go by this batch in how the next one runs.

        Tuples are combined if that makes much fewer rows of very many. An operator that is slow gets them as they come.
        """
        tuples, rows, keys = (sum(report[name] for report in reports) for name in ("tuples", "rows", "keys"))
        work_ms = sum(report["work_ms"] for report in reports)
        self.slow = work_ms > max(_SLOW_US * rows / 1000, _SLOW_MS * len(reports))
        if self.combine is None:
            if self._combines:
                self._combines = tuples >= max(_PAYS * rows, _MANY / 2)
            else:
                self._combines = rows >= max(_PAYS_FROM * keys, _MANY)

    def route_ahead(self, rows: DataFrame) -> DataFrame:
        """Give the rows as :meth:`run` wants them: packed by channel where a router chooses that or tuples may combine.

        That may be part of a stream's own plan, which stays the same: what is done in the batches begins with a copy of
        every row. What differs from batch to batch, tasks are told by an order.
        """
        kept = self._without_null_keys(rows).selectExpr(*map(sql_name, self.row_schema.names))
        if self.router is not None:
            route = Route(self.router, self.key_names, self.row_schema, self.probe)
            return kept.mapInArrow(route, parcel_type(ROWS))
        lift = self._lift(Moment())
        self._sends_ahead = rows.isStreaming and self.combine is not False
        if lift is None or not self._sends_ahead:
            return rows
        return kept.mapInArrow(SendingAhead(lift, self.checkpoint), SENT)

    def _without_null_keys(self, rows: DataFrame) -> DataFrame:
        return rows.dropna(subset=list(self.key_names)) if self.null_keys == "drop" else rows

    def _routed(self, rows: DataFrame, combining: Combining | None, task: StageTask) -> tuple[DataFrame, list[str]]:
        """Combine, if asked, keep the columns that the task needs, which are told, and add where each row goes."""
        table = task.table
        if self._sends_ahead:
            return rows, [ROWS, WIDTH]
        if self.router is not None:
            return self._steps.select(rows, f"{at_addresses(PLACE, task.addresses)} AS {PLACE}", ROWS), [ROWS]
        rows = self._without_null_keys(rows)
        kept = list(task.row_schema.names if combining is not None else self.row_schema.names)
        if combining is not None:
            place = None
            if not table.has_backups and not len(table.split_hashes):  # the same for all of a key
                place = channel_of(self.key_names, table, task.addresses)
            states = combining.states_in_sql(rows, self._steps, None if place is None else f"{place} AS {PLACE}")
            if states is None:
                send = Sending(combining.lift, True, table, task.addresses, task.ordered)
                needed = self._steps.select(rows, *map(sql_name, self.row_schema.names))
                return needed.mapInArrow(send, SENT), [ROWS, WIDTH]
            if place is not None:
                return states, kept
            rows = states
        how = (self.key_names, table, PLACE, task.addresses, list(map(sql_name, kept)))
        if table.has_backups:
            return with_copies(rows, *how, order=task.ordered), [*kept, *([ORDER] if task.ordered else [])]
        return with_channel(rows, *how, self._steps), kept

    def _carriage(
        self, before: Placement, table: RoutingTable, versions: Mapping[int, ManifestRef], homes: Homes
    ) -> tuple[Carriage, bool]:
        """What moves, and whether all of it is routed anew."""
        if before.router != self.placement(table).router:
            if before.splits and not self.operator.merges:
                raise IncompatibleCheckpointError(
                    f"The states of operator {self.operator.name!r} were split by {before.router}, and do not merge: "
                    "the routing cannot be changed. Start with a new checkpoint."
                )
            everything = {channel: Selection.of(np.arange(table.slots)) for channel in versions}
            return Carriage(everything, drops=everything), True
        if self.router is not None or before.table is table:
            return Carriage(), False
        return carriage(before.table, table, self._homes_of(before.table.channels).hosts, homes.hosts), False

    # -- homes ------------------------------------------------------------------------------------------------------

    def settle(self, loads: Sequence[float], session: SparkSession) -> tuple[frozenset[str], frozenset[str]] | None:
        """See to homes for as many channels as there are loads, in the session of the rows.

        New ones are made if executors came or went; then these are given, else None.
        """
        homes = self._homes
        up = executors(self.spark)
        if homes is not None and (len(homes.places), homes.executors) == (len(loads), up):
            return None
        if homes is not None and len(homes.places) == len(loads) and up < homes.executors:
            self._move_to(homes.without(homes.executors - up, loads))
        else:
            spare = self._spare.get(len(loads))
            if spare is not None and spare.executors == up:
                self._move_to(spare.seated(loads, self.hosts))
            else:
                self._move_to(Homes.form(session, loads, self.hosts))
        if homes is None or homes.executors == up:
            return None
        return up - homes.executors, homes.executors - up

    def reseat(self, loads: Sequence[float]) -> None:
        """Seat the channels anew in the homes that there are."""
        assert self._homes is not None
        self._move_to(self._homes.seated(loads, self._homes.hosts, evens=True))

    def _move_to(self, homes: Homes) -> None:
        if self._homes is not None:
            self._left.append(self._homes)
            self._uprooted = True
        self._homes, self.hosts = homes, homes.hosts

    def _homes_of(self, channels: int) -> Homes:
        """Give the homes that the channels had in the batch before, as far as that is known."""
        for homes in [*self._left, self._homes]:
            if homes is not None and len(homes.places) == channels:
                return homes
        self._left.append(Homes.form(self.spark, [1.0] * channels, {}))
        return self._left[-1]

    def leave_old_homes(self) -> None:
        """Give up the homes that nothing moves from any more."""
        self._leave(list(self._left))
        self._uprooted = self._uprooted and self._fetches

    def _leave(self, gone: list[Homes]) -> None:
        """Keep what can be used again, as long as the executors stay; give up the rest."""
        for homes in gone:
            self._left.remove(homes)
        now, old = self._homes, [*self._spare.values(), *gone]
        self._spare = {
            len(homes.places): homes for homes in old if now is not None and homes.executors == now.executors
        }
        kept = [homes.rows for homes in (now, *self._left, *self._spare.values()) if homes is not None]
        for homes in old:
            if not any(homes.rows is rows for rows in kept):
                homes.rows.unpersist()

    def close(self) -> None:
        """Give up all homes."""
        if self._homes is not None:
            self._left.append(self._homes)
            self._homes = None
        self.leave_old_homes()

    # -- columns ----------------------------------------------------------------------------------------------------

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

    def _output_type(self, task: StageTask) -> Any:
        schema = self.output_schema()
        return spark_type(schema.append(pa.field(REPORT, pa.string())) if task.reports else schema)
