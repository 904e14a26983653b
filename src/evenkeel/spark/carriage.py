"""What channels send, fetch and drop when one routing table replaces another, backup copies included."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.routing import Action
from evenkeel.routing.ragged import contains, union
from evenkeel.state import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from evenkeel.routing import Ragged, RoutingTable

__all__ = ["Carriage", "carriage", "targets_of"]


@dataclass(frozen=True, slots=True)
class Carriage:
    """What each channel sends to others, fetches from each other one, and drops.

    A channel that keeps a copy sends without dropping.
    """

    sends: dict[int, Selection] = field(default_factory=dict)
    fetches: dict[int, dict[int, Selection]] = field(default_factory=dict)
    drops: dict[int, Selection] = field(default_factory=dict)


def carriage(
    before: RoutingTable,
    after: RoutingTable,
    hosts_before: Mapping[int, str] | None = None,
    hosts_after: Mapping[int, str] | None = None,
) -> Carriage:
    """Give what happens to state when ``after`` replaces ``before``. O(slots + listed keys), if it is another table.

    Where the hosts of channels are given, what stays on a host is not sent: who gets it reads it from the working copy
    of who had it. Only if one channel has each key; copies are sent to all who are to have them at once.
    """
    if before is after:
        return Carriage()
    moves = before.diff(after)
    listed = union(before.pin_hashes, before.split_hashes, after.pin_hashes, after.split_hashes)
    slots_of_listed = listed % before.slots

    def select(channels: NDArray[np.int32], ids: NDArray[np.int64], is_key: NDArray[np.bool_]) -> dict[int, Selection]:
        found = {}
        for channel in np.unique(channels).tolist():
            mine = channels == channel
            slots, keys = ids[mine & ~is_key], ids[mine & is_key]
            spared = np.isin(slots_of_listed, slots)
            spare = (slots_of_listed[spared], listed[spared])
            found[channel] = Selection.of(slots, spare, (keys % before.slots, keys))
        return found

    def leaving(chosen: NDArray[np.bool_]) -> dict[int, Selection]:
        return select(moves.sources[chosen], moves.ids[chosen], moves.is_key[chosen])

    sent, near = moves.actions != Action.SWITCH, np.zeros(len(moves), np.bool_)
    if hosts_before and hosts_after and _in_one_place(before, after):
        pairs = zip(moves.sources.tolist(), moves.targets.tolist(), strict=True)
        near = np.array([hosts_before[source] == hosts_after[target] for source, target in pairs], np.bool_)
    fetches = {to: leaving(near & (moves.targets == to)) for to in np.unique(moves.targets[near]).tolist()}
    channels, ids, is_key = [], [], []
    for keyed, items in ((False, np.arange(before.slots)), (True, listed)):
        old, new = (_holders(table, items, keyed) for table in (before, after))
        gone = ~contains(np.sort(new), old)
        channels.append((old[gone] & 0xFFFFFFFF).astype(np.int32))
        ids.append(items[old[gone] >> 32])
        is_key.append(np.full(int(gone.sum()), keyed))
    return Carriage(leaving(sent & ~near), fetches, select(*(np.concatenate(part) for part in (channels, ids, is_key))))


def _in_one_place(before: RoutingTable, after: RoutingTable) -> bool:
    """Whether each key has one channel, under either table."""
    return not any(table.has_backups or len(table.split_hashes) for table in (before, after))


def _holders(table: RoutingTable, items: NDArray[np.int64], keyed: bool) -> NDArray[np.int64]:
    """(item, channel) as one number, for every channel that holds a copy of an item."""
    if keyed:
        return np.concatenate([_pairs(table.active_channels(items)), _pairs(table.backups(items))])
    return np.concatenate([(items << 32) | table.slot_channels, _pairs(table.backups_of_slots)])


def _pairs(lists: Ragged) -> NDArray[np.int64]:
    return (lists.rows << 32) | lists.channels


def targets_of(
    before: RoutingTable, after: RoutingTable, channel: int, hashes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Give where a channel sends the states of keys: row and channel of each copy that goes out.

    To the key's new home, if this channel is no home of it any more and the new home held no backup; and from its old
    home to every channel that is to hold a backup and held no copy.
    """
    homes = after.home(hashes)
    if _in_one_place(before, after):
        leaving = np.flatnonzero(homes != channel)
        return leaving, homes[leaving]
    rows = np.arange(len(hashes))
    backups, had = after.backups(hashes), np.sort(_pairs(before.backups(hashes)))
    leaves = ~contains(np.sort(_pairs(after.active_channels(hashes))), (rows << 32) | channel)
    leaves &= ~contains(had, (rows << 32) | homes)
    held = np.sort(np.concatenate([_pairs(before.active_channels(hashes)), had]))
    fresh = ~contains(held, _pairs(backups)) & (before.home(hashes)[backups.rows] == channel)
    return np.concatenate([rows[leaves], backups.rows[fresh]]), np.concatenate([homes[leaves], backups.channels[fresh]])
