"""What planners deal out: slots, and keys that have or may get a place of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenkeel.routing import Ragged, RoutingTable
from evenkeel.routing.ragged import contains, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.planning.snapshot import LoadSnapshot

__all__ = ["Items", "resized_slots"]


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """All that can be moved, as aligned arrays: first every slot, in order, then keys by ascending hash.

    Parameters
    ----------
    table
        The table in force.
    key_hashes
        The keys among the items.
    loads
        What is to be balanced, by default the cost.
    state_bytes
        What a move would send.
    homes
        The channel of each item now.
    slot_of
        The slot of each item; for a slot, itself.
    split_loads
        Load of each split key of the table; no item carries it, and no plan moves it.
    """

    table: RoutingTable
    key_hashes: NDArray[np.int64]
    loads: NDArray[np.float64]
    state_bytes: NDArray[np.int64]
    homes: NDArray[np.int32]
    slot_of: NDArray[np.int64]
    split_loads: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        snapshot: LoadSnapshot,
        table: RoutingTable,
        keys: Literal["tracked", "pinned"] | NDArray[np.int64] = "tracked",
        measure: str = "costs",
    ) -> Items:
        """Cut a snapshot into items.

        Parameters
        ----------
        keys
            ``"tracked"``: every tracked or pinned key is an item, and a slot is its untracked rest. ``"pinned"``: only
            pinned keys are; all others are part of their slot. Or just which keys, besides the pinned ones. Split keys
            are never items.
        measure
            Which of the snapshot's measures is the load.
        """
        free = ~contains(table.split_hashes, snapshot.key_hashes)
        hashes = snapshot.key_hashes[free]
        if isinstance(keys, str):
            keys = hashes if keys == "tracked" else hashes[:0]
        items = union(keys[~contains(table.split_hashes, keys)], table.pin_hashes)
        own = contains(items, hashes)  # those of the tracked keys that are items
        places = np.searchsorted(items, hashes[own])
        folded = hashes[~own] % table.slots

        def column(name: str) -> NDArray[Any]:
            of_keys = snapshot.of_keys_tracked(name)[free]
            mine = np.zeros(len(items), of_keys.dtype)
            mine[places] = of_keys[own]
            slots = snapshot.of_slots(name) + np.bincount(folded, weights=of_keys[~own], minlength=table.slots)
            return np.concatenate([slots.astype(of_keys.dtype), mine])

        split_loads = np.zeros(len(table.split_hashes))
        split_loads[np.searchsorted(table.split_hashes, snapshot.key_hashes[~free])] = snapshot.of_keys_tracked(
            measure
        )[~free]
        return cls(
            table=table,
            key_hashes=items,
            loads=column(measure),
            state_bytes=column("state_bytes"),
            homes=np.concatenate([table.slot_channels, table.home(items)]),
            slot_of=np.concatenate([np.arange(table.slots), items % table.slots]),
            split_loads=split_loads,
        )

    def __len__(self) -> int:
        return len(self.homes)

    @property
    def slots(self) -> int:
        """How many of the items are slots; the rest are keys."""
        return self.table.slots

    @property
    def fixed(self) -> NDArray[np.float64]:
        """The load that no plan can move, for the channels that there are."""
        return self.fixed_for(self.table.channels)

    def fixed_for(self, channels: int) -> NDArray[np.float64]:
        """Give the load that no plan can move, that of split keys, for a number of channels."""
        places = self._splits(channels)
        shares = np.repeat(self.split_loads / places.lengths, places.lengths)
        return np.bincount(places.channels, weights=shares, minlength=channels).astype(np.float64)

    def channel_loads(self, homes: NDArray[np.int32], channels: int) -> NDArray[np.float64]:
        """Give each channel's load if the items were on ``homes``."""
        return self.fixed_for(channels) + np.bincount(homes, weights=self.loads, minlength=channels)

    def table_with(self, homes: NDArray[np.int32], channels: int) -> RoutingTable:
        """Give the table that puts every item on its channel in ``homes``; the one in force where nothing changes.

        A key is pinned only if it, or a backup of it, is not where its slot's is. Backups stay where they are; where
        one becomes the active copy, the former active copy becomes a backup (a switch of roles); those on vanished
        channels are gone. Splits stay, without their vanished channels.
        """
        homes = np.asarray(homes, np.int32)
        if channels == self.table.channels and np.array_equal(homes, self.homes):
            return self.table
        slots = self.slots
        apart = homes[slots:] != homes[self.slot_of[slots:]]
        backups = self._new_backups(homes, channels)
        if backups is not None:
            apart |= self._backed_up_otherwise(backups)
        changes: dict[str, Any] = {
            "slot_channels": homes[:slots],
            "channels": channels,
            "pin_hashes": self.key_hashes[apart],
            "pin_channels": homes[slots:][apart],
            "slot_backups": backups and backups.take(np.arange(slots)),
            "pin_backups": backups and backups.take(slots + np.flatnonzero(apart)),
            "split_channels": self._splits(channels),
        }
        table = self.table.evolve(**changes)
        return self.table if table.evolve(epoch=self.table.epoch) == self.table else table

    def _splits(self, channels: int) -> Ragged:
        """The splits without vanished channels; one that loses all of them is left on a channel by its hash."""
        splits = self.table.split_channels
        if channels >= self.table.channels:
            return splits
        kept = splits.channels < channels
        lost = np.flatnonzero(np.bincount(splits.rows[kept], minlength=len(splits)) == 0)
        rows = np.concatenate([splits.rows[kept], lost])
        places = np.concatenate([splits.channels[kept], self.table.split_hashes[lost] % channels])
        return Ragged.of_pairs(rows, places, len(splits))

    def _new_backups(self, homes: NDArray[np.int32], channels: int) -> Ragged | None:
        old = self.backups()
        if len(old.channels) == 0:
            return None
        rows, places = old.rows, old.channels
        kept = (places < channels) & (places != homes[rows])
        switched = np.unique(rows[places == homes[rows]])
        switched = switched[self.homes[switched] < channels]
        rows = np.concatenate([rows[kept], switched])
        return Ragged.of_pairs(rows, np.concatenate([places[kept], self.homes[switched]]), len(self))

    def _backed_up_otherwise(self, backups: Ragged) -> NDArray[np.bool_]:
        """Which keys have backups on other channels than their slot has."""
        own = backups.take(np.arange(self.slots, len(self)))
        of_slot = backups.take(self.slot_of[self.slots :])
        differ = own.lengths != of_slot.lengths
        theirs = np.sort((of_slot.rows << 32) | of_slot.channels, kind="stable")
        differ[own.rows[~contains(theirs, (own.rows << 32) | own.channels)]] = True
        return differ

    def backups(self) -> Ragged:
        """Give the backup channels of each item now."""
        slots, keys = self.table.backups_of_slots, self.table.backups(self.key_hashes)
        return Ragged(
            np.concatenate([slots.offsets, slots.offsets[-1] + keys.offsets[1:]]),
            np.concatenate([slots.channels, keys.channels]),
        )


def resized_slots(table: RoutingTable, channels: int) -> NDArray[np.int32]:
    """Give the slots for another number of channels as a consistent hash does: only what must move moves.

    A new channel takes the slots that the ring gives it; the slots of a vanished one go where the ring says. On a table
    that a ring filled, this is that ring for the new number of channels.
    """
    from evenkeel.routing import ConsistentHashRing

    if channels == table.channels:
        return table.slot_channels
    ring = ConsistentHashRing(channels).slot_channels(table.slots)
    moves = ring >= table.channels if channels > table.channels else table.slot_channels >= channels
    return np.where(moves, ring, table.slot_channels).astype(np.int32)
