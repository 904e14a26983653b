"""Compiled loops of the operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled
from evenkeel._kernels.copying import copy

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@compiled
def put_slices(source: Bytes, ends: Offsets, cursor: Offsets, out: Bytes) -> None:
    """Copy ``source[ends[i]:ends[i + 1]]`` to ``out[cursor[i]:]``, and move ``cursor[i]`` behind it."""
    for i in range(len(cursor)):
        count = ends[i + 1] - ends[i]
        copy(source, ends[i], out, cursor[i], count)
        cursor[i] += count


@compiled
def take_slices(source: Bytes, cursor: Offsets, ends: Offsets, out: Bytes) -> None:
    """Undo :func:`put_slices`: fill ``out[ends[i]:ends[i + 1]]`` from ``source[cursor[i]:]``, and move the cursor."""
    for i in range(len(cursor)):
        count = ends[i + 1] - ends[i]
        copy(source, cursor[i], out, ends[i], count)
        cursor[i] += count


@compiled
def interleave(old: Offsets, new: Offsets) -> Offsets:
    """Give the order that puts the new rows of each key behind its old ones; all old ones lie before all new ones."""
    order = np.empty(old.sum() + new.sum(), np.int64)
    at = i = 0
    j = old.sum()
    for key in range(len(old)):
        for _ in range(old[key]):
            order[at] = i
            at, i = at + 1, i + 1
        for _ in range(new[key]):
            order[at] = j
            at, j = at + 1, j + 1
    return order


@compiled
def add_by_key(values: NDArray[Any], valid: Flags, key_of: Offsets, sums: NDArray[Any], counts: Offsets) -> None:
    """Add the valid values of each key to ``sums``, and their number to ``counts``."""
    for i in range(len(key_of)):
        if valid[i]:
            sums[key_of[i]] += values[i]
            counts[key_of[i]] += 1


@compiled
def add_squares_by_key(values: Floats, valid: Flags, key_of: Offsets, means: Floats, squares: Floats) -> None:
    """Add the squared distances of the valid values of each key from its mean to ``squares``."""
    for i in range(len(key_of)):
        if valid[i]:
            distance = values[i] - means[key_of[i]]
            squares[key_of[i]] += distance * distance


@compiled
def least_by_key(major: Offsets, minor: Offsets, valid: Flags, key_of: Offsets, keys: int) -> Offsets:
    """Give the place of each key's least pair among the valid ones, or -1."""
    best = np.full(keys, -1)
    for i in range(len(key_of)):
        if valid[i]:
            key = key_of[i]
            j = best[key]
            if j < 0 or major[i] < major[j] or (major[i] == major[j] and minor[i] < minor[j]):
                best[key] = i
    return best


@compiled
def arrival_order(key_of: Offsets, keys: int) -> tuple[Offsets, Offsets]:
    """Give the order of entries by key, those of a key as they came, and where each key's start; one more at the end.

    A counting sort.
    """
    ends = np.zeros(keys + 1, np.int64)
    for i in range(len(key_of)):
        ends[key_of[i] + 1] += 1
    for key in range(keys):
        ends[key + 1] += ends[key]
    cursor = ends.copy()
    order = np.empty(len(key_of), np.int64)
    for i in range(len(key_of)):
        order[cursor[key_of[i]]] = i
        cursor[key_of[i]] += 1
    return order, ends


@compiled
def order_by_key(key_of: Offsets, minor: Offsets, keys: int) -> Offsets:
    """Give the order of entries by key, and by ``minor`` within a key; equal ones stay in order.

    Only keys whose entries do not come in order are sorted.
    """
    order, ends = arrival_order(key_of, keys)
    values = minor[order]  # beside their entries, so that comparing them does not jump about in memory
    spare, spare_values = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    for key in range(keys):
        first, end = ends[key], ends[key + 1]
        in_order = True
        for place in range(first + 1, end):
            if values[place] < values[place - 1]:
                in_order = False
                break
        if in_order:
            continue
        for start in range(first, end, 32):  # short runs by insertion
            for place in range(start + 1, min(start + 32, end)):
                entry, value, hole = order[place], values[place], place
                while hole > start and values[hole - 1] > value:
                    order[hole], values[hole] = order[hole - 1], values[hole - 1]
                    hole -= 1
                order[hole], values[hole] = entry, value
        run = 32
        while run < end - first:  # and then merged, two and two
            for start in range(first, end, 2 * run):
                middle, stop = min(start + run, end), min(start + 2 * run, end)
                i, j = start, middle
                for place in range(start, stop):
                    if i < middle and (j >= stop or values[i] <= values[j]):
                        spare[place], spare_values[place] = order[i], values[i]
                        i += 1
                    else:
                        spare[place], spare_values[place] = order[j], values[j]
                        j += 1
            for place in range(first, end):
                order[place], values[place] = spare[place], spare_values[place]
            run *= 2
    return order


@compiled
def smallest_by_key(key_of: Offsets, values: Offsets, most: int, keys: int) -> tuple[Flags, Offsets]:
    """Mark up to ``most`` different smallest values of each key; entries are sorted by key, then value."""
    chosen = np.zeros(len(key_of), np.bool_)
    counts = np.zeros(keys, np.int64)
    for i in range(len(key_of)):
        key = key_of[i]
        again = i > 0 and key_of[i - 1] == key and values[i - 1] == values[i]
        if not again and counts[key] < most:
            chosen[i] = True
            counts[key] += 1
    return chosen, counts


@compiled
def merge_smallest(
    left: Offsets, left_ends: Offsets, right: Offsets, right_ends: Offsets, most: int
) -> tuple[Offsets, Offsets]:
    """Merge rows of sorted different values into their ``most`` smallest; gives the values and where rows end."""
    rows = len(left_ends) - 1
    out = np.empty(len(left) + len(right), np.int64)
    ends = np.zeros(rows + 1, np.int64)
    at = 0
    for row in range(rows):
        i, j = left_ends[row], right_ends[row]
        end_i, end_j = left_ends[row + 1], right_ends[row + 1]
        while at - ends[row] < most and (i < end_i or j < end_j):
            if j >= end_j or (i < end_i and left[i] < right[j]):
                out[at] = left[i]
                i += 1
            else:
                if i < end_i and left[i] == right[j]:
                    i += 1
                out[at] = right[j]
                j += 1
            at += 1
        ends[row + 1] = at
    return out[:at], ends


@compiled
def align(
    left_rows: Offsets, left_values: Offsets, right_rows: Offsets, right_values: Offsets
) -> tuple[Offsets, Offsets]:
    """Put two lists of (row, value), each sorted and without repeats, side by side.

    Gives the places in the left and in the right list of each pair that is in either, in order; -1 where it is not.
    """
    most = len(left_rows) + len(right_rows)
    in_left, in_right = np.empty(most, np.int64), np.empty(most, np.int64)
    i = j = at = 0
    while i < len(left_rows) or j < len(right_rows):
        if j >= len(right_rows):
            order = -1
        elif i >= len(left_rows):
            order = 1
        else:
            order = left_rows[i] - right_rows[j]
            if order == 0 and left_values[i] != right_values[j]:
                order = -1 if left_values[i] < right_values[j] else 1
        in_left[at] = i if order <= 0 else -1
        in_right[at] = j if order >= 0 else -1
        i += order <= 0
        j += order >= 0
        at += 1
    return in_left[:at], in_right[:at]


@compiled
def chain(row_of: Offsets, first: Offsets, last: Offsets, keys: int, gap: int) -> tuple[Offsets, Offsets, Offsets]:
    """Join intervals of a row, of rows 0 to ``keys - 1``, that are at most ``gap`` apart.

    Gives for each interval the number of its chain, and for each chain the place of its first interval, and its last;
    chains are in order of rows, then of time.
    """
    order = order_by_key(row_of, first, keys)
    chain_of = np.empty(len(row_of), np.int64)
    begins, ends = np.empty(len(row_of), np.int64), np.empty(len(row_of), np.int64)
    chains = 0
    for i in order:
        if chains == 0 or row_of[i] != row_of[begins[chains - 1]] or first[i] - gap > ends[chains - 1]:
            begins[chains], ends[chains] = i, last[i]
            chains += 1
        elif last[i] > ends[chains - 1]:
            ends[chains - 1] = last[i]
        chain_of[i] = chains - 1
    return chain_of, begins[:chains], ends[:chains]


@compiled
def count_up(key_of: Offsets, counts: Offsets) -> Offsets:
    """Give each entry the count of its key before it, and leave the counts after all in ``counts``."""
    places = np.empty(len(key_of), np.int64)
    for i in range(len(key_of)):
        places[i] = counts[key_of[i]]
        counts[key_of[i]] += 1
    return places


@compiled
def number_keys(hashes: Offsets, hashes2: Offsets, places: NDArray[np.int32], first: Offsets, key_of: Offsets) -> int:
    """Number keys in the order in which they first come; gives how many there are.

    ``places`` is an open-addressing map of a power of two, at most half full, filled with -1.
    """
    mask = np.uint64(len(places) - 1)
    found = 0
    for i in range(len(hashes)):
        # The low bits of the keys of one channel are alike: they chose the slot.
        place = (np.uint64(hashes2[i]) >> np.uint64(20)) & mask
        while True:
            key = places[place]
            if key < 0:
                places[place] = found
                first[found] = i
                key_of[i] = found
                found += 1
                break
            at = np.uint64(first[np.uint64(key)])  # without a sign: no look at each step whether to count from the end
            if hashes[at] == hashes[i] and hashes2[at] == hashes2[i]:
                key_of[i] = key
                break
            place = (place + np.uint64(1)) & mask
    return found
