"""A hash map of 64-bit keys for compiled loops: two arrays, linear probing, no tombstones.

``keys[s]`` is meant only where ``values[s] >= 0``; a value of -1 marks a free place. The size is a power of two,
and the owner keeps the map at most half full, so a probe is one or two cache lines.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled, inlined

FREE = -1

Keys = NDArray[np.int64]
Values = NDArray[np.int32]


def empty_map(entries: int) -> tuple[Keys, Values]:
    """Arrays for up to ``entries`` entries, at most half full."""
    size = 1 << max(3, (2 * entries - 1).bit_length())
    return np.zeros(size, np.int64), np.full(size, FREE, np.int32)


@inlined
def mix64(value: np.uint64) -> np.uint64:
    """SplitMix64's finaliser: a bijection on 64 bits in which every input bit stirs every output bit."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@inlined
def place(key: np.int64, mask: int) -> int:
    """Where the search for ``key`` starts: the high bits of a Fibonacci product, good also for plain integers."""
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask


@inlined
def find(keys: Keys, values: Values, key: np.int64) -> int:
    """The place that holds ``key``, or the free place where it belongs."""
    mask = len(keys) - 1
    at = place(key, mask)
    while values[at] != FREE and keys[at] != key:
        at = (at + 1) & mask
    return at


@compiled
def remove(keys: Keys, values: Values, at: int) -> None:
    """Free place ``at``, and close the gap so that later searches still find their keys."""
    mask = len(keys) - 1
    gap = at
    at = (at + 1) & mask
    while values[at] != FREE:
        # An entry may fill the gap if its search starts at the gap or before it, going round the end.
        if (at - place(keys[at], mask)) & mask >= (at - gap) & mask:
            keys[gap] = keys[at]
            values[gap] = values[at]
            gap = at
        at = (at + 1) & mask
    values[gap] = FREE


@compiled
def fill(keys: Keys, values: Values, new_keys: Keys, new_values: Values) -> None:
    """Insert distinct ``new_keys`` into a map that has room for them."""
    for i in range(len(new_keys)):
        at = find(keys, values, new_keys[i])
        keys[at] = new_keys[i]
        values[at] = new_values[i]
