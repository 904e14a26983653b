"""Compiled local search of the planner keel, on the arrays of a :class:`evenkeel.planning.keel_search.Board`.

What is called for every item takes plain arrays: passing the whole board down costs several times the work itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

if TYPE_CHECKING:
    from evenkeel.planning.keel_search import Board

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Channels = NDArray[np.int32]

NOTHING = -1
SLACK = 1e-7  # of a fair share: less than this is not worth a move


@compiled
def pressure_of(totals: Floats, channel: int) -> float:
    """A channel's largest load over the resources."""
    most = totals[channel, 0]
    for k in range(1, totals.shape[1]):
        most = max(most, totals[channel, k])
    return most


@compiled
def pressure_with(totals: Floats, loads: Floats, channel: int, item: int, sign: float) -> float:
    """The same with one item more (``sign`` 1) or less (-1)."""
    most = -np.inf
    for k in range(totals.shape[1]):
        most = max(most, totals[channel, k] + sign * loads[item, k])
    return most


@compiled
def pressure_exchanged(totals: Floats, loads: Floats, channel: int, leaving: int, coming: int) -> float:
    """The same with one item for another."""
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
def unlink(board: Board, item: int, channel: int) -> None:
    """Take an item out of a channel's list."""
    if board.prior[item] == NOTHING:
        board.first[channel] = board.after[item]
    else:
        board.after[board.prior[item]] = board.after[item]
    if board.after[item] != NOTHING:
        board.prior[board.after[item]] = board.prior[item]


@compiled
def link(board: Board, item: int, channel: int) -> None:
    """Put an item into a channel's list."""
    board.after[item] = board.first[channel]
    board.prior[item] = NOTHING
    if board.first[channel] != NOTHING:
        board.prior[board.first[channel]] = item
    board.first[channel] = item


@compiled
def put(board: Board, item: int, target: int) -> None:
    """Move an item, whether it has a channel yet or not."""
    source = board.homes[item]
    if source != NOTHING:
        unlink(board, item, source)
        for k in range(board.totals.shape[1]):
            board.totals[source, k] -= board.loads[item, k]
    link(board, item, target)
    for k in range(board.totals.shape[1]):
        board.totals[target, k] += board.loads[item, k]
    board.homes[item] = target


@compiled
def bytes_at(state: Ints, origins: Channels, offsets: Ints, backups: Channels, item: int, channel: int) -> int:
    """What it costs that an item ends on ``channel``: nothing where it came from or where it has a backup."""
    free = origins[item] == channel
    for at in range(offsets[item], offsets[item + 1]):
        free |= backups[at] == channel
    return 0 if free else state[item]


@compiled
def cost_at(board: Board, item: int, channel: int) -> int:
    """The same, for callers that are not in a hurry."""
    return bytes_at(board.state, board.origins, board.offsets, board.backups, item, channel)


@compiled
def place_homeless(board: Board, order: Ints, target: float) -> int:
    """Give items whose channel vanished to a backup under ``target``, else to the emptiest channel; give the bytes."""
    spent = 0
    for i in range(len(order)):
        item = order[i]
        _, chosen = extremes(board.totals)
        for at in range(board.offsets[item], board.offsets[item + 1]):
            if pressure_with(board.totals, board.loads, board.backups[at], item, 1.0) <= target:
                chosen = np.int64(board.backups[at])
        put(board, item, chosen)
        spent += cost_at(board, item, chosen)
    return spent


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
    board: Board, fullest: int, emptiest: int, target: float, spare: int, stride: float
) -> tuple[int, int, int]:
    """The item, its new channel and the bytes of the move that relieves ``fullest`` most per byte; -1 if none does."""
    totals, loads, after = board.totals, board.loads, board.after
    state, origins, offsets, backups = board.state, board.origins, board.offsets, board.backups
    now = pressure_of(totals, fullest)
    found, found_channel, found_gain, found_cost = NOTHING, NOTHING, 0.0, 0
    item = board.first[fullest]
    while item != NOTHING:
        leaves = pressure_with(totals, loads, fullest, item, -1.0)
        if leaves < now - SLACK:
            before = bytes_at(state, origins, offsets, backups, item, fullest)
            # The emptiest channel, where it came from, and where its backups are.
            for option in range(2 + offsets[item + 1] - offsets[item]):
                channel = emptiest
                if option == 1:
                    channel = np.int64(origins[item])
                elif option > 1:
                    channel = np.int64(backups[offsets[item] + option - 2])
                if channel == fullest or channel >= len(totals):
                    continue
                arrives = pressure_with(totals, loads, channel, item, 1.0)
                gain = now - max(leaves, arrives, target)
                cost = bytes_at(state, origins, offsets, backups, item, channel) - before
                helps = arrives < now - SLACK and gain > SLACK and cost <= spare
                if helps and (found == NOTHING or is_better(gain, cost, found_gain, found_cost, stride)):
                    found, found_channel, found_gain, found_cost = item, channel, gain, cost
        item = after[item]
    return found, found_channel, found_cost


@compiled
def members(first: Ints, after: Ints, channel: int, key: Floats) -> Ints:
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
    board: Board, fullest: int, target: float, spare: int, stride: float, partners: int
) -> tuple[int, int, int]:
    """The two items and the bytes of the exchange that relieves ``fullest`` most per byte; -1 if none helps.

    Tried with the ``partners`` emptiest channels. For each item of the fullest channel, only the partner's items next
    to the ideal difference are looked at: O(n log n) for n items.
    """
    totals, loads, first, after = board.totals, board.loads, board.first, board.after
    now = pressure_of(totals, fullest)
    hottest = np.argmax(totals[fullest])
    key = loads[:, hottest].copy()
    mine = members(first, after, fullest, key)
    pressures = np.array([pressure_of(totals, channel) for channel in range(len(totals))])
    nearest = np.argsort(pressures)[:partners]
    found, found_other, found_gain, found_cost = NOTHING, NOTHING, 0.0, 0
    for p in range(len(nearest)):
        channel = nearest[p]
        if channel == fullest:
            continue
        theirs = members(first, after, channel, key)
        wanted = (now - totals[channel, hottest]) / 2  # half the gap evens the two out
        for a in range(len(mine)):
            item = mine[a]
            at = np.searchsorted(key[theirs], key[item] - wanted)
            for b in range(max(at - 1, 0), min(at + 2, len(theirs))):
                other = theirs[b]
                worse = max(
                    pressure_exchanged(totals, loads, fullest, item, other),
                    pressure_exchanged(totals, loads, channel, other, item),
                )
                gain = now - max(worse, target)
                if worse >= now - SLACK or gain <= SLACK:
                    continue
                cost = cost_at(board, item, channel) - cost_at(board, item, fullest)
                cost += cost_at(board, other, fullest) - cost_at(board, other, channel)
                if cost <= spare and (found == NOTHING or is_better(gain, cost, found_gain, found_cost, stride)):
                    found, found_other, found_gain, found_cost = item, other, gain, cost
    return found, found_other, found_cost


@compiled
def relieve(
    board: Board, target: float, budget: int, spent: int, stride: float, steps: int, partners: int
) -> tuple[int, int, int]:
    """Relieve the fullest channel, up to ``steps`` times; give the bytes spent, and the moves and swaps made."""
    moves, swaps = 0, 0
    while moves + swaps < steps:
        fullest, emptiest = extremes(board.totals)
        if pressure_of(board.totals, fullest) <= target + SLACK:
            break
        item, channel, cost = best_move(board, fullest, emptiest, target, budget - spent, stride)
        if item != NOTHING:
            put(board, item, channel)
            moves += 1
        else:
            item, other, cost = best_swap(board, fullest, target, budget - spent, stride, partners)
            if item == NOTHING:
                break
            channel = np.int64(board.homes[other])
            put(board, item, channel)
            put(board, other, fullest)
            swaps += 1
        spent += cost
    return spent, moves, swaps


@compiled
def cheapest_substitute(board: Board, item: int, limit: float) -> tuple[int, int, int]:
    """If ``item`` went home: who could leave in its place, whereto, and for how many bytes; -1 if nobody could."""
    totals, loads, after = board.totals, board.loads, board.after
    state, origins, offsets, backups = board.state, board.origins, board.offsets, board.backups
    home, away = np.int64(origins[item]), np.int64(board.homes[item])
    _, emptiest = extremes(totals)
    found, found_channel, found_cost = NOTHING, NOTHING, 0
    other = board.first[home]
    while other != NOTHING:
        if pressure_exchanged(totals, loads, home, other, item) <= limit:
            before = bytes_at(state, origins, offsets, backups, other, home)
            for channel in (away, emptiest):
                cost = bytes_at(state, origins, offsets, backups, other, channel) - before
                if channel == home or (found != NOTHING and cost >= found_cost):
                    continue
                if channel == away:
                    pressure = pressure_exchanged(totals, loads, away, item, other)
                else:
                    pressure = pressure_with(totals, loads, channel, other, 1.0)
                if pressure <= limit:
                    found, found_channel, found_cost = other, channel, cost
        other = after[other]
    return found, found_channel, found_cost


@compiled
def cheapen(board: Board, order: Ints, target: float) -> int:
    """Send moved items home where there is room, or where a cheaper one can leave instead; give the bytes saved."""
    fullest, _ = extremes(board.totals)
    limit = max(target, pressure_of(board.totals, fullest))
    saved = 0
    for i in range(len(order)):
        item = order[i]
        home = np.int64(board.origins[item])
        paid = cost_at(board, item, board.homes[item])
        if home == board.homes[item] or home >= len(board.totals) or paid == 0:
            continue
        if pressure_with(board.totals, board.loads, home, item, 1.0) <= limit:
            put(board, item, home)
            saved += paid
            continue
        other, channel, cost = cheapest_substitute(board, item, limit)
        if other != NOTHING and cost < paid:
            put(board, item, home)
            put(board, other, channel)
            saved += paid - cost
    return saved
