"""Backup copies: where they are best kept, and what becomes of a table when channels lose what they held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.routing.ragged import Ragged, contains

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from evenkeel.routing.table import RoutingTable

__all__ = ["holds_copies", "recovered", "switchable", "with_replicas"]


def with_replicas(
    table: RoutingTable, default: int, levels: Mapping[int, int], hosts: Mapping[int, str], max_pins: int | None = None
) -> RoutingTable:
    """Give the table in which every key has as many backups as asked for, each on a channel of its own.

    The k-th backup is on the k-th next channel, (home + k) mod N, of those on other hosts than the active copy and the
    backups before it; where there are too few hosts, on any other channel. Backups that are well placed already stay.
    A key whose number of backups is not its slot's is pinned where it is, until it is of no more account: a pin that
    says what its slot says is taken out.

    Parameters
    ----------
    table
        The table in force.
    default
        Backups of keys that are not named.
    levels
        Backups of single keys, by hash; the most important ones first.
    hosts
        The host of each channel, as far as known.
    max_pins
        How many pins the table may have; what is beyond stays as it is. ``None``: any number.

    Notes
    -----
    O(slots + pins), each by as many steps as it has backups and neighbours on its own host.

    Examples
    --------
    >>> from evenkeel.routing import RoutingTable
    >>> table = with_replicas(RoutingTable.even(3, slots=3), 1, {}, {0: "a", 1: "a", 2: "b"})
    >>> table.slot_channels.tolist(), table.backups_of_slots.tolist()
    ([0, 1, 2], [[2], [2], [0]])
    """
    if default < 0 or any(wanted < 0 for wanted in levels.values()):
        raise InvalidArgumentError("A number of replicas must not be negative.")
    chosen = _Chooser(table.channels, hosts)
    of_slots = [
        chosen.backups(home, default, before)
        for home, before in zip(table.slot_channels.tolist(), table.backups_of_slots.tolist(), strict=True)
    ]

    def of_keys(keys: np.ndarray, homes: np.ndarray) -> list[list[int]]:
        each = zip(keys.tolist(), homes.tolist(), table.backups(keys).tolist(), strict=True)
        return [chosen.backups(home, levels.get(key, default), before) for key, home, before in each]

    slots = (table.pin_hashes % table.slots).tolist()
    backups = of_keys(table.pin_hashes, table.pin_channels)
    told_by_slot = np.array([backups[pin] == of_slots[slot] for pin, slot in enumerate(slots)], bool)
    needed = ~told_by_slot | (table.pin_channels != table.slot_channels[slots])
    old, old_homes = table.pin_hashes[needed], table.pin_channels[needed]
    named = [key for key, wanted in levels.items() if wanted != default]
    new = np.setdiff1d(np.array(named, np.int64), np.concatenate([old, table.split_hashes]))
    taken = int((~contains(np.sort(table.split_hashes), old)).sum())
    if max_pins is not None and len(new) > (room := max(0, max_pins - taken)):
        first = [key for key in named if key in set(new.tolist())][:room]
        new = np.array(sorted(first), np.int64)
    pins, homes = np.concatenate([old, new]), np.concatenate([old_homes, table.home(new)])
    of_pins = [backups[pin] for pin in np.flatnonzero(needed)] + of_keys(new, table.home(new))
    order = np.argsort(pins, kind="stable")
    changed = table.evolve(
        pin_hashes=pins[order],
        pin_channels=homes[order],
        pin_backups=Ragged.of([of_pins[place] for place in order]),
        slot_backups=Ragged.of(of_slots),
    )
    return table if changed.evolve(epoch=table.epoch) == table else changed


class _Chooser:
    """Chooses channels for backups."""

    def __init__(self, channels: int, hosts: Mapping[int, str]) -> None:
        self.channels = channels
        self.host_of = [hosts.get(channel, f"?{channel}") for channel in range(channels)]

    def backups(self, home: int, wanted: int, before: Sequence[int]) -> list[int]:
        """Give the channels of the backups, those that stay first."""
        wanted = min(wanted, self.channels - 1)
        taken, found = {self.host_of[home]}, list[int]()
        nexts = [(home + step) % self.channels for step in range(1, self.channels)] if wanted else []
        for asks_for_another_host in (True, False):
            for channel in (*before, *nexts):
                if len(found) == wanted:
                    return found
                good = channel not in (home, *found) and channel < self.channels
                if good and not (asks_for_another_host and self.host_of[channel] in taken):
                    found.append(channel)
                    taken.add(self.host_of[channel])
        return found


def recovered(table: RoutingTable, lost: Collection[int]) -> RoutingTable:
    """Give the table after channels have lost what they held: backups elsewhere become the active copies.

    What has no copy left stays where it was; its channel must be restored.

    >>> from evenkeel.routing import RoutingTable
    >>> table = with_replicas(RoutingTable.even(3, slots=3), 1, {}, {})
    >>> after = recovered(table, {1})
    >>> after.slot_channels.tolist(), after.backups_of_slots.tolist()
    ([0, 2, 2], [[], [], [0]])
    """
    gone = np.zeros(table.channels, bool)
    gone[list(lost)] = True

    def switch(homes: np.ndarray, backups: Ragged) -> tuple[np.ndarray, Ragged]:
        left = ~gone[backups.channels]
        rows, places = backups.rows[left], backups.channels[left]
        first = np.full(len(homes), -1, np.int64)
        first[rows[::-1]] = np.arange(len(rows))[::-1]
        switches = gone[homes] & (first >= 0)
        homes = homes.copy()
        homes[switches] = places[first[switches]]
        rest = np.ones(len(rows), bool)
        rest[first[switches]] = False
        return homes, Ragged.of_pairs(rows[rest], places[rest], len(homes))

    slots, slot_backups = switch(table.slot_channels, table.backups_of_slots)
    pins, pin_backups = switch(table.pin_channels, table.backups_of_pins)
    return table.evolve(
        slot_channels=slots,
        slot_backups=slot_backups,
        pin_hashes=table.pin_hashes,
        pin_channels=pins,
        pin_backups=pin_backups,
    )


def switchable(table: RoutingTable) -> frozenset[int]:
    """Give the channels with an active copy that has a backup elsewhere."""
    slots = table.slot_channels[table.backups_of_slots.lengths > 0]
    pins = table.pin_channels[table.backups_of_pins.lengths > 0]
    return frozenset(np.union1d(slots, pins).tolist())


def holds_copies(table: RoutingTable) -> frozenset[int]:
    """Give the channels that hold anything at all: an active copy, a part of a split key, or a backup."""
    parts = (
        table.slot_channels,
        table.pin_channels,
        table.split_channels.channels,
        table.backups_of_slots.channels,
        table.backups_of_pins.channels,
    )
    return frozenset(np.unique(np.concatenate(parts)).tolist())
