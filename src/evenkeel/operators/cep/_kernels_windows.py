"""Compiled loops over windows of events."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

Numbers = NDArray[np.int64]
SUM, LEAST, GREATEST, SPREAD = 0, 1, 2, 3


@compiled
def range_bounds(times: Numbers, starts: Numbers, run_of: Numbers, at: Numbers, start: int, end: int) -> Numbers:
    """Find for each event ``at`` of ``run_of`` the events from ``start`` to ``end`` before it in time: 2 × events.

    Times ascend within each run, and so do the events.
    """
    found = np.empty((2, len(at)), np.int64)
    low = high = 0
    for i in range(len(at)):
        if i == 0 or run_of[i] != run_of[i - 1]:
            low = high = starts[run_of[i]]
        now = times[at[i]]
        while times[low] < now - start:
            low += 1
        high = max(high, low)
        while high <= at[i] and times[high] <= now - end:
            high += 1
        found[0, i], found[1, i] = low, high
    return found


@compiled
def count_since(times: Numbers, starts: Numbers, since: Numbers) -> Numbers:
    """Count the events of each run that are at ``since[run]`` or after it; times ascend within each run."""
    counts = np.zeros(len(since), np.int64)
    for run in range(len(since)):
        while counts[run] < starts[run + 1] - starts[run] and times[starts[run + 1] - 1 - counts[run]] >= since[run]:
            counts[run] += 1
    return counts


@compiled
def _merge(nodes: NDArray[Any], to: int, a: int, b: int, how: int) -> None:
    """Set row ``to`` to the merge of rows a and b; the order of the two is kept."""
    if how == SUM:
        nodes[to, 0] = nodes[a, 0] + nodes[b, 0]
    elif how == SPREAD:
        # Counts, means and sums of squared deviations of two parts.
        n, m = nodes[a, 0], nodes[b, 0]
        if n == 0 or m == 0:
            some = b if n == 0 else a
            for column in range(3):
                nodes[to, column] = nodes[some, column]
        else:
            mean, apart = nodes[a, 1], nodes[b, 1] - nodes[a, 1]
            nodes[to, 2] = nodes[a, 2] + nodes[b, 2] + apart * apart * n * m / (n + m)
            nodes[to, 1] = mean + apart * m / (n + m)
            nodes[to, 0] = n + m
    else:
        x, y = nodes[a, 0], nodes[b, 0]
        x_is_less = x < y or (y != y and x == x)  # noqa: PLR0124 - NaN is greater than all other numbers
        nodes[to, 0] = x if x_is_less == (how == LEAST) else y


@compiled
def fold_windows(
    values: NDArray[Any],
    nothing: NDArray[Any],
    how: int,
    starts: Numbers,
    firsts: Numbers,
    run_of: Numbers,
    bounds: Numbers,
) -> NDArray[Any]:
    """Fold the rows ``values[bounds[0, i]:bounds[1, i]]`` for each i, in O(log of the window) each.

    Events lie run after run (``starts``); ``firsts`` are the numbers of the runs' first ones here. Blocks of 2ʲ events
    are folded once, and begin at multiples of 2ʲ: so what comes out, to the last bit, depends on the events in the
    window and their numbers alone, not on how the stream was cut into batches. No value is ever subtracted again, so
    nothing is lost to a large number, or to a NaN, that has left the window.
    """
    width = values.shape[1]
    out = np.empty((len(run_of), width), values.dtype)
    i = 0
    while i < len(run_of):
        run = run_of[i]
        begin, size, first = starts[run], starts[run + 1] - starts[run], firsts[run]
        until, widest = i, 0
        while until < len(run_of) and run_of[until] == run:
            widest = max(widest, bounds[1, until] - bounds[0, until])
            until += 1
        levels = 1
        while (1 << levels) <= widest:
            levels += 1
        level_starts = np.zeros(levels + 1, np.int64)
        for j in range(levels):
            level_starts[j + 1] = level_starts[j] + ((first + size - 1) >> j) - (first >> j) + 1
        # The blocks, level after level, and three more rows: what was folded on either side, and the fold of nothing.
        left_fold, right_fold, none = level_starts[levels], level_starts[levels] + 1, level_starts[levels] + 2
        nodes = np.empty((level_starts[levels] + 3, width), values.dtype)
        nodes[:size] = values[begin : begin + size]
        nodes[none] = nothing
        for j in range(1, levels):
            below, below_first = level_starts[j - 1], first >> (j - 1)
            below_count = level_starts[j] - below
            for block in range(level_starts[j + 1] - level_starts[j]):
                child = 2 * ((first >> j) + block) - below_first
                # Blocks at the edges, of which a part is missing, are never asked for.
                a = below + child if child >= 0 else none
                b = below + child + 1 if child + 1 < below_count else none
                _merge(nodes, level_starts[j] + block, a, b, how)
        while i < until:
            low, high = first + bounds[0, i] - begin, first + bounds[1, i] - begin
            nodes[left_fold] = nothing
            nodes[right_fold] = nothing
            j = 0
            while low < high:
                if low & 1:
                    _merge(nodes, left_fold, left_fold, level_starts[j] + low - (first >> j), how)
                    low += 1
                if high & 1:
                    high -= 1
                    _merge(nodes, right_fold, level_starts[j] + high - (first >> j), right_fold, how)
                low >>= 1
                high >>= 1
                j += 1
            _merge(nodes, left_fold, left_fold, right_fold, how)
            out[i] = nodes[left_fold]
            i += 1
    return out
