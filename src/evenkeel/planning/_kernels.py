"""Compiled loops of the planning room: dealing, shedding, evening out, splitting by covariance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled
from evenkeel._kernels.leastloaded import arrange, least_loaded, sift_down

Loads = NDArray[np.float64]
Channels = NDArray[np.int32]
Places = NDArray[np.int64]


@compiled
def deal(order: Places, loads: Loads, channel_loads: Loads, members: Channels, target: float, homes: Channels) -> None:
    """Give each item of ``order`` to the least loaded of the ``members``, the lowest of them where several are.

    A member that reaches ``target`` receives no more. Once none is left, all channels are members for good.
    """
    queue = members.copy()
    known = channel_loads.copy()
    arrange(queue, known)
    limit = target
    for at in range(len(order)):
        if len(queue) == 0:
            queue = np.arange(len(channel_loads)).astype(np.int32)
            known[:] = channel_loads
            arrange(queue, known)
            limit = np.inf
        item = order[at]
        channel = least_loaded(queue, known, channel_loads)
        homes[item] = channel
        channel_loads[channel] += loads[item]
        if channel_loads[channel] >= limit:
            last = len(queue) - 1
            queue[0] = queue[last]
            queue = queue[:last]
            if last > 0:
                sift_down(queue, known, 0)


@compiled
def shed(
    order: Places, loads: Loads, homes: Channels, room: Loads, cap: float, may_touch: bool, leaves: NDArray[np.bool_]
) -> None:
    """Mark the items that leave: in ``order``, each that is under its channel's ``room`` (or equal, if it may touch).

    ``room`` shrinks by each item that leaves, and no item at or over ``cap`` does. One pass does what "take the largest
    that fits, again and again" asks for where ``order`` is descending: what does not fit now never will.
    """
    for at in range(len(order)):
        item = order[at]
        channel = homes[item]
        if channel >= len(room):
            continue
        load = loads[item]
        limit = min(room[channel], cap)
        if load < limit or (may_touch and load == limit):
            leaves[item] = True
            room[channel] -= load


@compiled
def first_at_or_after(homes: Channels, counts: Places, start: int, channel: int, shift: int) -> int:
    """The first rank from ``start`` on whose item is on ``channel``, or -1.

    ``counts[b]`` is how many items of block b (``1 << shift`` ranks) are on the channel, so whole blocks are skipped.
    """
    ranks = len(homes)
    block = start >> shift
    for rank in range(start, min(ranks, (block + 1) << shift)):
        if homes[rank] == channel:
            return rank
    for later in range(block + 1, len(counts)):
        if counts[later] > 0:
            for rank in range(later << shift, min(ranks, (later + 1) << shift)):
                if homes[rank] == channel:
                    return rank
    return -1


@compiled
def first_that_fits(loads: Loads, giver_load: float, taker_load: float) -> int:
    """The first of the descending ``loads`` that does not lift the taker up to where the giver is now."""
    low, high = 0, len(loads)
    while low < high:
        middle = (low + high) // 2
        if taker_load + loads[middle] < giver_load:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def relative_std_percent(loads: Loads, mean: float) -> float:
    total = 0.0
    for channel in range(len(loads)):
        off = loads[channel] / mean - 1.0
        total += off * off
    return 100.0 * np.sqrt(total / len(loads))


@compiled
def even_out(loads: Loads, homes: Channels, channel_loads: Loads, threshold: float, heaviest: bool) -> int:
    """Move one item at a time to the least loaded channel until the score is met or no channel can improve it.

    ``loads`` and ``homes`` are by rank: descending loads where the heaviest item that helps is wanted, ascending ones
    where the lightest of a channel is. A move from a to b lowers the deviation just if ``0 < load < L_a - L_b``. It is
    taken only if both channels end below where a was, as computed: then the sorted loads fall lexicographically with
    every move, whatever the rounding, so that no state comes twice and the loop ends.
    """
    channels, ranks = len(channel_loads), len(loads)
    shift = 6
    while (1 << (2 * shift)) < ranks:
        shift += 1
    counts = np.zeros((channels, (ranks >> shift) + 1), np.int64)
    # Where the search of a channel's lightest item may start: nothing of it is before.
    begins = np.zeros(channels, np.int64)
    for rank in range(ranks):
        counts[homes[rank], rank >> shift] += 1
    mean = channel_loads.mean()
    moves = 0
    while mean > 0 and relative_std_percent(channel_loads, mean) > threshold:
        taker = 0
        for channel in range(1, channels):
            if channel_loads[channel] < channel_loads[taker]:
                taker = channel
        # Givers from the fullest down, the lower channel first: the next one is found only when it is asked for.
        giver, moved = -1, False
        while not moved:
            follower = -1
            for channel in range(channels):
                after = giver < 0 or (
                    channel_loads[channel] < channel_loads[giver]
                    or (channel_loads[channel] == channel_loads[giver] and channel > giver)
                )
                if after and (follower < 0 or channel_loads[channel] > channel_loads[follower]):
                    follower = channel
            giver = follower
            if giver < 0 or giver == taker:
                return moves
            start = begins[giver]
            if heaviest:
                start = first_that_fits(loads, channel_loads[giver], channel_loads[taker])
            rank = first_at_or_after(homes, counts[giver], start, giver, shift) if start < ranks else -1
            if not heaviest:
                begins[giver] = rank if rank >= 0 else ranks
            if rank < 0:
                continue
            left = channel_loads[giver] - loads[rank]
            reached = channel_loads[taker] + loads[rank]
            if left >= channel_loads[giver] or reached >= channel_loads[giver]:
                continue
            channel_loads[giver], channel_loads[taker] = left, reached
            homes[rank] = taker
            counts[giver, rank >> shift] -= 1
            counts[taker, rank >> shift] += 1
            begins[taker] = min(begins[taker], rank)
            moves += 1
            moved = True
    return moves


@compiled
def keep_strong(covariance: NDArray[np.float64], deviations: Loads, threshold: float) -> None:
    """Set to 0 what is no correlation of at least ``threshold``, and every series with itself."""
    for i in range(len(deviations)):
        for j in range(len(deviations)):
            if i == j or not covariance[i, j] >= threshold * (deviations[i] * deviations[j]):
                covariance[i, j] = 0.0
        if deviations[i] == 0.0:
            covariance[i, :] = 0.0
            covariance[:, i] = 0.0


@compiled
def split_sets(strong: NDArray[np.float64], sets: int, labels: Places) -> int:
    """Split one set into up to ``sets`` by the strong covariances; give how many there are, and each item's label.

    Every run, the item with the largest weight (its strong covariances within its set; the lowest item where several
    have it) stays with those that are not strong to it, and the others leave together. Each pair is parted at most
    once, so that all runs take O(items²) together.
    """
    items = len(labels)
    weights = np.zeros(items)
    partners = np.zeros(items, np.int64)  # exact, where a weight that falls to 0 may be off by rounding
    for i in range(items):
        for j in range(items):
            if strong[i, j] > 0.0:
                weights[i] += strong[i, j]
                partners[i] += 1
    labels[:] = 0
    made = 1
    stay = np.empty(items, np.int64)
    leave = np.empty(items, np.int64)
    while made < sets:
        chosen = -1
        for i in range(items):
            if partners[i] > 0 and (chosen < 0 or weights[i] > weights[chosen]):
                chosen = i
        if chosen < 0:
            break
        staying, leaving = 0, 0
        for i in range(items):
            if labels[i] == labels[chosen]:
                if strong[chosen, i] > 0.0:
                    leave[leaving] = i
                    leaving += 1
                else:
                    stay[staying] = i
                    staying += 1
        for i in leave[:leaving]:
            labels[i] = made
            for j in stay[:staying]:
                if strong[i, j] > 0.0:
                    weights[i] -= strong[i, j]
                    weights[j] -= strong[i, j]
                    partners[i] -= 1
                    partners[j] -= 1
        made += 1
    return made


@compiled
def dot(first: Loads, second: Loads) -> float:
    total = 0.0
    for at in range(len(first)):
        total += first[at] * second[at]
    return total


@compiled
def deal_series(order: Places, series: NDArray[np.float64], held: NDArray[np.float64], homes: Channels) -> None:
    """Give each item of ``order`` to the channel where it adds least to the sum of squared loads of all windows."""
    for item in order:
        best, least = 0, np.inf
        for channel in range(len(held)):
            product = dot(series[item], held[channel])
            if product < least:
                best, least = channel, product
        homes[item] = best
        held[best] += series[item]


@compiled
def improve_series(
    order: Places, series: NDArray[np.float64], held: NDArray[np.float64], homes: Channels, passes: int
) -> None:
    """Move single items while that lowers the sum of squared loads of all windows."""
    for _ in range(passes):
        moved = False
        for item in order:
            home = homes[item]
            own = dot(series[item], series[item])
            here = dot(series[item], held[home]) - own
            best, least = home, here - 1e-9 * own
            for channel in range(len(held)):
                if channel != home:
                    product = dot(series[item], held[channel])
                    if product < least:
                        best, least = channel, product
            if best != home:
                held[home] -= series[item]
                held[best] += series[item]
                homes[item] = best
                moved = True
        if not moved:
            return
