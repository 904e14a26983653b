"""The compiled search for a leaf's best test on one feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]


@compiled
def sum_below(centres: Doubles, counts: Longs, exact: bool, minimum: float, maximum: float, at: float) -> float:
    """How many values of a histogram are estimated to be no greater than ``at`` (the paper's Sum).

    Bins of one value each are simply added up. Others lie half on each side of their centre, and between two centres
    the density changes evenly; the ends are closed by bins of no mass at the least and the greatest value.
    """
    below = 0.0
    if exact or at >= maximum or at < minimum:
        for i in range(len(centres)):
            if centres[i] <= at or at >= maximum:
                below += counts[i]
        return below
    left, left_mass = minimum, 0.0
    for i in range(len(centres) + 1):
        right = centres[i] if i < len(centres) else maximum
        right_mass = float(counts[i]) if i < len(centres) else 0.0
        if at < right:
            part = (at - left) / (right - left)
            density = left_mass + (right_mass - left_mass) * part
            return below + (left_mass + density) / 2 * part
        below += (left_mass + right_mass) / 2
        left, left_mass = right, right_mass
    return below


@compiled
def cut_points(centres: Doubles, masses: Doubles, minimum: float, maximum: float, most: int, out: Doubles) -> int:
    """Fill in thresholds to try for sorted bins of different centres; return how many.

    Half-way between neighbours if these are few enough, else points that cut the values into parts estimated to be of
    equal number (the paper's Uniform).
    """
    if len(centres) - 1 <= most:
        for i in range(len(centres) - 1):
            out[i] = centres[i] / 2 + centres[i + 1] / 2
        return len(centres) - 1
    total = masses.sum()
    left, left_mass, below = minimum, 0.0, 0.0
    i = 0
    found = 0
    while found < most and i <= len(centres):
        right = centres[i] if i < len(centres) else maximum
        right_mass = masses[i] if i < len(centres) else 0.0
        between = (left_mass + right_mass) / 2
        missing = (found + 1) * total / (most + 1) - below
        if missing < between:
            # The root of the paper's quadratic in the form that also serves where the density does not change.
            slope = left_mass + np.sqrt(max(left_mass**2 + 2 * (right_mass - left_mass) * missing, 0.0))
            part = min(2 * missing / slope, 1.0) if slope > 0 else 0.0
            out[found] = left * (1 - part) + right * part
            found += 1
        else:
            below += between
            left, left_mass = right, right_mass
            i += 1
    return found


@compiled
def impurity(counts: Doubles, entropy: bool) -> float:
    """Gini's index, or the entropy in bits, of class counts."""
    total = counts.sum()
    measure = 0.0 if entropy else 1.0
    for c in range(len(counts)):
        share = counts[c] / total
        if entropy and share > 0:
            measure -= share * np.log2(share)
        elif not entropy:
            measure -= share * share
    return measure


@compiled
def best_tests(
    histograms: Longs,
    class_of: Longs,
    minimum: Doubles,
    maximum: Doubles,
    exact: Flags,
    starts: Longs,
    centres: Doubles,
    counts: Longs,
    most: int,
    least_rows: float,
    entropy: bool,
    gains: Doubles,
    thresholds: Doubles,
    lefts: Doubles,
    totals: Doubles,
) -> None:
    """Find the threshold with the greatest gain for each key, whose histograms are ``histograms[k]`` to the next."""
    points = np.empty(most)
    below = np.empty(totals.shape[1])
    for k in range(len(gains)):
        first, last = histograms[k], histograms[k + 1]
        for h in range(first, last):
            totals[k, class_of[h]] = counts[starts[h] : starts[h + 1]].sum()
        rows = totals[k].sum()
        gains[k] = 0.0
        if rows < 2 * least_rows or rows == 0:
            continue
        order = np.argsort(centres[starts[first] : starts[last]])
        union = np.empty(len(order))
        masses = np.empty(len(order))
        size = 0
        for i in order:
            centre = centres[starts[first] + i]
            if size and union[size - 1] == centre:
                masses[size - 1] += counts[starts[first] + i]
            else:
                union[size] = centre
                masses[size] = counts[starts[first] + i]
                size += 1
        low, high = minimum[first:last].min(), maximum[first:last].max()
        tried = cut_points(union[:size], masses[:size], low, high, most, points)
        whole = impurity(totals[k], entropy)
        for p in range(tried):
            below[:] = 0
            for h in range(first, last):
                a, b = starts[h], starts[h + 1]
                below[class_of[h]] = sum_below(centres[a:b], counts[a:b], exact[h], minimum[h], maximum[h], points[p])
            under = below.sum()
            if under < least_rows or rows - under < least_rows:
                continue
            parts = under * impurity(below, entropy) + (rows - under) * impurity(totals[k] - below, entropy)
            gain = whole - parts / rows
            if gain > gains[k]:
                gains[k] = gain
                thresholds[k] = points[p]
                lefts[k] = below
