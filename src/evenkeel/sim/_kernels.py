"""Compiled loops of the simulator."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled, inlined
from evenkeel._kernels.openmap import FREE, mix64

Ints = NDArray[np.int64]
Channels = NDArray[np.int32]

STEP = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64's stride between two states
UNIT = 1.0 / (1 << 53)
MANY = 2048  # above this, half of a count is drawn by NumPy instead of bit by bit


@inlined
def uniform(state: np.uint64) -> float:
    """A number in [0, 1) with 53 random bits."""
    return np.float64(mix64(state) >> np.uint64(11)) * UNIT


@compiled
def shuffle(values: Channels, seed: np.uint64) -> None:
    """Fisher and Yates, in place; 53 bits per draw, so no order is favoured by more than one part in 2³⁰."""
    state = seed
    for i in range(len(values) - 1, 0, -1):
        state += STEP
        j = np.int64(uniform(state) * (i + 1))
        values[i], values[j] = values[j], values[i]


@inlined
def bits_set(word: np.uint64) -> int:
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def halve(counts: Ints, seed: np.uint64, out: Ints) -> None:
    """Toss a coin for each of a row's tuples: ``out`` is how many fell heads. Rows above ``MANY`` are left alone."""
    state = seed
    for i in range(len(counts)):
        left = counts[i]
        if left > MANY:
            continue
        heads = 0
        while left > 0:
            state += STEP
            word = mix64(state)
            if left < 64:
                word &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
            heads += bits_set(word)
            left -= 64
        out[i] = heads


@inlined
def _expm1_over(x: float) -> float:
    return math.expm1(x) / x if abs(x) > 1e-8 else 1.0 + x * 0.5 * (1.0 + x / 3.0 * (1.0 + 0.25 * x))


@inlined
def _log1p_over(x: float) -> float:
    return math.log1p(x) / x if abs(x) > 1e-8 else 1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x))


@inlined
def _area(x: float, exponent: float) -> float:
    """The integral of x^-exponent, up to a constant."""
    log = math.log(x)
    return _expm1_over((1.0 - exponent) * log) * log


@inlined
def _area_inverse(area: float, exponent: float) -> float:
    return math.exp(_log1p_over(max(area * (1.0 - exponent), -1.0)) * area)


@compiled
def draw_zipf(keys: int, exponent: float, seed: np.uint64, out: Ints) -> None:
    """Ranks from 0 with P(rank k) ∝ 1/(k + 1)^exponent, by rejection-inversion (Hörmann and Derflinger, 1996).

    No table, so any number of keys; about 1.1 tries per rank.
    """
    state = seed
    first = _area(1.5, exponent) - 1.0
    last = _area(keys + 0.5, exponent)
    near = 2.0 - _area_inverse(_area(2.5, exponent) - 2.0**-exponent, exponent)
    for i in range(len(out)):
        while True:
            state += STEP
            area = last + uniform(state) * (first - last)
            x = _area_inverse(area, exponent)
            rank = min(max(np.int64(x + 0.5), 1), keys)
            if rank - x <= near or area >= _area(rank + 0.5, exponent) - math.exp(-exponent * math.log(rank)):
                out[i] = rank - 1
                break


@compiled
def draw_weighted(edges: NDArray[np.float64], starts: Ints, seed: np.uint64, out: Ints) -> None:
    """Ids by inverse distribution function; ``starts`` says for each bucket of [0, 1) where to begin looking."""
    state = seed
    buckets = len(starts)
    for i in range(len(out)):
        state += STEP
        u = uniform(state)
        at = starts[np.int64(u * buckets)]
        while at < len(edges) - 1 and edges[at] <= u:
            at += 1
        out[i] = at


@compiled
def merge(hashes: Ints, values: Ints, more: Ints, plus: Ints, sign: int, out: Ints, sums: Ints) -> int:
    """Add ``plus`` times ``sign`` to ``values``, both by ascending hash; returns how many rows are not zero."""
    i, j, n = 0, 0, 0
    while i < len(hashes) or j < len(more):
        if j == len(more) or (i < len(hashes) and hashes[i] < more[j]):
            key, value = hashes[i], values[i]
            i += 1
        elif i == len(hashes) or more[j] < hashes[i]:
            key, value = more[j], sign * plus[j]
            j += 1
        else:
            key, value = hashes[i], values[i] + sign * plus[j]
            i += 1
            j += 1
        if value != 0:
            out[n] = key
            sums[n] = value
            n += 1
    return n


@inlined
def _pair_place(key_hash: np.int64, channel: int, mask: int) -> int:
    return np.int64(mix64(np.uint64(key_hash) + np.uint64(channel) * STEP) >> np.uint64(20)) & mask


@compiled
def note_pairs(hashes: Ints, channels: Channels, start: int, map_keys: Ints, map_channels: Channels, held: Ints) -> int:
    """Remember every (key, channel) from tuple ``start`` on; returns early when the map is half full."""
    mask = len(map_keys) - 1
    for i in range(start, len(hashes)):
        at = _pair_place(hashes[i], channels[i], mask)
        while map_channels[at] != FREE and (map_keys[at] != hashes[i] or map_channels[at] != channels[i]):
            at = (at + 1) & mask
        if map_channels[at] == FREE:
            if 2 * held[0] >= len(map_keys):
                return i
            map_keys[at] = hashes[i]
            map_channels[at] = channels[i]
            held[0] += 1
    return len(hashes)


@compiled
def add_loads(channels: Channels, loads: Ints) -> None:
    for i in range(len(channels)):
        loads[channels[i]] += 1


@compiled
def swaps_needed(
    firsts: Ints,
    seconds: Ints,
    shares: NDArray[np.float64],
    homes: Channels,
    channels: int,
    limit: float,
    swapped: NDArray[np.bool_],
) -> None:
    """Mark pairs on different channels to swap, in order, until some channel's load has changed by ``limit``."""
    change = np.zeros(channels)
    for i in range(len(firsts)):
        one, other = homes[firsts[i]], homes[seconds[i]]
        if one == other:
            continue
        gain = shares[seconds[i]] - shares[firsts[i]]
        change[one] += gain
        change[other] -= gain
        swapped[i] = True
        if abs(change[one]) >= limit or abs(change[other]) >= limit:
            return
