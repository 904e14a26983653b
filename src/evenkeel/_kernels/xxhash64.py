"""XXH64 as Spark computes it, over whole columns.

Every function folds one column into ``hashes`` in place: on entry ``hashes[i]`` is the seed of row ``i``, on
exit its hash. A null leaves the seed as it was, which is how Spark chains the columns of a composite key.
``validity`` is Arrow's bitmap, empty where nothing is null; ``offset`` is its first bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled, inlined

P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)

Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]


@inlined
def rotate_left(value: np.uint64, bits: int) -> np.uint64:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@inlined
def avalanche(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> np.uint64(33))) * P2
    value = (value ^ (value >> np.uint64(29))) * P3
    return value ^ (value >> np.uint64(32))


@inlined
def is_valid(validity: Bytes, position: int) -> bool:
    return len(validity) == 0 or (validity[position >> 3] >> (position & 7)) & 1 == 1


@inlined
def hash_long(value: np.uint64, seed: np.uint64) -> np.uint64:
    state = seed + P5 + np.uint64(8)
    state ^= rotate_left(value * P2, 31) * P1
    return avalanche(rotate_left(state, 27) * P1 + P4)


@inlined
def hash_int(value: np.uint64, seed: np.uint64) -> np.uint64:
    state = seed + P5 + np.uint64(4)
    state ^= (value & np.uint64(0xFFFFFFFF)) * P1
    return avalanche(rotate_left(state, 23) * P2 + P3)


@inlined
def word64(data: Bytes, at: int) -> np.uint64:
    """The eight bytes from ``at``, counted without a sign: so the compiler sees that they are one load."""
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(data[np.uint64(at + i)]) << np.uint64(8 * i)
    return word


@inlined
def word32(data: Bytes, at: int) -> np.uint64:
    word = np.uint64(0)
    for i in range(4):
        word |= np.uint64(data[np.uint64(at + i)]) << np.uint64(8 * i)
    return word


@inlined
def mix_round(state: np.uint64, word: np.uint64) -> np.uint64:
    return rotate_left(state + word * P2, 31) * P1


@inlined
def merge_round(state: np.uint64, lane: np.uint64) -> np.uint64:
    return (state ^ rotate_left(lane * P2, 31) * P1) * P1 + P4


@compiled
def hash_bytes(data: Bytes, at: int, length: int, seed: np.uint64) -> np.uint64:
    """XXH64 of ``data[at : at + length]``."""
    end = at + length
    if length >= 32:
        lane1 = seed + P1 + P2
        lane2 = seed + P2
        lane3 = seed
        lane4 = seed - P1
        while at <= end - 32:
            lane1 = mix_round(lane1, word64(data, at))
            lane2 = mix_round(lane2, word64(data, at + 8))
            lane3 = mix_round(lane3, word64(data, at + 16))
            lane4 = mix_round(lane4, word64(data, at + 24))
            at += 32
        state = rotate_left(lane1, 1) + rotate_left(lane2, 7) + rotate_left(lane3, 12) + rotate_left(lane4, 18)
        state = merge_round(state, lane1)
        state = merge_round(state, lane2)
        state = merge_round(state, lane3)
        state = merge_round(state, lane4)
    else:
        state = seed + P5
    state += np.uint64(length)
    while at <= end - 8:
        state ^= rotate_left(word64(data, at) * P2, 31) * P1
        state = rotate_left(state, 27) * P1 + P4
        at += 8
    if at <= end - 4:
        state ^= word32(data, at) * P1
        state = rotate_left(state, 23) * P2 + P3
        at += 4
    while at < end:
        state ^= np.uint64(data[np.uint64(at)]) * P5
        state = rotate_left(state, 11) * P1
        at += 1
    return avalanche(state)


@compiled
def hash_few_bytes_twice(
    data: Bytes, at: int, length: int, seed: np.uint64, seed2: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """XXH64 of less than 32 bytes from two seeds: what takes time is to look how many are left, which is done once."""
    end = at + length
    state, state2 = seed + P5 + np.uint64(length), seed2 + P5 + np.uint64(length)
    while at <= end - 8:
        lane = rotate_left(word64(data, at) * P2, 31) * P1
        state, state2 = state ^ lane, state2 ^ lane
        state, state2 = rotate_left(state, 27) * P1 + P4, rotate_left(state2, 27) * P1 + P4
        at += 8
    if at <= end - 4:
        lane = word32(data, at) * P1
        state, state2 = state ^ lane, state2 ^ lane
        state, state2 = rotate_left(state, 23) * P2 + P3, rotate_left(state2, 23) * P2 + P3
        at += 4
    while at < end:
        lane = np.uint64(data[np.uint64(at)]) * P5
        state, state2 = state ^ lane, state2 ^ lane
        state, state2 = rotate_left(state, 11) * P1, rotate_left(state2, 11) * P1
        at += 1
    return avalanche(state), avalanche(state2)


@compiled
def fold_longs(values: NDArray[np.int64], validity: Bytes, offset: int, hashes: Hashes) -> None:
    for i in range(len(values)):
        if is_valid(validity, offset + i):
            hashes[i] = hash_long(np.uint64(values[i]), hashes[i])


@compiled
def fold_ints(values: NDArray[np.int32], validity: Bytes, offset: int, hashes: Hashes) -> None:
    for i in range(len(values)):
        if is_valid(validity, offset + i):
            hashes[i] = hash_int(np.uint64(np.int64(values[i])), hashes[i])


@compiled
def fold_strings(data: Bytes, ends: NDArray[np.int64], validity: Bytes, offset: int, hashes: Hashes) -> None:
    """Row ``i`` is ``data[ends[i] : ends[i + 1]]``; ``ends`` may be Arrow's 32- or 64-bit offsets."""
    for i in range(len(hashes)):
        if is_valid(validity, offset + i):
            at = np.int64(ends[i])
            hashes[i] = hash_bytes(data, at, np.int64(ends[i + 1]) - at, hashes[i])


@compiled
def fold_strings_twice(
    data: Bytes, ends: NDArray[np.int64], validity: Bytes, offset: int, hashes: Hashes, hashes2: Hashes
) -> None:
    """As :func:`fold_strings`, into two columns of hashes."""
    for i in range(len(hashes)):
        if is_valid(validity, offset + i):
            at = np.int64(ends[i])
            length = np.int64(ends[i + 1]) - at
            if length < 32:
                hashes[i], hashes2[i] = hash_few_bytes_twice(data, at, length, hashes[i], hashes2[i])
            else:
                hashes[i] = hash_bytes(data, at, length, hashes[i])
                hashes2[i] = hash_bytes(data, at, length, hashes2[i])


@compiled
def fold_wide_decimals(words: NDArray[np.int64], validity: Bytes, offset: int, hashes: Hashes) -> None:
    """Decimals of more than 18 digits: Java's ``BigInteger.toByteArray``, big-endian and as short as it can be.

    ``words`` has one row per value: the low and the high half of Arrow's 128-bit integer.
    """
    scratch = np.empty(16, np.uint8)
    for i in range(len(hashes)):
        if not is_valid(validity, offset + i):
            continue
        for byte in range(8):
            scratch[15 - byte] = (words[i, 0] >> (8 * byte)) & 0xFF
            scratch[7 - byte] = (words[i, 1] >> (8 * byte)) & 0xFF
        filler = 0xFF if words[i, 1] < 0 else 0x00
        start = 0
        # A leading byte that only repeats the sign bit of the next one carries nothing.
        while start < 15 and scratch[start] == filler and (scratch[start + 1] ^ filler) & 0x80 == 0:
            start += 1
        hashes[i] = hash_bytes(scratch, start, 16 - start, hashes[i])
