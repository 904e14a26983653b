"""Plans are checked by someone who knows no planner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidPlanError
from evenkeel.metrics import imbalance
from evenkeel.routing import Action
from evenkeel.routing.laws import check
from evenkeel.routing.ragged import contains, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    if not contains(table.split_hashes, new.split_hashes).all():
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
    if not contains(keys, moves.ids[key_rows]).all():
        raise _error(plan, "a move names a key that neither table lists")
    if ((moves.ids[slot_rows] < 0) | (moves.ids[slot_rows] >= table.slots)).any():
        raise _error(plan, "a move names a slot that does not exist")
    # One number per (item, channel): slots first, then keys.
    items = np.where(moves.is_key, table.slots + np.searchsorted(keys, moves.ids), moves.ids)
    held, wanted = _held(table, keys), _held(new, keys)
    state = moves.actions != Action.COPY
    sent = np.sort(_pair(items[state], moves.sources[state]))
    arrived = _pair(items[state], moves.targets[state])
    if (np.diff(sent) == 0).any() or not contains(held, sent).all():
        raise _error(plan, "a move takes state from where there is none")
    remaining = union(held[~contains(sent, held)], arrived)
    stranded = int((~contains(wanted, remaining)).sum())
    if stranded:
        raise _error(plan, f"{stranded} pieces of state would not be where the new table looks for them")
    switched = moves.actions == Action.SWITCH
    if not contains(_backed_up(table, keys), _pair(items[switched], moves.targets[switched])).all():
        raise _error(plan, "a role is switched to a channel that holds no backup")


def _pair(items: NDArray[np.int64], channels: NDArray[np.int32]) -> NDArray[np.int64]:
    return (items << 32) | channels


def _held(table: RoutingTable, keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """(item, channel) of all state that is held under ``table``, ascending."""
    places = table.active_channels(keys)
    slots = _pair(np.arange(table.slots), table.slot_channels)
    return np.sort(np.concatenate([slots, _pair(table.slots + places.rows, places.channels)]), kind="stable")


def _backed_up(table: RoutingTable, keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """(item, channel) of all backups under ``table``, ascending."""
    slots, listed = table.backups_of_slots, table.backups(keys)
    pairs = [_pair(slots.rows, slots.channels), _pair(table.slots + listed.rows, listed.channels)]
    return np.sort(np.concatenate(pairs), kind="stable")


def _error(plan: Plan, why: str) -> InvalidPlanError:
    return InvalidPlanError(f"The plan of {plan.planner} was refused: {why}.", planner=plan.planner)
