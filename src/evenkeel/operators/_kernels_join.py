"""Compiled loops of the window join."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

Numbers = NDArray[np.int64]


@compiled
def ranges_within(keys: Numbers, times: Numbers, within: int, starts: Numbers, sorted_times: Numbers) -> Numbers:
    """For each tuple, find the tuples of its key no further than ``within`` away: where they start, and how many.

    ``sorted_times[starts[k]:starts[k + 1]]`` are the times of key k, ascending. Gives 2 × tuples.
    """
    found = np.empty((2, len(keys)), np.int64)
    for i in range(len(keys)):
        low, end = starts[keys[i]], starts[keys[i] + 1]
        high = end
        while low < high:  # the first that is not too old
            middle = (low + high) // 2
            if sorted_times[middle] < times[i] - within:
                low = middle + 1
            else:
                high = middle
        found[0, i] = low
        high = end
        while low < high:  # the first that is too new
            middle = (low + high) // 2
            if sorted_times[middle] <= times[i] + within:
                low = middle + 1
            else:
                high = middle
        found[1, i] = low - found[0, i]
    return found
