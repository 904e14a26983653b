"""The laws that every routing table keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidTableError
from evenkeel.routing.ragged import Ragged, contains

if TYPE_CHECKING:
    from evenkeel.routing.table import RoutingTable

__all__ = ["check"]


def check(table: RoutingTable) -> None:
    """Raise :class:`InvalidTableError` for a table that is not total, not single-valued, or unsafe. O(entries)."""
    _check_shape(table)
    _check_channels(table)
    _check_listed_once(table)
    _check_backups(table)


def _check_shape(table: RoutingTable) -> None:
    if table.channels < 1:
        raise InvalidTableError(f"A table needs at least one channel; got {table.channels}.")
    if len(table.slot_channels) == 0:
        raise InvalidTableError("A table needs at least one slot; got none.")
    for what, keys, values in (
        ("pin_channels", table.pin_hashes, table.pin_channels),
        ("pin_backups", table.pin_hashes, table.backups_of_pins),
        ("split_channels", table.split_hashes, table.split_channels),
        ("slot_backups", table.slot_channels, table.backups_of_slots),
    ):
        if len(keys) != len(values):
            raise InvalidTableError(f"{what} has {len(values)} entries for {len(keys)}.")


def _check_channels(table: RoutingTable) -> None:
    for what, numbers in (
        ("slot", table.slot_channels),
        ("pin", table.pin_channels),
        ("split", table.split_channels.channels),
        ("backup of a slot", table.backups_of_slots.channels),
        ("backup of a pin", table.backups_of_pins.channels),
    ):
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= table.channels):
            wrong = int(numbers[(numbers < 0) | (numbers >= table.channels)][0])
            raise InvalidTableError(
                f"A {what} names channel {wrong}, but there are {table.channels}, numbered from 0.", channel=wrong
            )


def _check_listed_once(table: RoutingTable) -> None:
    pins, splits = table.pin_hashes, table.split_hashes  # both ascending
    for twice in (
        pins[1:][np.diff(pins) == 0],
        splits[1:][np.diff(splits) == 0],
        splits[contains(pins, splits)],
    ):
        if len(twice):
            raise InvalidTableError(f"The key with hash {twice[0]} is listed twice.", hash=int(twice[0]))
    if (table.split_channels.lengths == 0).any():
        raise InvalidTableError("A split key needs at least one channel.")
    _refuse_repeats("A split key names a channel twice", table.split_channels)


def _check_backups(table: RoutingTable) -> None:
    for what, homes, backups in (
        ("slot", table.slot_channels, table.backups_of_slots),
        ("pin", table.pin_channels, table.backups_of_pins),
    ):
        if (homes[backups.rows] == backups.channels).any():
            raise InvalidTableError(f"The backup of a {what} is on the channel of its active copy.")
        _refuse_repeats(f"A {what} has two backups on one channel", backups)


def _refuse_repeats(what: str, lists: Ragged) -> None:
    pairs = np.sort((lists.rows << 32) | lists.channels)
    if (np.diff(pairs) == 0).any():
        raise InvalidTableError(f"{what}.")
