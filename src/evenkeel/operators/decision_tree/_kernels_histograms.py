"""Compiled loops over many streaming histograms at once.

Histograms lie one after the other: the bins of histogram ``h`` are ``centres[starts[h]:starts[h + 1]]``, rising, and
``counts`` beside them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled
from evenkeel.sketches._kernels import join_closest, observe_histogram

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]


@compiled
def observe_all(
    old_starts: Longs,
    old_centres: Doubles,
    old_counts: Longs,
    histogram_of: Longs,
    values: Doubles,
    bins: int,
    out_centres: Doubles,
    out_counts: Longs,
    sizes: Longs,
) -> int:
    """Add each value to its histogram, in the order of values; return how many bins there are in all."""
    histograms = len(sizes)
    starts = np.zeros(histograms + 1, np.int64)
    for i in range(len(values)):
        starts[histogram_of[i] + 1] += 1
    starts = np.cumsum(starts)
    cursor = starts[:-1].copy()
    ordered = np.empty(len(values))
    for i in range(len(values)):
        ordered[cursor[histogram_of[i]]] = values[i]
        cursor[histogram_of[i]] += 1
    ones = np.ones(len(values), np.int64)
    centres = np.empty(bins + 1)
    counts = np.empty(bins + 1, np.int64)
    used = 0
    for h in range(histograms):
        size = old_starts[h + 1] - old_starts[h]
        for i in range(size):
            centres[i] = old_centres[old_starts[h] + i]
            counts[i] = old_counts[old_starts[h] + i]
        low, high = starts[h], starts[h + 1]
        size = observe_histogram(centres, counts, size, bins, ordered[low:high], ones[low:high])
        for i in range(size):
            out_centres[used + i] = centres[i]
            out_counts[used + i] = counts[i]
        sizes[h] = size
        used += size
    return used


@compiled
def merge_all(
    left_starts: Longs,
    left_centres: Doubles,
    left_counts: Longs,
    right_starts: Longs,
    right_centres: Doubles,
    right_counts: Longs,
    bins: int,
    out_centres: Doubles,
    out_counts: Longs,
    sizes: Longs,
) -> int:
    """Merge histograms pairwise: all bins of both, the closest joined until few enough remain."""
    centres = np.empty(2 * bins)
    counts = np.empty(2 * bins, np.int64)
    used = 0
    for h in range(len(sizes)):
        i = left_starts[h]
        j = right_starts[h]
        size = 0
        while i < left_starts[h + 1] or j < right_starts[h + 1]:
            take_left = j == right_starts[h + 1] or (i < left_starts[h + 1] and left_centres[i] <= right_centres[j])
            centre = left_centres[i] if take_left else right_centres[j]
            count = left_counts[i] if take_left else right_counts[j]
            if size and centres[size - 1] == centre:
                counts[size - 1] += count
            else:
                centres[size] = centre
                counts[size] = count
                size += 1
            if take_left:
                i += 1
            else:
                j += 1
        while size > bins:
            join_closest(centres, counts, size)
            size -= 1
        for b in range(size):
            out_centres[used + b] = centres[b]
            out_counts[used + b] = counts[b]
        sizes[h] = size
        used += size
    return used
