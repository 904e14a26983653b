"""Plans are checked by someone who knows no planner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidPlanError
from evenkeel.metrics import imbalance
from evenkeel.routing import Action
from evenkeel.routing.laws import check
from evenkeel.routing.ragged import union

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan
    from evenkeel.planning.snapshot import LoadSnapshot
    from evenkeel.routing import RoutingTable

__all__ = ["validate"]


def validate(plan: Plan, snapshot: LoadSnapshot, table: RoutingTable) -> None:
    """Raise :class:`InvalidPlanError` unless carrying out ``plan`` is safe and does what the plan says.

    Checked, whoever made the plan: the new table keeps a table's laws and has the old one's slots; a change has a new
    epoch; no key becomes split; the moves, replayed on where each slot's and each listed key's state is, leave it just
    where the new table looks for it; nothing is sent from where there is nothing, to a channel that does not exist or
    to itself; switches of roles go only to backups; and the predicted balance is what the metrics measure.
    O(slots + listed keys).
    """
    new = plan.table
    check(new)
    if new.slots != table.slots:
        raise _error(plan, f"it changes the number of slots from {table.slots} to {new.slots}")
    if new is not table and new.epoch <= table.epoch:
        raise _error(plan, f"its table has epoch {new.epoch}, not one after {table.epoch}")
    if len(np.setdiff1d(new.split_hashes, table.split_hashes)):
        raise _error(plan, "it splits a key; planners move keys, and only the user's operator may allow a split")
    _replay(plan, table)
    measured = imbalance(snapshot.per_channel(new))
    if not np.isclose(measured, plan.after.imbalance, rtol=1e-9, atol=1e-9):
        raise _error(plan, f"it predicts an imbalance of {plan.after.imbalance}, but the metrics measure {measured}")


def _replay(plan: Plan, table: RoutingTable) -> None:
    """Follow every slot's and every listed key's state through the moves, independently of how they were made."""
    new, moves = plan.table, plan.moves
    keys = union(table.pin_hashes, table.split_hashes, new.pin_hashes, new.split_hashes)
    if len(moves) and (moves.targets.min() < 0 or moves.targets.max() >= new.channels):
        raise _error(plan, "a move goes to a channel that does not exist")
    if (moves.sources == moves.targets).any():
        raise _error(plan, "a move goes from a channel to itself")
    slot_rows, key_rows = ~moves.is_key, moves.is_key
    if not np.isin(moves.ids[key_rows], keys).all():
        raise _error(plan, "a move names a key that neither table lists")
    if ((moves.ids[slot_rows] < 0) | (moves.ids[slot_rows] >= table.slots)).any():
        raise _error(plan, "a move names a slot that does not exist")
    # One number per (item, channel): slots first, then keys.
    items = np.where(moves.is_key, table.slots + np.searchsorted(keys, moves.ids), moves.ids)
    held = set(_pairs(table, keys))
    wanted = set(_pairs(new, keys))
    backups = set(_backup_pairs(table, keys))
    sends = moves.actions != Action.COPY
    sent = list(zip(items[sends].tolist(), moves.sources[sends].tolist(), strict=True))
    arrived = list(zip(items[sends].tolist(), moves.targets[sends].tolist(), strict=True))
    if len(set(sent)) != len(sent) or not held.issuperset(sent):
        raise _error(plan, "a move takes state from where there is none")
    remaining = held.difference(sent).union(arrived)
    if not remaining <= wanted:
        raise _error(plan, f"{len(remaining - wanted)} pieces of state would not be where the new table looks for them")
    switches = moves.actions == Action.SWITCH
    switched = set(zip(items[switches].tolist(), moves.targets[switches].tolist(), strict=True))
    if not switched <= backups:
        raise _error(plan, "a role is switched to a channel that holds no backup")


def _pairs(table: RoutingTable, keys: np.ndarray) -> list[tuple[int, int]]:
    """(item, channel) for all state that is held under ``table``."""
    places = table.active_channels(keys)
    items = np.concatenate([np.arange(table.slots), table.slots + places.rows])
    return list(zip(items.tolist(), np.concatenate([table.slot_channels, places.channels]).tolist(), strict=True))


def _backup_pairs(table: RoutingTable, keys: np.ndarray) -> list[tuple[int, int]]:
    slots, listed = table.backups_of_slots, table.backups(keys)
    items = np.concatenate([slots.rows, table.slots + listed.rows])
    return list(zip(items.tolist(), np.concatenate([slots.channels, listed.channels]).tolist(), strict=True))


def _error(plan: Plan, why: str) -> InvalidPlanError:
    return InvalidPlanError(f"The plan of {plan.planner} was refused: {why}.", planner=plan.planner)
