"""The routing table: which channel a key belongs to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError, InvalidTableError
from evenkeel.hashing import as_hashes
from evenkeel.routing.laws import check
from evenkeel.routing.lookup import Lookup
from evenkeel.routing.ragged import Ragged, contains, is_ascending

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

    from evenkeel.routing.moves import Moves
    from evenkeel.routing.ring import ConsistentHashRing

__all__ = ["RoutingTable", "default_slots"]

_NO_HASHES = np.empty(0, np.int64)
_NO_CHANNELS = np.empty(0, np.int32)


def default_slots(channels: int) -> int:
    """Slots for ``channels``: 4096, or the power of two that leaves every channel at least 16.

    >>> default_slots(8), default_slots(1000)
    (4096, 16384)
    """
    return max(4096, 1 << (16 * channels - 1).bit_length())


@dataclass(frozen=True, slots=True, eq=False)
class RoutingTable:
    """An immutable map from every key to its channel, numbered by epoch.

    A key is known by its 64-bit hash (see :func:`evenkeel.hashing.hash_keys`). Its *slot* is ``hash mod slots``. A key
    may be listed on its own: *pinned* to one channel, or *split* over several. Every key has exactly one *home*: its
    pin, else the first channel of its split, else its slot's channel. So the table is total and single-valued.

    Parameters
    ----------
    slot_channels
        The channel of each slot.
    channels
        How many channels there are; they are numbered from 0.
    epoch
        Number of the table; a change gives the next one.
    pin_hashes, pin_channels
        Keys with a channel of their own.
    split_hashes, split_channels
        Keys that are spread over several channels. Only sound for operators whose partial states merge.
    slot_backups, pin_backups
        The backup channels of each slot and of each pin.

    Notes
    -----
    Routing takes O(1) per key, compiled. The table holds 4 bytes per slot and 12 per pin, plus about 25 per pin for
    look-ups, made on first use. Two keys with one hash share one entry and so always move together: correct, if
    unlikely (one chance in 10⁷ among a million keys).

    Examples
    --------
    >>> from evenkeel.hashing import hash_keys
    >>> table = RoutingTable.even(channels=4)
    >>> table.with_pins(hash_keys(["hot"]), [3]).route(["hot", "cold"]).tolist()
    [3, 0]
    """

    slot_channels: NDArray[np.int32]
    channels: int
    epoch: int = 0
    pin_hashes: NDArray[np.int64] = field(default_factory=lambda: _NO_HASHES)
    pin_channels: NDArray[np.int32] = field(default_factory=lambda: _NO_CHANNELS)
    pin_backups: Ragged | None = None
    split_hashes: NDArray[np.int64] = field(default_factory=lambda: _NO_HASHES)
    split_channels: Ragged = field(default_factory=lambda: Ragged.empty(0))
    slot_backups: Ragged | None = None
    _lookup: Lookup | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name, kind in (
            ("slot_channels", np.int32),
            ("pin_hashes", np.int64),
            ("pin_channels", np.int32),
            ("split_hashes", np.int64),
        ):
            array = np.array(getattr(self, name), kind)
            if array.ndim != 1:
                raise InvalidTableError(f"{name} must have one dimension; got shape {array.shape}.")
            put(self, name, array)
        put(self, "pin_backups", self.pin_backups or Ragged.empty(len(self.pin_hashes)))
        put(self, "slot_backups", self.slot_backups or Ragged.empty(len(self.slot_channels)))
        self._sort()
        check(self)
        for name in ("slot_channels", "pin_hashes", "pin_channels", "split_hashes"):
            getattr(self, name).setflags(write=False)

    def _sort(self) -> None:
        """Keep listed keys in the order of their hashes, so that equal tables are equal arrays."""
        put = object.__setattr__
        if not is_ascending(self.pin_hashes):
            order = np.argsort(self.pin_hashes)
            put(self, "pin_hashes", self.pin_hashes[order])
            put(self, "pin_channels", self.pin_channels[order])
            put(self, "pin_backups", self.backups_of_pins.take(order))
        if not is_ascending(self.split_hashes):
            order = np.argsort(self.split_hashes)
            put(self, "split_hashes", self.split_hashes[order])
            put(self, "split_channels", self.split_channels.take(order))

    # -- making tables ----------------------------------------------------------------------------------------------

    @classmethod
    def even(cls, channels: int, slots: int | None = None) -> RoutingTable:
        """Deal the slots out to the channels in turn: plain key grouping where ``channels`` divides ``slots``."""
        if channels < 1:
            raise InvalidArgumentError(f"channels must be at least 1; got {channels}.")
        return cls(np.arange(slots or default_slots(channels), dtype=np.int32) % channels, channels)

    @classmethod
    def from_ring(cls, ring: ConsistentHashRing, slots: int | None = None) -> RoutingTable:
        """Let a consistent-hash ring fill the slots, so that a change of N moves about 1/N of them."""
        return cls(ring.slot_channels(slots or default_slots(ring.channels)), ring.channels)

    def evolve(self, **changes: Any) -> RoutingTable:
        """Give the next epoch's table: this one with some fields changed."""
        if "pin_hashes" in changes and "pin_backups" not in changes:
            changes["pin_backups"] = None
        return dataclasses.replace(self, **{"epoch": self.epoch + 1, **changes})

    def with_pins(self, hashes: ArrayLike, channels: ArrayLike) -> RoutingTable:
        """Pin keys, whether or not they were listed before; their backups, if any, are dropped."""
        hashes = np.asarray(hashes, np.int64)
        listed = np.sort(hashes)
        kept = ~contains(listed, self.pin_hashes)
        whole = ~contains(listed, self.split_hashes)
        return self.evolve(
            pin_hashes=np.concatenate([self.pin_hashes[kept], hashes]),
            pin_channels=np.concatenate([self.pin_channels[kept], np.asarray(channels, np.int32)]),
            pin_backups=_concatenate(self.backups_of_pins.take(np.flatnonzero(kept)), Ragged.empty(len(hashes))),
            split_hashes=self.split_hashes[whole],
            split_channels=self.split_channels.take(np.flatnonzero(whole)),
        )

    # -- reading ----------------------------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """How many slots there are (P)."""
        return len(self.slot_channels)

    @property
    def backups_of_pins(self) -> Ragged:
        """The backup channels of each pin."""
        assert self.pin_backups is not None
        return self.pin_backups

    @property
    def backups_of_slots(self) -> Ragged:
        """The backup channels of each slot."""
        assert self.slot_backups is not None
        return self.slot_backups

    @property
    def has_backups(self) -> bool:
        """Whether any key has a backup."""
        return bool(len(self.backups_of_slots.channels) or len(self.backups_of_pins.channels))

    @property
    def size_bytes(self) -> int:
        """Bytes that a copy of the table takes, without its look-up index."""
        return sum(
            part.nbytes
            for part in (
                self.slot_channels,
                self.pin_hashes,
                self.pin_channels,
                self.split_hashes,
                self.split_channels,
                self.backups_of_slots,
                self.backups_of_pins,
            )
        )

    def slot_of(self, hashes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give each key's slot."""
        return hashes % self.slots

    def route(self, keys: Any, *, turn: int = 0) -> NDArray[np.int32]:
        """Give each tuple's channel.

        Parameters
        ----------
        keys
            Key hashes as an int64 NumPy array, or a key column of any type that ``hash_keys`` takes. (Integer keys
            must be hashed, or passed as Arrow: a bare int64 NumPy array is taken for hashes.)
        turn
            Which of a split key's channels its first tuple takes; the next tuple takes the next channel.
        """
        hashes = as_hashes(keys)
        out = np.empty(len(hashes), np.int32)
        from evenkeel.routing import _kernels

        if len(self.pin_hashes) + len(self.split_hashes) == 0:
            _kernels.route_slots(hashes, self.slot_channels, out)
            return out
        lookup = self._index()
        _kernels.route_table(
            hashes,
            self.slot_channels,
            lookup.bits,
            lookup.map_keys,
            lookup.map_values,
            self._listed_homes(),
            len(self.pin_hashes),
            self.split_channels.offsets,
            self.split_channels.channels,
            np.full(len(self.split_hashes), turn, np.int64),
            out,
        )
        return out

    def home(self, keys: Any) -> NDArray[np.int32]:
        """Give the one channel that each key belongs to; the same as :meth:`route` for keys that are not split."""
        homes = np.concatenate([self.slot_channels, self._listed_homes()])
        return homes[self._entries(as_hashes(keys))]

    def active_channels(self, keys: Any) -> Ragged:
        """Give the channels that hold a part of each key's state: its home, or all channels of its split."""
        entries = self._entries(as_hashes(keys))
        whole = np.concatenate([self.slot_channels, self.pin_channels])
        single = Ragged(np.arange(len(whole) + 1), whole)
        return _concatenate(single, self.split_channels).take(entries)

    def backups(self, keys: Any) -> Ragged:
        """Give the channels that hold a backup copy of each key's state."""
        listed = _concatenate(self.backups_of_pins, Ragged.empty(len(self.split_hashes)))
        return _concatenate(self.backups_of_slots, listed).take(self._entries(as_hashes(keys)))

    def diff(self, new: RoutingTable) -> Moves:
        """Give what must move so that ``new`` may replace this table."""
        from evenkeel.routing.moves import moves_between

        return moves_between(self, new)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RoutingTable):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in zip(self._state(), other._state(), strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.channels, self.epoch, self.slot_channels.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that an unpickled table is as read-only as this one.
        return RoutingTable, self._state()

    def _state(self) -> tuple[Any, ...]:
        return tuple(getattr(self, item.name) for item in dataclasses.fields(self) if item.init)

    # -- storing ----------------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """Give the table as an Arrow table, one row per entry; see :mod:`evenkeel.routing.storage`."""
        from evenkeel.routing import storage

        return storage.to_arrow(self)

    @staticmethod
    def from_arrow(table: pa.Table) -> RoutingTable:
        """Read what :meth:`to_arrow` gave."""
        from evenkeel.routing import storage

        return storage.from_arrow(table)

    def to_json(self, names: dict[int, str] | None = None, *, indent: int | None = 2) -> str:
        """Give the table as JSON for people; ``names`` says what the keys behind the hashes are called."""
        from evenkeel.routing import storage

        return storage.to_json(self, names, indent)

    @staticmethod
    def from_json(text: str) -> RoutingTable:
        """Read what :meth:`to_json` gave."""
        from evenkeel.routing import storage

        return storage.from_json(text)

    # -- look-ups ---------------------------------------------------------------------------------------------------

    def _listed_homes(self) -> NDArray[np.int32]:
        return np.concatenate([self.pin_channels, self.split_channels.channels[self.split_channels.offsets[:-1]]])

    def _entries(self, hashes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The entry that speaks for each key: slots first, then pins, then splits."""
        from evenkeel.routing import _kernels

        out = np.empty(len(hashes), np.int64)
        lookup = self._index()
        _kernels.locate(hashes, self.slots, lookup.bits, lookup.map_keys, lookup.map_values, out)
        return out

    def _index(self) -> Lookup:
        if self._lookup is None:
            object.__setattr__(self, "_lookup", Lookup.of(np.concatenate([self.pin_hashes, self.split_hashes])))
        assert self._lookup is not None
        return self._lookup


def _concatenate(first: Ragged, second: Ragged) -> Ragged:
    return Ragged(
        np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        np.concatenate([first.channels, second.channels]),
    )
