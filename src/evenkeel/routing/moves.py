"""What moves when one routing table replaces another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.routing.ragged import Ragged, contains, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.routing.table import RoutingTable

__all__ = ["Action", "Moves", "moves_between"]


class Action(IntEnum):
    """What happens to a piece of state."""

    MOVE = 0
    """The state goes to another channel."""
    SWITCH = 1
    """A backup becomes the active copy where it is; nothing is sent."""
    COPY = 2
    """A new backup is made from the active copy."""


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """The difference between two routing tables, one row per slot or key and channel.

    Parameters
    ----------
    is_key
        Whether the row is about one listed key, or about the unlisted rest of a slot.
    ids
        The key's hash, or the slot's number.
    sources, targets
        From which channel to which.
    actions
        What happens; see :class:`Action`.
    """

    is_key: NDArray[np.bool_]
    ids: NDArray[np.int64]
    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    actions: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sends_state(self) -> NDArray[np.bool_]:
        """Which rows put bytes on the wire: all but the switches of roles."""
        return self.actions != Action.SWITCH

    def to_arrow(self) -> pa.Table:
        """Give one row per move: kind, id, source, target, action in words."""
        words = pa.array([action.name.lower() for action in Action])
        return pa.table(
            {
                "kind": pa.array(np.where(self.is_key, "key", "slot"), pa.string()),
                "id": self.ids,
                "source": self.sources,
                "target": self.targets,
                "action": words.take(pa.array(self.actions)),
            }
        )


def moves_between(old: RoutingTable, new: RoutingTable) -> Moves:
    """Give what must move so that ``new`` may replace ``old``; slots first, then keys, each in ascending order.

    A slot's row is about those of its keys that neither table lists; every key listed in either table has rows of its
    own. So each key's state is in exactly one place before and after, and rows never overlap. O(slots + listed keys).
    """
    if old.slots != new.slots:
        raise InvalidArgumentError(
            f"Tables can be compared only with equal numbers of slots; got {old.slots} and {new.slots}."
        )
    keys = union(old.pin_hashes, old.split_hashes, new.pin_hashes, new.split_hashes)
    slots = _Holders.of_slots(old), _Holders.of_slots(new)
    listed = _Holders.of_keys(old, keys), _Holders.of_keys(new, keys)
    parts = [(*_changes(*slots), False, np.arange(old.slots)), (*_changes(*listed), True, keys)]
    rows = [
        (np.full(len(items), is_key), ids[items], sources, targets, actions)
        for items, sources, targets, actions, is_key, ids in parts
    ]
    return Moves(*(np.concatenate(columns) for columns in zip(*rows, strict=True)))


@dataclass(frozen=True, slots=True)
class _Holders:
    """Who holds each item: the channels with its active state, its home among them first, and those with backups."""

    active: Ragged
    backups: Ragged

    @classmethod
    def of_slots(cls, table: RoutingTable) -> _Holders:

        return cls(Ragged(np.arange(table.slots + 1), table.slot_channels), table.backups_of_slots)

    @classmethod
    def of_keys(cls, table: RoutingTable, keys: NDArray[np.int64]) -> _Holders:
        return cls(table.active_channels(keys), table.backups(keys))

    @property
    def homes(self) -> NDArray[np.int32]:
        return self.active.channels[self.active.offsets[:-1]]


def _pairs(lists: Ragged) -> NDArray[np.int64]:
    """(item, channel) as one number, ascending, for set operations."""
    return np.sort((lists.rows << 32) | lists.channels, kind="stable")


def _changes(
    old: _Holders, new: _Holders
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]:
    """Items, sources, targets and actions, ordered by item."""
    gone = ~contains(_pairs(new.active), (old.active.rows << 32) | old.active.channels)
    items = old.active.rows[gone]
    sources = old.active.channels[gone]
    targets = new.homes[items]
    was_backup = contains(_pairs(old.backups), (items << 32) | targets)
    actions = np.where(was_backup, np.int8(Action.SWITCH), np.int8(Action.MOVE))

    wanted = (new.backups.rows << 32) | new.backups.channels
    fresh = ~(contains(_pairs(old.active), wanted) | contains(_pairs(old.backups), wanted))
    copied = new.backups.rows[fresh]

    items = np.concatenate([items, copied])
    order = np.argsort(items, kind="stable")
    return (
        items[order],
        np.concatenate([sources, old.homes[copied]])[order],
        np.concatenate([targets, new.backups.channels[fresh]])[order],
        np.concatenate([actions, np.full(len(copied), Action.COPY, np.int8)])[order],
    )
