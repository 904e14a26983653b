"""A keyed stage with all that changes from batch to batch: its table, versions, watermark, homes and controller."""

from __future__ import annotations

import statistics
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.control import BatchReport, ChannelReport, Choice, Decision, Saved, Schedule, Tally
from evenkeel.control.loads import to_snapshot
from evenkeel.operators import NO_WATERMARK, Moment
from evenkeel.planning.items import resized_slots
from evenkeel.routing import Action, RoutingTable
from evenkeel.routing.replicas import recovered, with_replicas
from evenkeel.spark.seats import most_loaded, seat_channels
from evenkeel.spark.stage import Placement
from evenkeel.spark.times import next_watermark
from evenkeel.state import StoredFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from evenkeel.control import Controller, ServiceLevels
    from evenkeel.spark.run import StageRun
    from evenkeel.spark.stage import KeyedStage
    from evenkeel.state import Commit, ManifestRef

__all__ = ["BalancedStage"]

_UNEVEN_HOSTS, _WORTH_A_MOVE = 1.25, 0.9
_BATCHES_BETWEEN_SEATINGS = 10  # a channel that changes hosts is opened cold
_END = 1 << 62  # later than any time, with room to count on from
_MEMORY = 0.7  # of how a channel's load was before, when a new batch comes


@dataclass(slots=True)
class BalancedStage:
    """A keyed stage, kept even.

    Parameters
    ----------
    stage, controller
        What runs, and who decides on tables.
    table
        The table of the next batch.
    delay_us
        How late tuples may come, in event time.
    step
        Which step of the flow it is part of.
    follows
        The stage whose watermark counts, for one that merges the partial states of another.
    levels
        How many backups keys have, if they have any.
    shape
        What of it must stay as it is when the query is started again; empty for a helper stage.
    """

    stage: KeyedStage
    controller: Controller
    table: RoutingTable
    delay_us: int = 0
    step: int = 0
    follows: BalancedStage | None = None
    levels: ServiceLevels | None = None
    shape: str = ""
    before: Placement = field(init=False)
    versions: dict[int, ManifestRef] = field(default_factory=dict)
    watermark: int = NO_WATERMARK
    suspected: bool = False
    """Whether a channel was found cold where copies of it are elsewhere."""
    _asked_channels: int = field(init=False)
    _loads: list[float] = field(init=False)
    _seated: int = -_BATCHES_BETWEEN_SEATINGS
    _quiet_ms: deque[float] = field(default_factory=lambda: deque(maxlen=7))
    _stored: dict[int, StoredFile] = field(default_factory=dict)
    _controller: StoredFile | None = None
    _noted: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.before = self.stage.placement(self.table)
        self._asked_channels = self.table.channels
        self._loads = [1.0] * self.table.channels

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.stage.name

    @property
    def needs_closing(self) -> bool:
        """Whether keys may still want to be called when the input has ended."""
        return self.stage.operator.wakes_by is not None

    # -- one batch --------------------------------------------------------------------------------------------------

    def run(
        self, rows: DataFrame, batch: int, started: float, *, keep: bool, overwritten: bool, closing: bool = False
    ) -> StageRun:
        """Run one batch; nothing counts before :meth:`advance`. A closing one is later than all times.

        ``keep`` and ``overwritten`` are as for :meth:`KeyedStage.run <evenkeel.spark.stage.KeyedStage.run>`.
        """
        session = rows.sparkSession
        uprooted = self._see_to_homes(batch, started, session)
        if self.levels is not None and not self.versions:
            self.table = with_replicas(self.table, self.levels.default, {}, self.stage.hosts)
            self.before = self.stage.placement(self.table)
        if self.table.has_backups and (uprooted or self.suspected):
            self._recover(batch, started, session)
        self.suspected = False
        watermark = self.watermark if self.follows is None else self.follows.watermark
        now = Moment(batch, watermark, int(1e6 * started))
        if closing:
            now = Moment(_END, _END, _END)
        how: Any = {"keep": keep, "overwritten": overwritten, "stored": lambda: self._stored_table(self.table)}
        return self.stage.run(rows, batch, now, self.table, self.before, self.versions, **how)

    def decide(self, run: StageRun, batch: int, now: float, took_ms: float) -> tuple[Decision | None, RoutingTable]:
        """Tell the controller what the batch brought, and ask for the table of the next one."""
        for report in run.reports:
            channel = report["channel"]
            self._loads[channel] = _MEMORY * self._loads[channel] + (1 - _MEMORY) * report["rows"]
        moved_bytes = sum(report["imported_bytes"] for report in run.reports)
        moving_ms = 0.0
        if moved_bytes == 0:
            self._quiet_ms.append(took_ms)
        elif self._quiet_ms:
            moving_ms = max(0.0, took_ms - statistics.median(self._quiet_ms))
        self.controller.observe(_batch_report(run.reports, batch, now, moved_bytes, moving_ms))
        verdict: tuple[Decision | None, RoutingTable | None] = self.controller.decide(self.table, now)
        decision, table = verdict[0], verdict[1] or self.table
        under_way = decision is not None and decision.step < decision.steps
        if self.levels is not None and not under_way:
            table = self._replicated(table, run.reports, batch, now)
        return decision, table

    def advance(self, run: StageRun, following: RoutingTable) -> None:
        """Go on to the next batch, now that this one is committed."""
        self.versions = {ref.channel: ref for ref in run.manifests}
        self.watermark = self._next_watermark(run)
        self.before, self.table = self.stage.placement(self.table), following
        self._stored = {epoch: file for epoch, file in self._stored.items() if epoch >= self.before.table.epoch}
        self.stage.leave_old_homes()
        self.stage.learn(run.reports)

    def _next_watermark(self, run: StageRun) -> int:
        newest = [report["newest"] for report in run.reports if report["newest"] is not None]
        return next_watermark(self.watermark, newest, self.delay_us)

    # -- replicas ---------------------------------------------------------------------------------------------------

    def _replicated(self, table: RoutingTable, reports: list[dict[str, Any]], batch: int, now: float) -> RoutingTable:
        """Give the table with the backups that the service levels ask for, as far as a batch's budget goes."""
        assert self.levels is not None
        for report in reports:
            self._noted |= dict(report["levels"])
        slots, keys = _tallies(reports)
        kinds = [self.stage.row_schema.field(name).type for name in self.stage.key_names]
        held = table.pin_hashes[table.backups_of_pins.lengths > self.levels.default]
        wanted = self.levels.levels_of(keys.ids, keys.counts, self._noted, kinds, set(held.tolist()))
        target = with_replicas(table, self.levels.default, wanted, self.stage.hosts, self.levels.max_pins)
        if target is table:
            return table
        snapshot = to_snapshot(slots, keys, table, len(keys.ids), 0)
        schedule = Schedule.of(table, target, snapshot, self.levels.bytes_per_batch)
        following = schedule.table(1)
        copies = int((table.diff(following).actions == Action.COPY).sum())
        left = schedule.state_bytes - int(schedule.step_bytes[0])
        reasons = ["Entries of slots and keys that are of no more account are taken out; nothing is copied."]
        if copies:
            reasons = [f"{copies} backups of slots and keys are made: {int(schedule.step_bytes[0]):,} bytes."]
        reasons += [f"{left:,} bytes are left for later batches."] if left else []
        hosts, needed = len(set(self.stage.hosts.values())), self.levels.highest + 1
        if hosts < needed:
            reasons.append(
                f"There are {hosts} hosts for {needed} copies of a key: some copies share a host, and are lost with it."
            )
        self._record(Choice.REPLICATE, reasons, batch, now, step_bytes=int(schedule.step_bytes[0]))
        return following

    def _recover(self, batch: int, now: float, session: SparkSession) -> None:
        """Switch on the copies of what cold channels held.

        A channel of which every key has a copy elsewhere begins anew with nothing. Others are restored from the
        checkpoint when their tasks open them, and drop what was switched on elsewhere.
        """
        lost = self.stage.cold_channels(self.versions)
        if not lost:
            return
        table = recovered(self.before.table, lost)
        switched = int((self.before.table.diff(table).actions == Action.SWITCH).sum())
        self.table = table.evolve(epoch=max(self.table.epoch, table.epoch) + 1)
        needed = frozenset(np.concatenate([table.slot_channels, table.pin_channels]).tolist())
        restored = sorted(lost & needed)
        self.versions = {channel: ref for channel, ref in self.versions.items() if channel not in lost - needed}
        reasons = [
            f"The state of the channels {_listed(lost)} is not on their hosts.",
            f"{switched} slots and keys are switched to their backups.",
            f"Restored from the checkpoint: {_listed(restored) or 'nothing'}.",
        ]
        self._record(Choice.RECOVER, reasons, batch, now)
        self._see_to_homes(batch, now, session)  # for the number of channels that there were

    def _record(self, choice: Choice, reasons: list[str], batch: int, now: float, **numbers: Any) -> None:
        channels = self.table.channels
        self.controller.record(Decision(batch, -1, now, choice, tuple(reasons), channels, channels, **numbers))

    # -- homes ------------------------------------------------------------------------------------------------------

    def _see_to_homes(self, batch: int, now: float, session: SparkSession) -> bool:
        """Make homes, or change them, where executors came or went, or hosts are loaded unevenly.

        Says whether channels may be cold: executors left, or channels changed hosts.
        """
        usual = sum(self._loads) / len(self._loads)
        self._loads = (self._loads + [usual] * self.table.channels)[: self.table.channels]
        hosts = dict(self.stage.hosts)
        changed = self.stage.settle(self._loads, session)
        reasons = []
        if changed is not None:
            came, left = (", ".join(sorted(names)) for names in changed)
            reasons += [f"Executors came: {came}."] if came else []
            reasons += [f"Executors left: {left}."] if left else []
        elif self._may_reseat(batch, hosts):
            excess = most_loaded(hosts, self._loads)
            seats = [hosts[channel] for channel in sorted(hosts)]
            better = dict(zip(seat_channels(seats, hosts, self._loads, evens=True), seats, strict=True))
            after = most_loaded(better, self._loads)
            if excess > _UNEVEN_HOSTS and after < _WORTH_A_MOVE * excess:
                self.stage.reseat(self._loads)
                reasons.append(f"A host had {excess:.2f} times its share of the load; now {after:.2f} times.")
        if not reasons:
            return False
        self._seated = batch
        moved = [(c, hosts[c], host) for c, host in sorted(self.stage.hosts.items()) if hosts.get(c, host) != host]
        reasons.append(
            " ".join(f"Channel {channel} goes from {old} to {new}." for channel, old, new in moved)
            or "All channels stay where they are."
        )
        self._record(Choice.REHOME, reasons, batch - 1, now)
        return bool(moved) or (changed is not None and bool(changed[1]))

    def _may_reseat(self, batch: int, hosts: dict[int, str]) -> bool:
        """Whether channels may change hosts for their load alone; not those with copies, where roles can be switched.

        Two that hold each other's copies might trade places, and both be cold.
        """
        settled = batch - self._seated >= _BATCHES_BETWEEN_SEATINGS and self.stage.hosts == hosts
        return settled and not self.table.has_backups

    # -- storing ----------------------------------------------------------------------------------------------------

    def facts(self, run: StageRun, decision: Decision | None, following: RoutingTable) -> dict[str, Any]:
        """Give what a commit must say for the query to go on from it.

        The controller is stored when it has decided something. After a crash it has lost at most the statistics of a
        window that was not over; tables and state are always those of the commit.
        """
        if self._controller is None or decision is None or decision.choice is not Choice.WAIT:
            self._controller = self._store("controller", self.controller.snapshot().to_arrow())
        placed = self.stage.placement(self.table)
        return {
            "files": {
                "table": self._stored_table(self.table).to_json(),
                "next": self._stored_table(following).to_json(),
                "controller": self._controller.to_json(),
            },
            "router": placed.router,
            "splits": placed.splits,
            "channels": self._asked_channels,
            "watermark": self._next_watermark(run),
            "noted": [[key, wanted] for key, wanted in self._noted.items()],
            "hosts": {str(channel): host for channel, host in self.stage.hosts.items()},
        }

    def restore(self, commit: Commit) -> None:
        """Go on from a commit; where another number of channels is asked for than then, with that number."""
        facts = commit.metadata["stages"].get(self.name)
        if facts is None:
            return  # The strategy was another one, which had no such stage.
        files = self.stage.checkpoint.files
        before, following = (_read_table(files, facts["files"][name]) for name in ("table", "next"))
        self.before = Placement(before, facts["router"], facts["splits"])
        self.versions = {ref.channel: ref for ref in commit.manifests if ref.stage == self.name}
        self.watermark = facts["watermark"]
        self._noted = dict(facts.get("noted", []))  # written since there are replicas
        self.stage.hosts = {int(channel): host for channel, host in facts["hosts"].items()}
        saved = pa.ipc.open_stream(files.read(StoredFile(*facts["files"]["controller"]))).read_all()
        self.controller.restore(Saved.from_arrow(saved))
        if self._asked_channels == facts["channels"]:
            self.table = following
        else:
            self.table = _resized(following, self._asked_channels)
        self._loads = [1.0] * self.table.channels

    def _stored_table(self, table: RoutingTable) -> StoredFile:
        """Write a table once, however many commits name it."""
        if table.epoch not in self._stored:
            self._stored[table.epoch] = self._store("table", table.to_arrow())
        return self._stored[table.epoch]

    def _store(self, kind: str, table: pa.Table) -> StoredFile:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return self.stage.checkpoint.files.write(f"tables/{self.name}-{kind}-{uuid.uuid4().hex}", sink.getvalue())


def _resized(table: RoutingTable, channels: int) -> RoutingTable:
    """Give the table for another number of channels, moving only what must; pins of vanished channels go."""
    kept = table.pin_channels < channels
    return table.evolve(
        slot_channels=resized_slots(table, channels),
        channels=channels,
        pin_hashes=table.pin_hashes[kept],
        pin_channels=table.pin_channels[kept],
    )


def _read_table(files: Any, stored: list[Any]) -> RoutingTable:
    return RoutingTable.from_arrow(pa.ipc.open_stream(files.read(StoredFile(*stored))).read_all())


def _listed(channels: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(channels)))


def _tallies(reports: list[dict[str, Any]]) -> tuple[Tally, Tally]:
    """What reports say of slots and of heavy keys."""
    parts: dict[str, list[Any]] = {name: [] for name in reports[0]["loads"]} if reports else {}
    for report in reports:
        for name, values in report["loads"].items():
            parts[name] += values
    if not reports:
        return Tally.empty(), Tally.empty()
    nothing = [0] * len(parts["held_slots"])
    slots = Tally(
        [*parts["slots"], *parts["held_slots"]],
        [*parts["slot_counts"], *nothing],
        [*parts["slot_counts"], *nothing],
        [*[0] * len(parts["slots"]), *parts["held_bytes"]],
    )
    return slots, Tally(parts["keys"], parts["key_counts"], parts["key_counts"], parts["key_bytes"])


def _batch_report(
    reports: list[dict[str, Any]], batch: int, now: float, moved_bytes: int, moving_ms: float
) -> BatchReport:
    channels = []
    for report in reports:
        slots, keys = _tallies([report])
        held = int(sum(report["loads"]["held_keys"]))
        channels.append(ChannelReport(report["channel"], report["busy_ms"], slots, keys, held))
    return BatchReport(batch, now, tuple(channels), moved_bytes=moved_bytes, moving_ms=moving_ms)
