"""Compiled local search of the planner keel.

``loads`` is items × resources, scaled so that an even share of a channel is the resource's weight; ``pressure`` of a
channel is its largest load over the resources. The items of a channel are a linked list: ``first[channel]``,
``after[item]``, ``prior[item]``, ended by -1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Channels = NDArray[np.int32]

NOTHING = -1
SLACK = 1e-7  # of a fair share: less than this is not worth a move


@compiled
def pressure_of(totals: Floats, channel: int) -> float:
    most = totals[channel, 0]
    for k in range(1, totals.shape[1]):
        most = max(most, totals[channel, k])
    return most


@compiled
def pressure_with(totals: Floats, channel: int, loads: Floats, item: int, sign: float) -> float:
    most = -np.inf
    for k in range(totals.shape[1]):
        most = max(most, totals[channel, k] + sign * loads[item, k])
    return most


@compiled
def pressure_exchanged(totals: Floats, channel: int, loads: Floats, leaving: int, coming: int) -> float:
    most = -np.inf
    for k in range(totals.shape[1]):
        most = max(most, totals[channel, k] - loads[leaving, k] + loads[coming, k])
    return most


@compiled
def extremes(totals: Floats) -> tuple[int, int]:
    """The channels under the most and under the least pressure, the lowest of each."""
    fullest, emptiest = 0, 0
    most = least = pressure_of(totals, 0)
    for channel in range(1, len(totals)):
        pressure = pressure_of(totals, channel)
        if pressure > most:
            most, fullest = pressure, channel
        if pressure < least:
            least, emptiest = pressure, channel
    return fullest, emptiest


@compiled
def unlink(item: int, channel: int, first: Ints, after: Ints, prior: Ints) -> None:
    if prior[item] == NOTHING:
        first[channel] = after[item]
    else:
        after[prior[item]] = after[item]
    if after[item] != NOTHING:
        prior[after[item]] = prior[item]


@compiled
def link(item: int, channel: int, first: Ints, after: Ints, prior: Ints) -> None:
    after[item] = first[channel]
    prior[item] = NOTHING
    if first[channel] != NOTHING:
        prior[first[channel]] = item
    first[channel] = item


@compiled
def put(
    item: int, target: int, loads: Floats, homes: Channels, totals: Floats, first: Ints, after: Ints, prior: Ints
) -> None:
    """Move an item, whether it has a channel yet or not."""
    source = homes[item]
    if source < len(totals) and source != NOTHING:
        unlink(item, source, first, after, prior)
        for k in range(totals.shape[1]):
            totals[source, k] -= loads[item, k]
    link(item, target, first, after, prior)
    for k in range(totals.shape[1]):
        totals[target, k] += loads[item, k]
    homes[item] = target


@compiled
def is_backup(item: int, channel: int, offsets: Ints, backups: Channels) -> bool:
    found = False
    for at in range(offsets[item], offsets[item + 1]):
        found |= backups[at] == channel
    return found


@compiled
def bytes_at(item: int, channel: int, origins: Channels, state: Ints, offsets: Ints, backups: Channels) -> int:
    """What it costs that an item ends on ``channel``: nothing where it came from or where it has a backup."""
    if origins[item] == channel or is_backup(item, channel, offsets, backups):
        return 0
    return state[item]


@compiled
def place_homeless(
    order: Ints,
    loads: Floats,
    homes: Channels,
    totals: Floats,
    first: Ints,
    after: Ints,
    prior: Ints,
    offsets: Ints,
    backups: Channels,
    target: float,
) -> None:
    """Give items whose channel vanished to a backup under ``target``, else to the emptiest channel."""
    for i in range(len(order)):
        item = order[i]
        _, chosen = extremes(totals)
        for at in range(offsets[item], offsets[item + 1]):
            if pressure_with(totals, backups[at], loads, item, 1.0) <= target:
                chosen = backups[at]
        put(item, chosen, loads, homes, totals, first, after, prior)


@compiled
def is_better(gain: float, cost: int, best_gain: float, best_cost: int, stride: float) -> bool:
    """More relief, to the power ``stride``, per byte; what costs nothing beats all that does."""
    if cost <= 0 or best_cost <= 0:
        if (cost <= 0) != (best_cost <= 0):
            return cost <= 0
        return gain > best_gain
    ratio, best_ratio = gain**stride * best_cost, best_gain**stride * cost
    return ratio > best_ratio or (ratio == best_ratio and gain > best_gain)


@compiled
def best_move(
    fullest: int,
    emptiest: int,
    target: float,
    spare: int,
    stride: float,
    loads: Floats,
    state: Ints,
    origins: Channels,
    totals: Floats,
    first: Ints,
    after: Ints,
    offsets: Ints,
    backups: Channels,
) -> tuple[int, int, int]:
    """The item, its new channel and the bytes of the move that relieves ``fullest`` most per byte; -1 if none does."""
    now = pressure_of(totals, fullest)
    found, found_channel, found_gain, found_cost = NOTHING, NOTHING, 0.0, 0
    item = first[fullest]
    while item != NOTHING:
        leaves = pressure_with(totals, fullest, loads, item, -1.0)
        if leaves < now - SLACK:
            before = bytes_at(item, fullest, origins, state, offsets, backups)
            # The emptiest channel, where it came from, and where its backups are.
            for option in range(2 + offsets[item + 1] - offsets[item]):
                channel = emptiest
                if option == 1:
                    channel = origins[item]
                elif option > 1:
                    channel = backups[offsets[item] + option - 2]
                if channel == fullest or channel >= len(totals):
                    continue
                arrives = pressure_with(totals, channel, loads, item, 1.0)
                gain = now - max(leaves, arrives, target)
                cost = bytes_at(item, channel, origins, state, offsets, backups) - before
                helps = arrives < now - SLACK and gain > SLACK and cost <= spare
                if helps and (found == NOTHING or is_better(gain, cost, found_gain, found_cost, stride)):
                    found, found_channel, found_gain, found_cost = item, channel, gain, cost
        item = after[item]
    return found, found_channel, found_cost


@compiled
def members(channel: int, first: Ints, after: Ints, key: Floats) -> Ints:
    """The items of a channel by ascending ``key``."""
    count = 0
    item = first[channel]
    while item != NOTHING:
        count += 1
        item = after[item]
    found = np.empty(count, np.int64)
    item = first[channel]
    for i in range(count):
        found[i] = item
        item = after[item]
    return found[np.argsort(key[found])]


@compiled
def best_swap(
    fullest: int,
    target: float,
    spare: int,
    stride: float,
    partners: int,
    loads: Floats,
    state: Ints,
    origins: Channels,
    totals: Floats,
    first: Ints,
    after: Ints,
    offsets: Ints,
    backups: Channels,
) -> tuple[int, int, int]:
    """The two items and the bytes of the exchange that brings ``fullest`` nearest to ``target``; -1 if none helps.

    Tried with the ``partners`` emptiest channels. For each item of the fullest channel, only the partner's items next
    to the ideal difference are looked at: O(n log n) for n items.
    """
    now = pressure_of(totals, fullest)
    hottest = 0
    for k in range(1, totals.shape[1]):
        if totals[fullest, k] > totals[fullest, hottest]:
            hottest = k
    key = loads[:, hottest].copy()
    mine = members(fullest, first, after, key)
    pressures = np.empty(len(totals))
    for channel in range(len(totals)):
        pressures[channel] = pressure_of(totals, channel)
    nearest = np.argsort(pressures)[:partners]
    found, found_other, found_gain, found_cost = NOTHING, NOTHING, 0.0, 0
    for p in range(len(nearest)):
        channel = nearest[p]
        if channel == fullest:
            continue
        theirs = members(channel, first, after, key)
        # A difference of half the gap evens the two out; one that just reaches the target may cost less.
        wanted = (now - totals[channel, hottest]) / 2
        for a in range(len(mine)):
            item = mine[a]
            at = np.searchsorted(key[theirs], key[item] - wanted)
            for b in range(max(at - 1, 0), min(at + 2, len(theirs))):
                other = theirs[b]
                worse = max(
                    pressure_exchanged(totals, fullest, loads, item, other),
                    pressure_exchanged(totals, channel, loads, other, item),
                )
                gain = now - max(worse, target)
                cost = (
                    bytes_at(item, channel, origins, state, offsets, backups)
                    - bytes_at(item, fullest, origins, state, offsets, backups)
                    + bytes_at(other, fullest, origins, state, offsets, backups)
                    - bytes_at(other, channel, origins, state, offsets, backups)
                )
                helps = worse < now - SLACK and gain > SLACK and cost <= spare
                if helps and (found == NOTHING or is_better(gain, cost, found_gain, found_cost, stride)):
                    found, found_other, found_gain, found_cost = item, other, gain, cost
    return found, found_other, found_cost


@compiled
def relieve(
    target: float,
    budget: int,
    stride: float,
    spent: int,
    steps: int,
    partners: int,
    loads: Floats,
    state: Ints,
    origins: Channels,
    homes: Channels,
    totals: Floats,
    first: Ints,
    after: Ints,
    prior: Ints,
    offsets: Ints,
    backups: Channels,
) -> tuple[int, int, int]:
    """Relieve the fullest channel, up to ``steps`` times; give the bytes spent, and the moves and swaps made."""
    moves, swaps = 0, 0
    while moves + swaps < steps:
        fullest, emptiest = extremes(totals)
        if pressure_of(totals, fullest) <= target + SLACK:
            break
        item, channel, cost = best_move(
            fullest,
            emptiest,
            target,
            budget - spent,
            stride,
            loads,
            state,
            origins,
            totals,
            first,
            after,
            offsets,
            backups,
        )
        if item != NOTHING:
            put(item, channel, loads, homes, totals, first, after, prior)
            moves += 1
        else:
            item, other, cost = best_swap(
                fullest,
                target,
                budget - spent,
                stride,
                partners,
                loads,
                state,
                origins,
                totals,
                first,
                after,
                offsets,
                backups,
            )
            if item == NOTHING:
                break
            channel = homes[other]
            put(item, channel, loads, homes, totals, first, after, prior)
            put(other, fullest, loads, homes, totals, first, after, prior)
            swaps += 1
        spent += cost
    return spent, moves, swaps


@compiled
def cheapest_substitute(
    item: int,
    limit: float,
    loads: Floats,
    state: Ints,
    origins: Channels,
    homes: Channels,
    totals: Floats,
    first: Ints,
    after: Ints,
    offsets: Ints,
    backups: Channels,
) -> tuple[int, int, int]:
    """If ``item`` went home: who could leave in its place, whereto, and for how many bytes; -1 if nobody could."""
    home, away = np.int64(origins[item]), np.int64(homes[item])
    _, emptiest = extremes(totals)
    found, found_channel, found_cost = NOTHING, NOTHING, 0
    other = first[home]
    while other != NOTHING:
        if pressure_exchanged(totals, home, loads, other, item) <= limit:
            before = bytes_at(other, home, origins, state, offsets, backups)
            for channel in (away, emptiest):
                cost = bytes_at(other, channel, origins, state, offsets, backups) - before
                if channel == home or (found != NOTHING and cost >= found_cost):
                    continue
                if channel == away:
                    fits = pressure_exchanged(totals, away, loads, item, other) <= limit
                else:
                    fits = pressure_with(totals, channel, loads, other, 1.0) <= limit
                if fits:
                    found, found_channel, found_cost = other, channel, cost
        other = after[other]
    return found, found_channel, found_cost


@compiled
def cheapen(
    order: Ints,
    target: float,
    loads: Floats,
    state: Ints,
    origins: Channels,
    homes: Channels,
    totals: Floats,
    first: Ints,
    after: Ints,
    prior: Ints,
    offsets: Ints,
    backups: Channels,
) -> int:
    """Send moved items home where there is room, or where a cheaper one can leave instead; give the bytes saved."""
    fullest, _ = extremes(totals)
    limit = max(target, pressure_of(totals, fullest))
    saved = 0
    for i in range(len(order)):
        item = order[i]
        home = origins[item]
        paid = bytes_at(item, homes[item], origins, state, offsets, backups)
        if home == homes[item] or home >= len(totals) or paid == 0:
            continue
        if pressure_with(totals, home, loads, item, 1.0) <= limit:
            put(item, home, loads, homes, totals, first, after, prior)
            saved += paid
            continue
        other, channel, cost = cheapest_substitute(
            item, limit, loads, state, origins, homes, totals, first, after, offsets, backups
        )
        if other != NOTHING and cost < paid:
            put(item, home, loads, homes, totals, first, after, prior)
            put(other, channel, loads, homes, totals, first, after, prior)
            saved += paid - cost
    return saved
