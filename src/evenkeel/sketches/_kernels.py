"""Compiled loops of the sketches, on plain arrays.

Entries of a frequency sketch lie side by side in ``keys``, ``counts`` and ``errors``; an entry's index is
its *slot*. ``map_keys`` and ``map_slots`` are an :mod:`evenkeel._kernels.openmap` from key to slot, and
``state`` holds the scalars: ``state[SIZE]`` entries in use, ``state[TOTAL]`` the weight observed,
``state[BOUND]`` (space-saving only) the most that a key without an entry can have.

Space-saving adds a binary min-heap of slots, ordered by count and then key: ``heap[p]`` is the slot at heap
position ``p`` and ``positions[slot]`` the way back. It is kept only while every slot is in use: before that
there is nobody to replace.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled, inlined
from evenkeel._kernels.openmap import FREE, empty_map, fill, find, remove

SIZE, TOTAL, BOUND = 0, 1, 2

Longs: TypeAlias = NDArray[np.int64]
Slots: TypeAlias = NDArray[np.int32]
Doubles: TypeAlias = NDArray[np.float64]
LossyArrays: TypeAlias = tuple[Longs, Slots, Longs, Longs, Longs, Longs]
SpaceSavingArrays: TypeAlias = tuple[Longs, Slots, Longs, Longs, Longs, Slots, Slots, Longs]


def lossy_arrays(room: int, keys: Longs, counts: Longs, errors: Longs, total: int) -> LossyArrays:
    """Return ``map_keys, map_slots, keys, counts, errors, state`` with these entries and room for ``room``."""
    map_keys, map_slots = empty_map(room)
    fill(map_keys, map_slots, keys, np.arange(len(keys), dtype=np.int32))
    entries = np.zeros((3, room), np.int64)
    entries[:, : len(keys)] = keys, counts, errors
    return map_keys, map_slots, entries[0], entries[1], entries[2], np.array([len(keys), total], np.int64)


def space_saving_arrays(
    capacity: int, keys: Longs, counts: Longs, errors: Longs, total: int, bound: int
) -> SpaceSavingArrays:
    """Return ``map_keys, map_slots, keys, counts, errors, heap, positions, state`` with these entries."""
    map_keys, map_slots, keys, counts, errors, state = lossy_arrays(capacity, keys, counts, errors, total)
    heap, positions = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
    if state[SIZE] == capacity:
        heapify(keys, counts, heap, positions)
    return map_keys, map_slots, keys, counts, errors, heap, positions, np.append(state, np.int64(bound))


@compiled
def look_up(map_keys: Longs, map_slots: Slots, column: Longs, queries: Longs, absent: int) -> Longs:
    """Return each query's value in ``column``, or ``absent``."""
    answers = np.empty(len(queries), np.int64)
    for i in range(len(queries)):
        slot = map_slots[find(map_keys, map_slots, queries[i])]
        answers[i] = absent if slot == FREE else column[slot]
    return answers


@compiled
def evict_rare(
    map_keys: Longs, map_slots: Slots, keys: Longs, counts: Longs, errors: Longs, size: int, window: int
) -> int:
    """Close window number ``window`` of lossy counting; return how many entries remain, in order."""
    kept = 0
    for slot in range(size):
        if counts[slot] + errors[slot] > window:
            keys[kept] = keys[slot]
            counts[kept] = counts[slot]
            errors[kept] = errors[slot]
            kept += 1
    # About as many entries leave as stay: filling the map anew is cheaper than closing that many gaps.
    map_slots[:] = FREE
    for slot in range(kept):
        at = find(map_keys, map_slots, keys[slot])
        map_keys[at] = keys[slot]
        map_slots[at] = slot
    return kept


@compiled
def observe_lossy(
    map_keys: Longs,
    map_slots: Slots,
    keys: Longs,
    counts: Longs,
    errors: Longs,
    state: Longs,
    width: int,
    items: Longs,
    start: int,
) -> int:
    """Count ``items[start:]`` in windows of ``width``; return the end, or where there was no room."""
    size = state[SIZE]
    total = state[TOTAL]
    closed = total // width
    until_close = width - total % width
    end = len(items)
    for i in range(start, len(items)):
        at = find(map_keys, map_slots, items[i])
        slot = map_slots[at]
        if slot != FREE:
            counts[slot] += 1
        elif size < len(keys):
            map_keys[at] = items[i]
            map_slots[at] = size
            keys[size] = items[i]
            counts[size] = 1
            errors[size] = closed
            size += 1
        else:
            end = i
            break
        until_close -= 1
        if until_close == 0:
            closed += 1
            until_close = width
            size = evict_rare(map_keys, map_slots, keys, counts, errors, size, closed)
    state[SIZE] = size
    state[TOTAL] = total + end - start
    return end


@inlined
def sift_down(keys: Longs, counts: Longs, heap: Slots, positions: Slots, position: int) -> None:
    """Restore the heap below ``position``, whose entry may have grown.

    The order is by count, and by key among equals, so that there is always one entry to replace.
    """
    # Counts and keys are read into variables once: the compiler cannot know that writing the heap leaves them
    # alone, and reading them again halves the speed.
    slot = heap[position]
    count = counts[slot]
    key = keys[slot]
    while 2 * position + 1 < len(heap):
        child = 2 * position + 1
        lesser = heap[child]
        least = counts[lesser]
        if child + 1 < len(heap):
            sibling = heap[child + 1]
            other = counts[sibling]
            if other < least or (other == least and keys[sibling] < keys[lesser]):
                child, lesser, least = child + 1, sibling, other
        if count < least or (count == least and key < keys[lesser]):
            break
        heap[position] = lesser
        positions[lesser] = position
        position = child
    heap[position] = slot
    positions[slot] = position


@compiled
def heapify(keys: Longs, counts: Longs, heap: Slots, positions: Slots) -> None:
    """Order all slots, now that each holds an entry."""
    for slot in range(len(heap)):
        heap[slot] = slot
        positions[slot] = slot
    for position in range(len(heap) // 2 - 1, -1, -1):
        sift_down(keys, counts, heap, positions, position)


@inlined
def observe_one(
    map_keys: Longs,
    map_slots: Slots,
    keys: Longs,
    counts: Longs,
    errors: Longs,
    heap: Slots,
    positions: Slots,
    state: Longs,
    key: np.int64,
    weight: int,
) -> int:
    """Take space-saving's step for one key, in any compiled loop; return the key's new count."""
    at = find(map_keys, map_slots, key)
    slot = np.int64(map_slots[at])
    if slot != FREE:
        counts[slot] += weight
    elif state[SIZE] < len(keys):
        slot = state[SIZE]
        state[SIZE] += 1
        map_keys[at] = key
        map_slots[at] = slot
        keys[slot] = key
        counts[slot] = weight
        errors[slot] = 0
        if state[SIZE] == len(keys):
            heapify(keys, counts, heap, positions)
    else:
        slot = np.int64(heap[0])
        remove(map_keys, map_slots, find(map_keys, map_slots, keys[slot]))
        at = find(map_keys, map_slots, key)  # Anew, since the removal may have moved entries.
        map_keys[at] = key
        map_slots[at] = slot
        keys[slot] = key
        errors[slot] = counts[slot]
        state[BOUND] = counts[slot]
        counts[slot] += weight
    if state[SIZE] == len(keys):
        sift_down(keys, counts, heap, positions, positions[slot])
    state[TOTAL] += weight
    return counts[slot]


@compiled
def observe_space_saving(
    map_keys: Longs,
    map_slots: Slots,
    keys: Longs,
    counts: Longs,
    errors: Longs,
    heap: Slots,
    positions: Slots,
    state: Longs,
    items: Longs,
    weights: Longs,
) -> None:
    """Take space-saving's step for every item in turn."""
    for i in range(len(items)):
        observe_one(map_keys, map_slots, keys, counts, errors, heap, positions, state, items[i], weights[i])


@compiled
def join_closest(centres: Doubles, counts: Longs, size: int) -> None:
    """Replace the two neighbouring bins with the smallest gap, the lowest such pair, by their centroid."""
    low = 0
    smallest = np.inf
    for i in range(size - 1):
        gap = centres[i + 1] - centres[i]
        if gap < smallest:
            smallest = gap
            low = i
    together = counts[low] + counts[low + 1]
    # Shares instead of products, which may overflow; and kept between its parents in spite of rounding, for
    # the centres must stay in order.
    centre = centres[low] * (counts[low] / together) + centres[low + 1] * (counts[low + 1] / together)
    centres[low] = min(max(centre, centres[low]), centres[low + 1])
    counts[low] = together
    for i in range(low + 1, size - 1):
        centres[i] = centres[i + 1]
        counts[i] = counts[i + 1]


@compiled
def observe_histogram(centres: Doubles, counts: Longs, size: int, bins: int, values: Doubles, weights: Longs) -> int:
    """Add every value in turn to ``size`` sorted bins, at most ``bins``; return how many there are now."""
    for i in range(len(values)):
        at = np.searchsorted(centres[:size], values[i])
        if at < size and centres[at] == values[i]:
            counts[at] += weights[i]
            continue
        for j in range(size, at, -1):
            centres[j] = centres[j - 1]
            counts[j] = counts[j - 1]
        centres[at] = values[i]
        counts[at] = weights[i]
        size += 1
        if size > bins:
            join_closest(centres, counts, size)
            size -= 1
    return size
