"""Which keys a move is about: whole slots, but for some keys, and some keys by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.state.identity import KEY_BYTES, as_list, count_up_to, pack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["EVERYTHING", "NOTHING", "Selection"]

_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_Keys = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Selection:
    """A set of keys that can be exported, and dropped, as ranges of packed keys.

    The same selection says what a channel sends and what it then drops, so neither can be more than the other. Keys
    that share a 64-bit hash are selected together, as a routing table moves them.

    Parameters
    ----------
    slots
        Whole slots.
    spared
        ``(slot, hash)`` of keys that stay although their slot is selected: those that the table lists by themselves.
    keys
        ``(slot, hash)`` of keys that are selected by themselves, spared or not.

    Notes
    -----
    Plain Python sets: O(slots + listed keys), which a plan already is; never O(keys held).

    Examples
    --------
    >>> move = Selection.of(slots=[3, 4], spare=([3], [17]), keys=([9], [25]))
    >>> move.covers(pack([3, 3, 9, 9], [16, 17, 25, 26], [0, 0, 0, 0])).tolist()
    [True, False, True, False]
    """

    slots: frozenset[int] = frozenset()
    spared: _Keys = frozenset()
    keys: _Keys = frozenset()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "spared", frozenset(key for key in self.spared if key[0] in self.slots) - self.keys)
        put(self, "keys", frozenset(key for key in self.keys if key[0] not in self.slots))

    @classmethod
    def of(
        cls,
        slots: ArrayLike = (),
        spare: tuple[ArrayLike, ArrayLike] | None = None,
        keys: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Selection:
        """Build from arrays: slots; slots and hashes of the keys to spare; slots and hashes of single keys."""
        return cls(frozenset(np.asarray(slots, np.int64).tolist()), _pairs(spare), _pairs(keys))

    def __or__(self, other: Selection) -> Selection:
        """Give what either selects; a key is spared only where every selection of its slot spares it."""
        spared = (key for key in self.spared | other.spared if not (self._takes(key) or other._takes(key)))
        return Selection(self.slots | other.slots, frozenset(spared), self.keys | other.keys)

    def __bool__(self) -> bool:
        return bool(self.slots or self.keys)

    def _takes(self, key: tuple[int, int]) -> bool:
        return key in self.keys or (key[0] in self.slots and key not in self.spared)

    def ranges(self) -> tuple[NDArray[np.bytes_], NDArray[np.bytes_]]:
        """Give the lowest and the highest packed key of each range: ascending, disjoint, both ends included."""
        spared: dict[int, list[int]] = {}
        for slot, key_hash in sorted(self.spared):
            spared.setdefault(slot, []).append(key_hash)
        found = [(slot, key_hash, key_hash) for slot, key_hash in self.keys]
        for slot in self.slots:
            found += _between(slot, spared.get(slot, []))
        found.sort()
        slots, lows, highs = np.array(found, np.int64).reshape(-1, 3).T
        return pack(slots, lows, np.full(len(lows), _LOWEST)), pack(slots, highs, np.full(len(highs), _HIGHEST))

    def covers(self, packed: NDArray[np.bytes_]) -> NDArray[np.bool_]:
        """Say which packed keys are selected. O(keys · log ranges)."""
        lows, highs = self.ranges()
        if len(lows) == 0 or len(packed) == 0:
            return np.zeros(len(packed), np.bool_)
        places = count_up_to(lows, packed) - 1
        inside: NDArray[np.bool_] = (places >= 0) & (packed <= highs[np.maximum(places, 0)])
        return inside

    def range_list(self) -> list[tuple[bytes, bytes]]:
        """The ranges as pairs of ``bytes``."""
        lows, highs = self.ranges()
        return list(zip(as_list(lows), as_list(highs), strict=True))


def _pairs(columns: tuple[ArrayLike, ArrayLike] | None) -> _Keys:
    if columns is None:
        return frozenset()
    slots, hashes = (np.asarray(column, np.int64) for column in columns)
    if slots.shape != hashes.shape:
        raise InvalidArgumentError(f"Each key needs a slot and a hash; got {slots.shape} and {hashes.shape}.")
    return frozenset(zip(slots.tolist(), hashes.tolist(), strict=True))


def _between(slot: int, spared: Iterable[int]) -> list[tuple[int, int, int]]:
    """The ranges of a slot that are left when some hashes, in ascending order, stay out."""
    left, low = [], _LOWEST
    for key_hash in spared:
        if low < key_hash:
            left.append((slot, low, key_hash - 1))
        if key_hash == _HIGHEST:
            return left
        low = key_hash + 1
    return [*left, (slot, low, _HIGHEST)]


NOTHING = Selection()
EVERYTHING = (b"\0" * KEY_BYTES, b"\xff" * KEY_BYTES)
"""The range of all keys."""
