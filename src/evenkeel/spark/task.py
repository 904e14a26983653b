"""What runs in a task of a keyed stage, in Spark's Python workers."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import (
    ColdChannelError,
    EvenkeelError,
    KeyFailedError,
    MisplacedTaskError,
    StageFailedError,
)
from evenkeel.operators import NEVER, Groups, RowCodec
from evenkeel.spark.ahead import OPENING, OpenedAhead, catch_up_later, read_ahead
from evenkeel.spark.arrivals import merge_arrivals
from evenkeel.spark.carriage import targets_of
from evenkeel.spark.combine import TUPLES
from evenkeel.spark.homes import HOME, STATE, host_name, seat_of
from evenkeel.spark.intake import Intake
from evenkeel.spark.loads import levels_asked, loads_of, state_bytes, sum_of
from evenkeel.spark.parcels import packed
from evenkeel.spark.times import LATE, event_times
from evenkeel.spark.worker import promptly
from evenkeel.state import (
    Checkpoint,
    Delta,
    ManifestRef,
    Selection,
    StateStore,
    both_hashes,
    forget_others,
    with_wakes,
    without_wakes,
)
from evenkeel.state.identity import as_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from evenkeel.operators import Moment, Operator, Update
    from evenkeel.routing import Router, RoutingTable
    from evenkeel.spark.combine import Lift
    from evenkeel.state import StateView

__all__ = ["COLD", "REPORT", "StageTask"]

REPORT = "__evenkeel_report"
COLD = "[evenkeel: cold channel]"
"""How the driver knows the error of a task that found its channel cold, behind all that Spark puts around it."""


@dataclass(frozen=True)
class StageTask:
    """One batch of a keyed stage, as its tasks see it.

    Parameters
    ----------
    checkpoint, stage, directory
        Where the truth is, whose state, and below which directory hosts keep working copies.
    operator, key_names, row_schema, event_time
        What to compute over which columns.
    batch, now, attempts
        The micro-batch, when it is processed, and how the names of its attempts start.
    table, router
        Where keys are in this batch: by the table, or by a router.
    addresses, marks
        The placement value of each channel, and of each seat's home row, which is below 0.
    votes
        How often a task finds its home row.
    seats, seats_before
        The channel that sits in each home, now and for what leaves.
    versions
        What each channel held after the batch before.
    sends, fetches, drops
        What each channel gives to others in this batch, what it gets from each other one of its host, and what it
        keeps no copy of.
    before
        The table of the batch before, by which copies are told from moves; None where all is routed anew.
    stops_if_cold
        Channels with copies elsewhere, which are switched on rather than restoring the channel.
    levels_where
        By column and value of a tuple, how many copies its key is to have.
    ordered
        Whether tuples carry the order of their arrival, and are to be put into it.
    lift
        What makes partial states of tuples while others are still to come, and gives the operator only those.
    merges_arrivals
        Whether state that arrives is a part of a key that may be here already.
    stays
        The channels that live on each host, if others' working copies are to be removed; else None.
    refuses_null_keys
        Whether a null in a key is an error.
    gives_up_quietly
        Whether a channel that is not to be restored just leaves no results and no manifest, in place of failing.
    reports
        Whether a channel's last row out is to say which manifest its results belong to.
    follows
        Whether another batch will follow, so that what it can go without may be done while it runs.
    catches_up
        Whether working copies are to be ready for that batch.
    """

    checkpoint: Checkpoint
    stage: str
    directory: str
    operator: Operator
    key_names: tuple[str, ...]
    row_schema: pa.Schema
    event_time: str | None
    batch: int
    now: Moment
    attempts: str
    table: RoutingTable
    router: Router | None
    addresses: tuple[int, ...]
    marks: tuple[int, ...]
    votes: int
    seats: tuple[int, ...]
    seats_before: tuple[int, ...]
    versions: Mapping[int, ManifestRef]
    sends: Mapping[int, Selection] = field(default_factory=dict)
    fetches: Mapping[int, Mapping[int, Selection]] = field(default_factory=dict)
    drops: Mapping[int, Selection] = field(default_factory=dict)
    before: RoutingTable | None = None
    stops_if_cold: frozenset[int] = frozenset()
    levels_where: Mapping[str, Mapping[Any, int]] = field(default_factory=dict)
    ordered: bool = False
    lift: Lift | None = None
    merges_arrivals: bool = False
    stays: Mapping[str, frozenset[int]] | None = None
    refuses_null_keys: bool = False
    gives_up_quietly: bool = False
    reports: bool = False
    follows: bool = False
    catches_up: bool = False

    # -- before the shuffle -----------------------------------------------------------------------------------------

    def export(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send the state that leaves the channels whose home rows are in ``batches``."""
        for batch in promptly(batches):
            for seat in batch.column(HOME).to_pylist():
                channel = self.seats_before[seat_of(seat, len(self.seats_before))]
                if channel not in self.sends or channel not in self.versions:
                    continue
                with self._open(channel) as view:
                    for rows in view.export(self.sends[channel]):
                        yield self._addressed(rows, channel)

    def _addressed(self, rows: pa.RecordBatch, channel: int) -> pa.RecordBatch:
        hashes = rows.column("hash").to_numpy()
        if self.before is not None:
            places, targets = targets_of(self.before, self.table, channel, hashes)
            rows = rows.take(pa.array(places))
        elif self.router is not None and self.router.keeps_keys_together:
            targets = self.router.route(hashes)
        else:
            targets = self.table.home(hashes)
        return packed(pa.Table.from_batches([rows]), np.array(self.addresses, np.int32)[targets], STATE)

    # -- after the shuffle ------------------------------------------------------------------------------------------

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Import, update, emit and commit one channel."""
        started = time.perf_counter()
        come = promptly(batches)
        with OpenedAhead(self._open) as opened:
            channel, taken = self._take_in(come if self.lift is None else read_ahead(come), opened)
            yield from self._checked(channel, taken, opened, started)

    def _checked(self, channel: int, taken: Intake, opened: OpenedAhead, started: float) -> Iterator[pa.RecordBatch]:
        """Process, and say of a failure what failed where."""
        try:
            yield from self._process(channel, taken, opened, started)
        except KeyFailedError as error:
            raise self._failed(channel, f"at key {error.key!r}: {error}", key=error.key) from error
        except ColdChannelError:
            # Spark would try again what raises, several times, each in a new worker. That a channel has left no
            # manifest is noticed as well, once the results of the others have been written.
            if not self.gives_up_quietly:
                raise
        except EvenkeelError:
            raise
        except Exception as error:
            raise self._failed(channel, f"{type(error).__name__}: {error}") from error

    def _failed(self, channel: int, what: str, **fields: Any) -> StageFailedError:
        return StageFailedError(
            f"Operator {self.operator.name!r} of stage {self.stage!r} failed on channel {channel} in batch "
            f"{self.batch}, {what} Nothing of this batch is committed.",
            operator=self.operator.name,
            channel=channel,
            batch=self.batch,
            **fields,
        )

    def _take_in(self, batches: Iterable[pa.RecordBatch], opened: OpenedAhead) -> tuple[int, Intake]:
        """Take all that comes; home rows, which come first, say whose state is to be opened."""
        homes: list[int] = []
        taken = Intake(self.row_schema if self.lift is None else self.lift.rows, self.lift, self.ordered)
        for batch in batches:
            homes += taken.take(batch)
            if homes:
                opened.begin(self._channel_at(homes[0]))
        if len(homes) != self.votes or len(set(homes)) != 1:
            raise MisplacedTaskError(
                f"A task of stage {self.stage!r} found the home rows {sorted(homes)} instead of one home. This "
                "version or these settings of Spark do not keep a union partition-aware; nothing is committed.",
                homes=homes,
            )
        return self._channel_at(homes[0]), taken

    def _channel_at(self, mark: int) -> int:
        return self.seats[self.marks.index(mark)]

    def _process(self, channel: int, taken: Intake, opened: OpenedAhead, started: float) -> Iterator[pa.RecordBatch]:
        rows = taken.rows()
        if self.stays is not None:
            mine = self.stays.get(host_name(), frozenset())
            forget_others(self._host_directory, self._store(channel).copy_stage, mine)
        attempt = f"{self.attempts}-{uuid.uuid4().hex}"
        active, standby = self._by_role(rows, channel)
        schema = self.operator.state_schema(self.row_schema)
        codec = RowCodec(pa.schema([*active.keys.schema, *schema]))
        store = self._store(channel)
        view = opened.view
        delta = Delta()
        delta.drop(self.drops.get(channel, Selection()))
        import_started = time.perf_counter()
        near = self.fetches.get(channel, {}).items()  # in others' working copies on this host, which stay as they are
        sources = [(opened.other(source), what) for source, what in near if source in self.versions]
        if self.merges_arrivals:
            arrived = [*taken.states, *(rows for source, what in sources for rows in source.export(what))]
            keys = len(self.key_names)
            moved_bytes = merge_arrivals(self.operator, keys, codec, arrived, view, delta)  # type: ignore[arg-type]
        else:
            moved_bytes = delta.import_(taken.states) + sum(delta.adopt(*source) for source in sources)
        import_ms = 1000 * (time.perf_counter() - import_started)
        if self._clock is not None:
            delta.woken_until = self._clock
            active, standby = self._with_due_keys(active, standby, channel, view, delta, codec)
        work_started = time.perf_counter()
        update, values = self._update(active, view, delta, codec)
        work_ms = taken.lifting_ms + 1000 * (time.perf_counter() - work_started)
        if standby is not None:
            self._update(standby, view, delta, codec)
        written = store.write_delta(view, delta, batch=self.batch, attempt=attempt)
        outputs = self._outputs(active, update)
        counts = active.counts
        if self.lift is not None:
            tuples = active.rows[TUPLES].to_numpy()
            counts = np.bincount(active.key_of, weights=tuples, minlength=len(active)).astype(np.int64)
        known_times = active.times[active.times != NEVER] if active.times is not None else np.empty(0, np.int64)
        report = {
            "channel": channel,
            "host": host_name(),
            "rows": int(counts.sum()),
            "tuples": sum_of(active.rows, TUPLES, missing=active.rows.num_rows),
            "keys": len(active),
            "backup_rows": 0 if standby is None else standby.rows.num_rows,
            "late": update.late + sum_of(active.rows, LATE, missing=0),
            "results": outputs.num_rows,
            "newest": int(known_times.max()) if len(known_times) else None,
            "row_bytes": max(taken.row_bytes, state_bytes(written.totals)),
            "imported_bytes": moved_bytes,
            "import_ms": import_ms,
            "opened": view.opening.how,
            "opened_ms": view.opening.took_ms,
            "work_ms": work_ms,
            "busy_ms": max(0.0, 1000 * (time.perf_counter() - started) - import_ms - opened.waited_ms),
            "loads": loads_of(active, counts, values, written.totals, self.table, channel),
            "levels": levels_asked(active, self.levels_where, self.table),
        }
        ref = store.write_manifest(view, written, batch=self.batch, attempt=attempt, report=report, later=self.follows)
        opened.close()  # Who reads the results may take a while.
        if self.catches_up or store.asked:
            catch_up_later(store, ref)
        if not self.reports:
            yield from outputs.to_batches()
            return
        told = pa.field(REPORT, pa.string())
        yield from outputs.append_column(told, pa.nulls(outputs.num_rows, told.type)).to_batches()
        last = [*(pa.nulls(1, kind) for kind in outputs.schema.types), pa.array([json.dumps(ref.to_json())])]
        yield pa.RecordBatch.from_arrays(last, schema=outputs.schema.append(told))

    def _by_role(self, rows: pa.Table, channel: int) -> tuple[Groups, Groups | None]:
        """Group the tuples of keys that are active here, and those of keys of which this is a backup, if any can be."""
        columns = [rows[name] for name in self.key_names]
        if self.refuses_null_keys and any(column.null_count for column in columns):
            raise ValueError("a row has a null in its key, and null_keys is 'error'.")
        (hashes, hashes2), times = both_hashes(*columns), event_times(rows, self.event_time)
        how: Any = {"now": self.now, "slots": self.table.slots}

        def groups(mine: NDArray[np.bool_] | None = None) -> Groups:
            if mine is None:
                return Groups.of(rows, self.key_names, hashes, hashes2, times=times, **how)
            own = None if times is None else times[mine]
            chosen = rows.filter(pa.array(mine))
            return Groups.of(chosen, self.key_names, hashes[mine], hashes2[mine], times=own, **how)

        if not self.table.has_backups:
            return groups(), None
        active = self.table.home(hashes) == channel
        return groups(active), groups(~active)

    def _update(
        self, groups: Groups, view: StateView, delta: Delta, codec: RowCodec
    ) -> tuple[Update, pa.LargeBinaryArray]:
        """Bring the keys of a batch up to date."""
        slots = groups.hashes % self.table.slots
        before = view.get(slots, groups.hashes, groups.hashes2, delta)
        known = before.is_valid().to_numpy(zero_copy_only=False)
        decoded = codec.decode(before if self._clock is None else without_wakes(before))
        names = self.operator.state_schema(self.row_schema).names
        update = self.operator.update(groups, decoded.select(names), known)
        if update.states.num_rows != len(groups):
            raise ValueError(f"it gave {update.states.num_rows} states for {len(groups)} keys.")
        values = self._encode(groups, update, codec)
        changes = known | values.is_valid().to_numpy(zero_copy_only=False)
        delta.put(
            slots[changes],
            groups.hashes[changes],
            groups.hashes2[changes],
            values.filter(pa.array(changes)),
            before.filter(pa.array(changes)),
        )
        return update, values

    @property
    def _clock(self) -> int | None:
        """What the operator's clock says; None if it has none."""
        clocks = {"event_time": self.now.watermark, "batch": self.now.batch, "time": self.now.time}
        return None if self.operator.wakes_by is None else clocks[self.operator.wakes_by]

    def _with_due_keys(
        self, active: Groups, standby: Groups | None, channel: int, view: StateView, delta: Delta, codec: RowCodec
    ) -> tuple[Groups, Groups | None]:
        """Add the keys that want to be called and have no tuples, each where its like are."""
        assert self._clock is not None
        _, hashes, hashes2, values = view.due(self._clock, delta)
        here = np.ones(len(hashes), bool) if standby is None else self.table.home(hashes) == channel

        def add(groups: Groups, mine: NDArray[np.bool_]) -> Groups:
            touched = pc.is_in(as_values(hashes, hashes2), value_set=as_values(groups.hashes, groups.hashes2))
            alone = mine & ~touched.to_numpy(zero_copy_only=False)
            keys = codec.decode(without_wakes(values.filter(pa.array(alone)))).select(list(self.key_names))
            return groups.and_keys(keys.cast(groups.keys.schema), hashes[alone], hashes2[alone])

        return add(active, here), None if standby is None else add(standby, ~here)

    def _encode(self, groups: Groups, update: Update, codec: RowCodec) -> pa.LargeBinaryArray:
        """Encode keys and states; null for those that are not kept."""
        table = pa.table([*groups.keys.columns, *update.states.columns], schema=codec.schema)
        values = codec.encode(table)
        if self._clock is not None:
            values = with_wakes(values, np.full(len(groups), NEVER) if update.wake is None else update.wake)
        if update.keep is not None:
            values = pc.if_else(pa.array(update.keep), values, pa.scalar(None, pa.large_binary()))
        return values

    def _outputs(self, groups: Groups, update: Update) -> pa.Table:
        keys = groups.keys if update.key_of_outputs is None else groups.keys.take(pa.array(update.key_of_outputs))
        schema = pa.schema([*keys.schema, *self.operator.output_schema(self.row_schema)])
        return pa.table([*keys.columns, *update.outputs.columns], schema=schema)

    # -- on the host ------------------------------------------------------------------------------------------------

    def _open(self, channel: int) -> StateView:
        store, ref = self._store(channel), self.versions.get(channel)
        with OPENING:
            if ref is None or channel not in self.stops_if_cold:
                return store.open(ref, after=self.batch - 1)
            view = store.open_if_near(ref)
        if view is None:
            raise ColdChannelError(
                f"{COLD} The state of channel {channel} of stage {self.stage!r} is not on {host_name()}; copies of it "
                "are elsewhere.",
                channel=channel,
            )
        return view

    def _store(self, channel: int) -> StateStore:
        return StateStore(self.checkpoint, self.stage, channel, self._host_directory)

    @property
    def _host_directory(self) -> Path:
        return Path(self.directory) / host_name()
