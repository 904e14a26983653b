"""Compiled loops of the routing room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled, inlined
from evenkeel._kernels.leastloaded import arrange, least_loaded
from evenkeel._kernels.openmap import FREE, find, mix64
from evenkeel.sketches._kernels import SIZE, TOTAL, observe_one

Hashes = NDArray[np.int64]
Channels = NDArray[np.int32]

FEW_TUPLES = 10.0  # so few say nothing yet about how hot a key is
MERSENNE_61 = np.uint64((1 << 61) - 1)
BLOCK = 2048
FILTER_SHIFT = 24  # the filter looks at bits that neither the slot nor the map's first probe depends on


@inlined
def slot_of(key_hash: np.int64, slots: int, mask: int) -> int:
    """``pmod(hash, slots)``; ``mask`` is slots - 1 where that is a power of two, else 0."""
    return key_hash & mask if mask else key_hash % slots


@inlined
def may_be_listed(key_hash: np.int64, bits: NDArray[np.uint64]) -> bool:
    """Say no for most keys without an entry of their own, in one look at a small bitmap."""
    at = (key_hash >> FILTER_SHIFT) & (64 * len(bits) - 1)
    return (bits[at >> 6] >> np.uint64(at & 63)) & np.uint64(1) != 0


@compiled
def fill_filter(hashes: Hashes, bits: NDArray[np.uint64]) -> None:
    for i in range(len(hashes)):
        at = (hashes[i] >> FILTER_SHIFT) & (64 * len(bits) - 1)
        bits[at >> 6] |= np.uint64(1) << np.uint64(at & 63)


@compiled
def route_slots(hashes: Hashes, slot_channels: Channels, out: Channels) -> None:
    slots = len(slot_channels)
    mask = slots - 1 if slots & (slots - 1) == 0 else 0
    for i in range(len(hashes)):
        out[i] = slot_channels[slot_of(hashes[i], slots, mask)]


@compiled
def locate(
    hashes: Hashes,
    slots: int,
    bits: NDArray[np.uint64],
    map_keys: Hashes,
    map_values: Channels,
    out: NDArray[np.int64],
) -> None:
    """The entry that speaks for each key: its slot, or ``slots`` + its place among the listed keys."""
    mask = slots - 1 if slots & (slots - 1) == 0 else 0
    for i in range(len(hashes)):
        key_hash = hashes[i]
        out[i] = slot_of(key_hash, slots, mask)
        if may_be_listed(key_hash, bits):
            value = map_values[find(map_keys, map_values, key_hash)]
            if value != FREE:
                out[i] = slots + value


@compiled
def route_table(
    hashes: Hashes,
    slot_channels: Channels,
    bits: NDArray[np.uint64],
    map_keys: Hashes,
    map_values: Channels,
    listed_channels: Channels,
    pins: int,
    split_offsets: NDArray[np.int64],
    split_channels: Channels,
    turns: NDArray[np.int64],
    out: Channels,
) -> None:
    """Route by slot, pin or split; ``turns`` counts the tuples of each split key, which take turns.

    In blocks: a first loop without branches routes by slot and notes who may be listed; a second looks up just those.
    """
    slots = len(slot_channels)
    mask = slots - 1 if slots & (slots - 1) == 0 else 0
    noted = np.empty(BLOCK, np.int64)
    for start in range(0, len(hashes), BLOCK):
        count = 0
        for i in range(start, min(start + BLOCK, len(hashes))):
            out[i] = slot_channels[slot_of(hashes[i], slots, mask)]
            noted[count] = i
            count += may_be_listed(hashes[i], bits)
        for j in range(count):
            i = noted[j]
            value = map_values[find(map_keys, map_values, hashes[i])]
            if value != FREE:
                out[i] = listed_channels[value]
                if value >= pins:
                    split = value - pins
                    width = split_offsets[split + 1] - split_offsets[split]
                    out[i] = split_channels[split_offsets[split] + turns[split] % width]
                    turns[split] += 1


@compiled
def route_ring(
    positions: NDArray[np.uint64],
    points: NDArray[np.uint64],
    owners: Channels,
    starts: NDArray[np.int64],
    out: Channels,
) -> None:
    """The owner of the first point at or after each position, going round the end."""
    buckets = np.uint64(len(starts) - 1)
    for i in range(len(positions)):
        at = starts[((positions[i] >> np.uint64(32)) * buckets) >> np.uint64(32)]
        while at < len(points) and points[at] < positions[i]:
            at += 1
        out[i] = owners[at if at < len(points) else 0]


@inlined
def modulo_prime(value: np.uint64) -> np.uint64:
    """Modulo 2⁶¹ − 1: since 2⁶¹ is 1 there, what stands above bit 61 is added below."""
    value = (value & MERSENNE_61) + (value >> np.uint64(61))
    return value - MERSENNE_61 if value >= MERSENNE_61 else value


@compiled
def hash_universally(values: NDArray[np.uint64], a: np.uint64, b: np.uint64, channels: int, out: Channels) -> None:
    """``((a·x + b) mod p) mod N`` with p = 2⁶¹ − 1; the product is taken in 32-bit halves."""
    low32, low29 = np.uint64(0xFFFFFFFF), np.uint64(0x1FFFFFFF)
    a_high, a_low = a >> np.uint64(32), a & low32
    for i in range(len(values)):
        x = modulo_prime(values[i])
        x_high, x_low = x >> np.uint64(32), x & low32
        middle = a_high * x_low + a_low * x_high
        product = modulo_prime(
            (a_high * x_high << np.uint64(3))
            + (middle >> np.uint64(29))
            + ((middle & low29) << np.uint64(32))
            + modulo_prime(a_low * x_low)
        )
        out[i] = np.int32(modulo_prime(product + b) % np.uint64(channels))


@inlined
def choice(key_hash: np.int64, seed: np.uint64, channels: int) -> int:
    """One of the independent hash functions of a key: key hash → channel, without a division."""
    return np.int64((mix64(np.uint64(key_hash) + seed) >> np.uint64(32)) * np.uint64(channels) >> np.uint64(32))


@inlined
def best_choice(key_hash: np.int64, seeds: NDArray[np.uint64], choices: int, loads: NDArray[np.int64]) -> int:
    """The least loaded of a key's first ``choices`` channels; the earlier choice wins a tie."""
    best = choice(key_hash, seeds[0], len(loads))
    for j in range(1, choices):
        other = choice(key_hash, seeds[j], len(loads))
        if loads[other] < loads[best]:
            best = other
    return best


@compiled
def all_choices(hashes: Hashes, seeds: NDArray[np.uint64], channels: int, out: NDArray[np.int32]) -> None:
    """Every candidate of every key, one row per key."""
    for i in range(len(hashes)):
        for j in range(len(seeds)):
            out[i, j] = choice(hashes[i], seeds[j], channels)


@compiled
def route_round_robin(sources: NDArray[np.int64], turns: NDArray[np.int64], channels: int, out: Channels) -> None:
    for i in range(len(out)):
        source = sources[i] if len(sources) else 0
        out[i] = turns[source]
        turns[source] = turns[source] + 1 if turns[source] + 1 < channels else 0


@compiled
def route_partial_keys(
    hashes: Hashes,
    sources: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    estimates: NDArray[np.int64],
    loads: NDArray[np.int64],
    probe_every: int,
    since_probe: NDArray[np.int64],
    out: Channels,
) -> None:
    """Greedy-d; ``estimates[s]`` is what source s believes of the loads, ``probe_every`` 0 means never."""
    for i in range(len(hashes)):
        source = sources[i] if len(sources) else 0
        channel = best_choice(hashes[i], seeds, len(seeds), estimates[source])
        estimates[source, channel] += 1
        loads[channel] += 1
        out[i] = channel
        if probe_every:
            since_probe[0] += 1
            if since_probe[0] == probe_every:
                since_probe[0] = 0
                for s in range(len(estimates)):
                    estimates[s] = loads


@compiled
def route_sticky(
    hashes: Hashes,
    start: int,
    seeds: NDArray[np.uint64],
    order: Channels,
    known: NDArray[np.int64],
    loads: NDArray[np.int64],
    map_keys: Hashes,
    map_values: Channels,
    held: NDArray[np.int64],
    out: Channels,
) -> int:
    """Decide once per key, from tuple ``start`` on; returns early when the map of choices is half full.

    A new key goes to the best of its candidates, one for each of ``seeds``; without seeds, to the least loaded channel
    of all, by the heap ``order`` and ``known``.
    """
    for i in range(start, len(hashes)):
        at = find(map_keys, map_values, hashes[i])
        if map_values[at] == FREE:
            if 2 * held[0] >= len(map_keys):
                return i
            map_keys[at] = hashes[i]
            if len(seeds):
                map_values[at] = best_choice(hashes[i], seeds, len(seeds), loads)
            else:
                map_values[at] = least_loaded(order, known, loads)
            held[0] += 1
        out[i] = map_values[at]
        loads[out[i]] += 1
    return len(hashes)


@compiled
def deal_by_weight(weights: NDArray[np.int64], loads: NDArray[np.int64], out: Channels) -> None:
    """Give each item, in the order given, to the channel that is least loaded by then; ``loads`` grows."""
    order = np.arange(len(loads)).astype(np.int32)
    known = loads.copy()
    arrange(order, known)
    for i in range(len(weights)):
        out[i] = least_loaded(order, known, loads)
        loads[out[i]] += weights[i]


@compiled
def enough_choices(shares: NDArray[np.float64], channels: int, tolerance: float) -> int:
    """The least d with which no prefix of the head overloads the channels it can reach.

    ``shares`` are the head's shares of all tuples, descending. h keys with d choices each reach
    b_h = N − N((N − 1)/N)^{hd} channels. These take the h keys, the rest of the head as far as all its choices fall
    there, and the tail likewise with its two choices: that may not exceed b_h (1/N + tolerance). N where no d < N is
    enough.
    """
    head = shares.sum()
    for d in range(max(2, int(np.ceil(shares[0] * channels))), channels):
        within = 0.0
        enough = True
        for h in range(len(shares)):
            within += shares[h]
            reached = 1.0 - ((channels - 1) / channels) ** ((h + 1) * d)
            load = within + reached**d * (head - within) + reached**2 * (1.0 - head)
            if load > reached * channels * (1.0 / channels + tolerance):
                enough = False
                break
        if enough:
            return d
    return channels


@compiled
def route_head_apart(
    hashes: Hashes,
    sources: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    estimates: NDArray[np.int64],
    order: Channels,
    known: NDArray[np.int64],
    sketch: tuple[NDArray[Any], ...],
    threshold: float,
    choices: NDArray[np.int64],
    refresh_every: int,
    tolerance: float,
    out: Channels,
) -> None:
    """Partial key grouping whose hot keys have ``choices[source]`` candidates, or all channels if that many.

    ``sketch`` is one space-saving summary per source: the arrays of ``sketches._kernels`` with a source's row first.
    With ``refresh_every`` 0 the numbers of choices stay as they are.
    """
    map_keys, map_slots, keys, counts, errors, heap, positions, state = sketch
    channels = estimates.shape[1]
    for i in range(len(hashes)):
        s = sources[i] if len(sources) else 0
        count = observe_one(
            map_keys[s], map_slots[s], keys[s], counts[s], errors[s], heap[s], positions[s], state[s], hashes[i], 1
        )
        total = state[s, TOTAL]
        least_count = max(threshold * total, FEW_TUPLES)
        if count <= least_count:
            channel = best_choice(hashes[i], seeds, 2, estimates[s])
        elif choices[s] < channels:
            channel = best_choice(hashes[i], seeds, choices[s], estimates[s])
        else:
            channel = least_loaded(order[s], known[s], estimates[s])
        estimates[s, channel] += 1
        out[i] = channel
        if refresh_every and total % refresh_every == 0:
            held = counts[s, : state[s, SIZE]]
            head = np.sort(held[held > least_count].astype(np.float64))[::-1] / total
            if len(head):
                choices[s] = enough_choices(head, channels, tolerance)
