"""Compiled look-ups and walks in the pages of an LMDB file, whose keys are all 20 bytes long.

A page begins with a header of 16 bytes; the 16-bit offsets of its nodes follow, in the order of their keys. A node has
a header of 8 bytes, its key, and in a leaf its value, unless that is large: then the number of the first of its own
pages. A branch's node has the number of a page below, and the first one's key counts as the lowest of all. All but
values are whole pairs of bytes at even places, and read as such; places are counted in pairs, too, but those of values
in bytes.

What a damaged file says is not trusted: every offset is checked before it is used, and a walk that leaves the file
gives :data:`BROKEN`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled
from evenkeel._kernels.copying import copy

Bytes = NDArray[np.uint8]
Pairs = NDArray[np.uint16]
Ints = NDArray[np.int64]

BROKEN = -2
_KEY = 10
_KEY_BYTES = 20
_PAGE_HEADER, _NODE_HEADER = 8, 4
_FLAGS, _LOWER = 5, 6
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG = 1
_DEEPEST = 32
_NEAR = 4


@compiled
def compare(left: Pairs, at: int, right: Pairs, there: int) -> int:
    """Below 0, 0 or above 0 as one key is before, the same as or after another, byte by byte."""
    first, second = np.uint64(at), np.uint64(there)
    for step in range(np.uint64(_KEY)):
        mine, other = np.int64(left[first + step]), np.int64(right[second + step])
        if mine != other:
            return ((mine & 255) << 8 | mine >> 8) - ((other & 255) << 8 | other >> 8)
    return 0


@compiled
def nodes_of(file: Pairs, page: int, pairs: int, kind: int) -> int:
    """How many nodes a page has; BROKEN where there is no such page of this kind."""
    if page < 0 or page + pairs > len(file) or not file[page + _FLAGS] & kind:
        return BROKEN
    lower = np.int64(file[page + _LOWER]) >> 1
    if lower < _PAGE_HEADER or lower > pairs:
        return BROKEN
    return lower - _PAGE_HEADER


@compiled
def node_at(file: Pairs, page: int, pairs: int, place: int) -> int:
    """Where a node with a key begins; BROKEN where it is not within the page."""
    offset = np.int64(file[page + _PAGE_HEADER + place]) >> 1
    if offset < _PAGE_HEADER or offset + _NODE_HEADER + _KEY > pairs or file[page + offset + 3] != _KEY_BYTES:
        return BROKEN
    return page + offset


@compiled
def page_below(file: Pairs, page: int, pairs: int, place: int) -> int:
    """Where the page begins that a branch's node names; BROKEN where the node is not within its page."""
    offset = np.int64(file[page + _PAGE_HEADER + place]) >> 1
    if offset < _PAGE_HEADER or offset + _NODE_HEADER > pairs:
        return BROKEN
    node = page + offset
    number = np.int64(file[node]) | np.int64(file[node + 1]) << 16 | np.int64(file[node + 2]) << 32
    return number * pairs


@compiled
def first_from(file: Pairs, page: int, pairs: int, low: int, high: int, key: Pairs, at: int, equal: int) -> int:
    """The first place from ``low`` on whose key is not before a key; with ``equal`` 1 the first that is after it."""
    while low < high:
        middle = (low + high) >> 1
        node = node_at(file, page, pairs, middle)
        if node < 0:
            return BROKEN
        if compare(file, node + _NODE_HEADER, key, at) < equal:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def descend(file: Pairs, pairs: int, root: int, key: Pairs, at: int, pages: Ints, places: Ints) -> int:
    """Note the way from the root to the leaf where a key is or would be; give how many levels there are."""
    page = root
    for level in range(_DEEPEST):
        nodes = nodes_of(file, page, pairs, _BRANCH | _LEAF)
        if nodes < 0:
            return BROKEN
        pages[level] = page
        if file[page + _FLAGS] & _LEAF:
            places[level] = first_from(file, page, pairs, 0, nodes, key, at, 0)
            return BROKEN if places[level] < 0 else level + 1
        places[level] = first_from(file, page, pairs, 1, nodes, key, at, 1) - 1
        if places[level] < 0 or nodes == 0:
            return BROKEN
        page = page_below(file, page, pairs, places[level])
    return BROKEN


@compiled
def value_of(file: Pairs, page: int, pairs: int, node: int) -> tuple[int, int]:
    """Where a node's value begins, in bytes, and its length; BROKEN where it is not within the file."""
    length = np.int64(file[node]) | np.int64(file[node + 1]) << 16
    start = node + _NODE_HEADER + _KEY
    if not file[node + 2] & _BIG:
        return (2 * start, length) if 2 * start + length <= 2 * (page + pairs) else (BROKEN, BROKEN)
    if start + 4 > page + pairs or file[start + 3]:
        return BROKEN, BROKEN
    number = np.int64(file[start]) | np.int64(file[start + 1]) << 16 | np.int64(file[start + 2]) << 32
    large = number * pairs
    if large + _PAGE_HEADER + (length + 1) // 2 > len(file) or not file[large + _FLAGS] & _OVERFLOW:
        return BROKEN, BROKEN
    return 2 * (large + _PAGE_HEADER), length


@compiled
def find(  # noqa: PLR0911 - what is damaged is told at once
    file: Pairs, pairs: int, root: int, keys: Pairs, starts: Ints, lengths: Ints
) -> int:
    """Find keys, which lie one behind another; sets where their values begin, and lengths, -1 where there is none.

    Where keys ascend, most are a few nodes after the one before. Gives how many there are, or BROKEN.
    """
    pages, places = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    leaf, nodes, place, last, found = np.int64(0), np.int64(0), np.int64(0), np.int64(-1), 0
    for wanted in range(len(lengths)):
        at = wanted * _KEY
        if last >= 0 and compare(keys, at - _KEY, keys, at) <= 0 and compare(file, last + _NODE_HEADER, keys, at) >= 0:
            near = min(place + _NEAR, nodes - 1)
            node = node_at(file, leaf, pairs, near)
            if node < 0:
                return BROKEN
            if compare(file, node + _NODE_HEADER, keys, at) < 0:
                place = first_from(file, leaf, pairs, near + 1, nodes, keys, at, 0)
            else:
                place = first_from(file, leaf, pairs, place, near, keys, at, 0)
            if place < 0:
                return BROKEN
        else:
            levels = descend(file, pairs, root, keys, at, pages, places)
            if levels < 0:
                return BROKEN
            leaf, place = pages[levels - 1], places[levels - 1]
            nodes = nodes_of(file, leaf, pairs, _LEAF)
            last = node_at(file, leaf, pairs, nodes - 1) if nodes else -1
            if last == BROKEN:
                return BROKEN
        starts[wanted], lengths[wanted] = 0, -1
        if place < nodes:
            node = node_at(file, leaf, pairs, place)
            if node < 0:
                return BROKEN
            if compare(file, node + _NODE_HEADER, keys, at) == 0:
                starts[wanted], lengths[wanted] = value_of(file, leaf, pairs, node)
                if lengths[wanted] < 0:
                    return BROKEN
                found += 1
    return found


@compiled
def walk(  # noqa: PLR0911 - what is damaged is told at once
    file: Pairs,
    data: Bytes,
    pairs: int,
    root: int,
    lows: Pairs,
    highs: Pairs,
    passed_over: Pairs,
    state: Ints,
    keys: Pairs,
    ends: NDArray[np.int32],
    values: Bytes,
) -> int:
    """Copy what lies in ranges of keys, from each low to its high, one behind another: keys and values in one go.

    What is passed over are keys that ascend, as the ranges do. ``ends`` has where each value begins, and where the last
    ends. ``state`` is the range to go on with, where its last key begins, or -1, the key to pass over next, and how
    much room the next value needs. It ends where there is no more room, or all ranges are done. Gives how many there
    are, or BROKEN.
    """
    pages, places = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    count, size, passing, others = 0, 0, state[2], len(passed_over) // _KEY
    ends[0] = 0
    while state[0] < len(lows) // _KEY:
        top = state[0] * _KEY
        if state[1] < 0:
            levels = descend(file, pairs, root, lows, top, pages, places)
        else:
            levels = descend(file, pairs, root, file, state[1], pages, places)
        if levels < 0:
            return BROKEN
        place = places[levels - 1] + (1 if state[1] >= 0 else 0)
        more = True
        while more:
            leaf = pages[levels - 1]
            nodes = nodes_of(file, leaf, pairs, _LEAF)
            if nodes < 0:
                return BROKEN
            end = nodes
            if nodes:
                last = node_at(file, leaf, pairs, nodes - 1)
                if last < 0:
                    return BROKEN
                if compare(file, last + _NODE_HEADER, highs, top) > 0:
                    end = first_from(file, leaf, pairs, 0, nodes, highs, top, 1)
                    more = False
            while place < end:
                node = node_at(file, leaf, pairs, place)
                if node < 0:
                    return BROKEN
                order = 1
                while passing < others:
                    order = compare(passed_over, passing * _KEY, file, node + _NODE_HEADER)
                    if order >= 0:
                        break
                    passing += 1
                if order != 0:
                    start, length = value_of(file, leaf, pairs, node)
                    if length < 0:
                        return BROKEN
                    if count + 1 == len(ends) or size + length > len(values):
                        state[2], state[3] = passing, length
                        return count
                    copy(file, node + _NODE_HEADER, keys, count * _KEY, _KEY)
                    copy(data, start, values, size, length)
                    count, size = count + 1, size + length
                    ends[count] = size
                state[1] = node + _NODE_HEADER
                place += 1
            if more:
                place = 0
                more = next_leaf(file, pairs, pages, places, levels)
        state[0], state[1] = state[0] + 1, -1
    return count


@compiled
def next_leaf(file: Pairs, pairs: int, pages: Ints, places: Ints, levels: int) -> bool:
    """Go to the leaf after this one; no if there is none. What is below a damaged page is a page that is none."""
    level = levels - 2
    while level >= 0 and places[level] + 1 >= nodes_of(file, pages[level], pairs, _BRANCH):
        level -= 1
    if level < 0:
        return False
    places[level] += 1
    while level < levels - 1:
        known = nodes_of(file, pages[level], pairs, _BRANCH) > places[level]
        below = page_below(file, pages[level], pairs, places[level]) if known else BROKEN
        level += 1
        pages[level], places[level] = below, 0
    return True


@compiled
def gather(file: Bytes, starts: Ints, lengths: Ints, ends: NDArray[np.int32], out: Bytes) -> None:
    """Copy values one behind another; ``ends`` has where each begins, and where the last ends."""
    for place in range(len(lengths)):
        copy(file, starts[place], out, np.int64(ends[place]), lengths[place])
