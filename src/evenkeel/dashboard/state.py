"""What a reader has found, as plain JSON: the one thing that the page, the terminal and the metrics are made from."""

from __future__ import annotations

import dataclasses
import socket
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.dashboard.movements import Movement
from evenkeel.dashboard.text import plain
from evenkeel.routing.ragged import contains
from evenkeel.state.lease import is_alive

if TYPE_CHECKING:
    from evenkeel.control import Decision
    from evenkeel.dashboard.batches import HotKey, StageBatch
    from evenkeel.dashboard.history import StageHistory
    from evenkeel.dashboard.reader import CheckpointReader, Holder
    from evenkeel.routing import RoutingTable

__all__ = ["FORMAT", "state_of"]

FORMAT = 1
"""Version of the JSON; a field may be added without a new one."""

_SILENT_SECONDS = 60.0
_SHOWN_BATCHES, _SHOWN_MOVEMENTS, _SHOWN_DECISIONS = 300, 20, 50
_REASON = 400  # characters


def state_of(reader: CheckpointReader, now: float, *, mask_keys: bool = False, trouble: str = "") -> dict[str, Any]:
    """Give all that is to be seen of a query.

    Parameters
    ----------
    reader
        What was read.
    now
        The time in seconds, to tell a query that runs from one that has fallen silent.
    mask_keys
        Whether keys are shown by their hashes only.
    trouble
        Why the last look failed, if it did.
    """
    newest = max((stage.last.batch for stage in reader.stages.values() if stage.last), default=-1)
    # A strategy that was given up may have had stages that the present one has not.
    shown = [stage for stage in reader.stages.values() if stage.last and stage.last.batch == newest]
    return {
        "format": FORMAT,
        "checkpoint": {"location": plain(reader.location, 300), "id": plain(reader.id), "job": plain(reader.job)},
        "query": _query(reader.holder, now),
        "batch": reader.batch if reader.batch >= 0 else None,
        "masked": mask_keys,
        "trouble": plain(trouble, _REASON),
        "damaged": [plain(what, _REASON) for what in reader.damaged],
        "stages": [_stage(stage, mask_keys=mask_keys) for stage in shown],
    }


def _query(holder: Holder | None, now: float) -> dict[str, Any]:
    if holder is None:
        return {"status": "ended"}
    dead = holder.host == socket.gethostname() and not is_alive(holder.pid)
    silent = now - holder.heartbeat > _SILENT_SECONDS
    return {
        "status": "died" if dead else "silent" if silent else "running",
        "owner": plain(holder.owner),
        "host": plain(holder.host),
        "pid": holder.pid,
        "heartbeat": holder.heartbeat,
    }


def _stage(stage: StageHistory, *, mask_keys: bool) -> dict[str, Any]:
    assert stage.last is not None
    assert stage.loaded is not None
    loaded = stage.loaded
    movements = list(stage.movements)[-_SHOWN_MOVEMENTS:]
    planned = _planned(stage)
    table = stage.table
    return {
        "name": plain(stage.name),
        "router": None if stage.facts.get("router") is None else plain(stage.facts["router"], 200),
        "splits": bool(stage.facts.get("splits", False)),
        "watermark": _as_time(stage.facts.get("watermark")),
        "load_batch": loaded.batch,
        "skewness": loaded.skewness,
        "table": None if table is None else _table(table, stage.following),
        "channels": _channels(stage, loaded),
        "history": [dataclasses.asdict(summary) for summary in list(stage.summaries)[-_SHOWN_BATCHES:]],
        "hot_keys": [_hot_key(key, table, mask_keys=mask_keys) for key in loaded.hot_keys],
        "heavy_slots": [{"slot": slot, "count": count} for slot, count in loaded.heavy_slots],
        "movements": [_movement(movement) for movement in movements],
        "planned": None if planned is None else _movement(planned),
        "decisions": [_decision(decision) for decision in stage.decisions[-_SHOWN_DECISIONS:]],
        "totals": _totals(stage),
    }


def _planned(stage: StageHistory) -> Movement | None:
    """What is to move before the next batch."""
    before, after = stage.table, stage.following
    if before is None or after is None or before.epoch == after.epoch:
        return None
    assert stage.last is not None
    return Movement.between(before, after, stage.last.batch + 1)


def _as_time(microseconds: Any) -> str | None:
    """A watermark as ISO 8601, or None while there is none; operators may also be told a time beyond all calendars."""
    try:
        return datetime.fromtimestamp(microseconds / 1e6, timezone.utc).isoformat(timespec="milliseconds")
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _table(table: RoutingTable, following: RoutingTable | None) -> dict[str, Any]:
    slot_backups, pin_backups = np.diff(table.backups_of_slots.offsets), np.diff(table.backups_of_pins.offsets)
    return {
        "epoch": table.epoch,
        "next_epoch": table.epoch if following is None else following.epoch,
        "channels": table.channels,
        "next_channels": table.channels if following is None else following.channels,
        "slots": table.slots,
        "pins": len(table.pin_hashes),
        "split_keys": len(table.split_hashes),
        "slots_with_backups": int((slot_backups > 0).sum()),
        "pins_with_backups": int((pin_backups > 0).sum()),
    }


def _channels(stage: StageHistory, loaded: StageBatch) -> list[dict[str, Any]]:
    """Load of the last batch that had any; state, host and entries of the table as they are now."""
    last, table = stage.last, stage.table
    assert last is not None
    number = int(last.channels.max()) + 1
    empty = np.zeros(number, int)
    slots = pins = backups = empty
    if table is not None:
        number = max(number, table.channels)
        slots = np.bincount(table.slot_channels, minlength=number)
        pins = np.bincount(table.pin_channels, minlength=number)
        held = np.concatenate([table.backups_of_slots.channels, table.backups_of_pins.channels])
        backups = np.bincount(held, minlength=number)
    load = {int(channel): place for place, channel in enumerate(loaded.channels)}
    rows = []
    for place, channel in enumerate(last.channels.tolist()):
        seen = load.get(channel)
        rows.append(
            {
                "channel": channel,
                "host": plain(last.hosts[place]),
                "rows": 0 if seen is None else int(loaded.rows[seen]),
                "tuples": 0 if seen is None else int(loaded.tuples[seen]),
                "busy_ms": 0.0 if seen is None else float(loaded.busy_ms[seen]),
                "state_bytes": int(last.state_bytes[place]),
                "keys": int(last.keys_held[place]),
                "slots": int(slots[channel]),
                "pins": int(pins[channel]),
                "backups": int(backups[channel]),
                "imported_bytes": int(last.imported_bytes[place]),
                "opened": plain(last.opened[place]),
            }
        )
    return rows


def _hot_key(key: HotKey, table: RoutingTable | None, *, mask_keys: bool) -> dict[str, Any]:
    placed = "slot"
    if table is not None:
        one = np.array([key.key_hash], np.int64)
        if contains(table.pin_hashes, one)[0]:
            placed = "pin"
        elif contains(table.split_hashes, one)[0]:
            placed = "split"
    return {
        # JavaScript's numbers do not hold 64 bits.
        "hash": f"{key.key_hash & (1 << 64) - 1:016x}",
        "name": None if mask_keys or key.name is None else plain(key.name) or '""',
        "count": key.count,
        "share": key.share,
        "state_bytes": key.state_bytes,
        "channels": list(key.channels[:20]),
        "channel_count": len(key.channels),
        "placed": placed,
    }


def _movement(movement: Movement) -> dict[str, Any]:
    return {**dataclasses.asdict(movement), "flow_items": sum(flow.items for flow in movement.flows)}


def _decision(decision: Decision) -> dict[str, Any]:
    told = decision.to_json()
    told["reasons"] = [plain(reason, _REASON) for reason in told["reasons"][:20]]
    told["planner"] = None if told["planner"] is None else plain(told["planner"])
    told["answers"] = [
        {**answer, "gate": plain(answer["gate"]), "reason": plain(answer["reason"], _REASON)}
        for answer in told["answers"]
    ]
    return told


def _totals(stage: StageHistory) -> dict[str, Any]:
    plain_sums = {name: number for name, number in stage.totals.items() if isinstance(name, str)}
    grouped: dict[str, dict[str, int]] = {"choice": {}, "items": {}}
    for name, number in stage.totals.items():
        if not isinstance(name, str):
            grouped[name[0]][name[1]] = number
    return {**plain_sums, "decisions": grouped["choice"], "items": grouped["items"]}
