"""The least loaded channel, when loads only grow: a heap that is mended only when it is asked.

``order`` is a binary heap of channels, ``known[channel]`` the load that the heap was arranged by. A channel's true load
may have grown since; asking for the least loaded one brings just the top up to date. Ties go to the lower channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

Channels = NDArray[np.int32]
Loads = NDArray[Any]  # int64 for tuples, float64 for cost


@compiled
def before(known: Loads, first: int, second: int) -> bool:
    """Whether channel ``first`` comes before ``second`` in the heap's order."""
    return known[first] < known[second] or (known[first] == known[second] and first < second)


@compiled
def sift_down(order: Channels, known: Loads, at: int) -> None:
    channel = order[at]
    while True:
        child = 2 * at + 1
        if child >= len(order):
            break
        if child + 1 < len(order) and before(known, order[child + 1], order[child]):
            child += 1
        if not before(known, order[child], channel):
            break
        order[at] = order[child]
        at = child
    order[at] = channel


@compiled
def arrange(order: Channels, known: Loads) -> None:
    """Make a heap of ``order``."""
    for at in range(len(order) // 2 - 1, -1, -1):
        sift_down(order, known, at)


@compiled
def least_loaded(order: Channels, known: Loads, loads: Loads) -> int:
    """The channel with the least load, the lowest of them where several have it."""
    while known[order[0]] != loads[order[0]]:
        known[order[0]] = loads[order[0]]
        sift_down(order, known, 0)
    return order[0]
