"""Compiled loops of the least-load-fit planners.

All walk lists of items that were sorted once: ``by_cost`` (costliest first) and ``by_index`` (best to move first). An
item that is *taken* is off its channel and waits for a new one; all taken items wait in the order of ``by_cost``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled
from evenkeel._kernels.leastloaded import arrange, least_loaded

Order = NDArray[np.int64]
Floats = NDArray[np.float64]
Channels = NDArray[np.int32]
Flags = NDArray[np.bool_]


@compiled
def take_from_overloaded(
    order: Order, costs: Floats, homes: Channels, loads: Floats, limit: float, taken: Flags
) -> None:
    """Take items in ``order`` out of their channels, as long as these are over ``limit``; loads follow."""
    overloaded = 0
    for channel in range(len(loads)):
        overloaded += loads[channel] > limit
    for item in order:
        if overloaded == 0:
            break
        home = homes[item]
        if loads[home] > limit:
            taken[item] = True
            loads[home] -= costs[item]
            overloaded -= loads[home] <= limit


@compiled
def place_on_least_loaded(by_cost: Order, costs: Floats, taken: Flags, homes: Channels, loads: Floats) -> None:
    """LLFD: give each taken item to the channel with the least load, the lowest one where several have it."""
    heap = np.arange(len(loads)).astype(np.int32)
    known = loads.copy()
    arrange(heap, known)
    for item in by_cost:
        if taken[item]:
            channel = least_loaded(heap, known, loads)
            homes[item] = channel
            loads[channel] += costs[item]


@compiled
def members_by_channel(order: Order, homes: Channels, channels: int) -> tuple[Order, Order]:
    """List the items of each channel in ``order``: where each channel's list starts, and all lists in one array."""
    starts = np.zeros(channels + 1, np.int64)
    for item in order:
        starts[homes[item] + 1] += 1
    for channel in range(channels):
        starts[channel + 1] += starts[channel]
    ends = starts[:-1].copy()
    members = np.empty(len(order), np.int64)
    for item in order:
        members[ends[homes[item]]] = item
        ends[homes[item]] += 1
    return starts, members


@compiled
def play_upwards(tree: Channels, loads: Floats, at: int) -> None:
    """Mend a knock-out tree, whose node 1 is the least loaded channel, above the leaf ``at``; ties go to the left."""
    at //= 2
    while at >= 1:
        left, right = tree[2 * at], tree[2 * at + 1]
        tree[at] = right if right >= 0 and loads[right] < loads[left] else left
        at //= 2


@compiled
def place_by_exchange(
    by_cost: Order,
    by_index: Order,
    costs: Floats,
    taken: Flags,
    homes: Channels,
    loads: Floats,
    heavy: Floats,
    limit: float,
    backup_offsets: Order,
    backup_channels: Channels,
) -> None:
    """Second phase of FTLB: place the taken items below ``limit``, in exchange for lighter ones where need be.

    ``heavy`` starts as the load of each channel that never moves. It is kept as what the item at hand cannot push out:
    that, all that was placed, and all items at least as costly. Items come in falling order of cost and push out only
    lighter ones, so an item that is too heavy once (behind the channel's cursor) is so for good, an item that was
    placed is never pushed out, and everything ends after one walk.
    """
    channels = len(loads)
    leaves = 1
    while leaves < channels:
        leaves *= 2
    tree = np.full(2 * leaves, -1, np.int32)
    for channel in range(channels):
        tree[leaves + channel] = channel
    for at in range(leaves - 1, 0, -1):
        left, right = tree[2 * at], tree[2 * at + 1]
        tree[at] = right if right >= 0 and loads[right] < loads[left] else left

    starts, members = members_by_channel(by_index, homes, channels)
    cursors = starts[:-1].copy()
    replicated = len(backup_channels) > 0
    ahead = 0
    for item in by_cost:
        cost = costs[item]
        while ahead < len(by_cost) and costs[by_cost[ahead]] >= cost:
            other = by_cost[ahead]
            if not taken[other]:
                heavy[homes[other]] += costs[other]
            ahead += 1
        if not taken[item]:
            continue

        target = -1
        if replicated:  # a backup with room takes over for free
            for at in range(backup_offsets[item], backup_offsets[item + 1]):
                channel = backup_channels[at]
                if channel < channels and loads[channel] + cost <= limit:
                    better = target < 0 or loads[channel] < loads[target]
                    if better or (loads[channel] == loads[target] and channel < target):
                        target = channel
        if target < 0 and heavy[tree[1]] + cost <= limit:
            target = tree[1]
        if target < 0:  # the next least loaded channels; those that cannot make room are passed over
            for channel in range(channels):
                if heavy[channel] + cost <= limit and (target < 0 or loads[channel] < loads[target]):
                    target = channel
        if target < 0:  # none can: where the least remains that cannot be pushed out
            target = 0
            for channel in range(1, channels):
                if heavy[channel] < heavy[target] or (
                    heavy[channel] == heavy[target] and loads[channel] < loads[target]
                ):
                    target = channel

        loads[target] += cost
        while loads[target] > limit and cursors[target] < starts[target + 1]:
            other = members[cursors[target]]
            cursors[target] += 1
            if not taken[other] and costs[other] < cost:
                taken[other] = True
                loads[target] -= costs[other]
        heavy[target] += cost
        homes[item] = target
        play_upwards(tree, loads, leaves + target)
