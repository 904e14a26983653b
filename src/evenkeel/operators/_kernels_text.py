"""Compiled loops over texts as sets of hashed terms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

Numbers = NDArray[np.int64]
Terms = NDArray[np.uint32]
Weights = NDArray[np.float32]

_FILTER = 4096  # slots of a small table that tells most terms that a text does not have


# Letters, digits, _, what marks topics, people and shares, and every byte of a letter outside ASCII.
_IN_TERMS = np.array([byte >= 128 or chr(byte).isalnum() or chr(byte) in "_#@$" for byte in range(256)])


@compiled
def hash_terms(data: NDArray[np.uint8], starts: Numbers, lengths: Numbers) -> NDArray[np.uint64]:
    """Split texts into terms and hash them (FNV-1a); gives for each term its text's number, times 2³², and the hash."""
    found = np.empty(lengths.sum() // 2 + len(starts), np.uint64)
    total = 0
    for i in range(len(starts)):
        inside = False
        code = np.uint32(0)
        for j in range(lengths[i] + 1):
            byte = data[starts[i] + j] if j < lengths[i] else np.uint8(32)
            if _IN_TERMS[byte]:
                code = code if inside else np.uint32(2166136261)
                code = np.uint32((code ^ np.uint32(byte)) * np.uint32(16777619))
                inside = True
            elif inside:
                found[total] = (np.uint64(i) << np.uint64(32)) | np.uint64(code)
                total += 1
                inside = False
    return found[:total]


@compiled
def best_cosines(offsets: Numbers, terms: Terms, weights: Weights, at: Numbers, bounds: Numbers) -> NDArray[np.float64]:
    """Give the greatest cosine of each text ``at[i]`` with those of its window; 0 for an empty window."""
    best = np.zeros(len(at), np.float64)
    slots = np.full(_FILTER, -1, np.int32)  # small enough for the processor's nearest cache
    for i in range(len(at)):
        first, last = offsets[at[i]], offsets[at[i] + 1]
        for j in range(first, last):
            slots[terms[j] % _FILTER] = j - first
        for other in range(bounds[0, i], bounds[1, i]):
            dot = 0.0
            for j in range(offsets[other], offsets[other + 1]):
                slot = slots[terms[j] % _FILTER]
                if slot >= 0:
                    at_slot = first + slot
                    if terms[at_slot] != terms[j]:  # another term; but this one may be there as well, and hidden
                        at_slot, high = first, last
                        while at_slot < high:
                            middle = (at_slot + high) // 2
                            if terms[middle] < terms[j]:
                                at_slot = middle + 1
                            else:
                                high = middle
                    if at_slot < last and terms[at_slot] == terms[j]:
                        dot += weights[at_slot] * weights[j]
            best[i] = max(best[i], dot)
        for j in range(first, last):
            slots[terms[j] % _FILTER] = -1
    return best


@compiled
def hyperplane_keys(offsets: Numbers, terms: Terms, weights: Weights, planes: int, seed: int) -> Numbers:
    """Tell for each text on which side of each random hyperplane it lies, one bit each.

    A hyperplane has a coordinate of 1 or -1 for every term: one bit of the term's hash, mixed with the seed.
    """
    keys = np.zeros(len(offsets) - 1, np.int64)
    sides = np.empty(planes, np.float64)
    for i in range(len(keys)):
        sides[:] = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            mixed = np.uint64(terms[j]) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
            for plane in range(planes):
                up = (mixed >> np.uint64(plane)) & np.uint64(1)
                sides[plane] += weights[j] if up else -weights[j]
        for plane in range(planes):
            if sides[plane] > 0:
                keys[i] |= 1 << plane
    return keys
