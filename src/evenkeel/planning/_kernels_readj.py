"""Compiled search of readj; arrays as in :mod:`evenkeel.planning._kernels_gedik`."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from evenkeel._kernels.compile import compiled
from evenkeel.planning._kernels_gedik import NOBODY, Channels, Floats, Integers, balance_penalty, utility


@compiled
def _three_extremes(loads: Floats, highs: Integers, lows: Integers) -> None:
    """Find the three most and the three least loaded channels, so that without any two the extremes are known."""
    highs[:] = NOBODY
    lows[:] = NOBODY
    for channel in range(len(loads)):
        at = channel
        for rank in range(3):
            if highs[rank] == NOBODY or loads[at] > loads[highs[rank]]:
                at, highs[rank] = highs[rank], at
            if at == NOBODY:
                break
        at = channel
        for rank in range(3):
            if lows[rank] == NOBODY or loads[at] < loads[lows[rank]]:
                at, lows[rank] = lows[rank], at
            if at == NOBODY:
                break


@compiled
def _extreme_without(loads: Floats, candidates: Integers, first: int, second: int, default: float) -> float:
    for rank in range(3):
        channel = candidates[rank]
        if channel == NOBODY:
            break
        if channel != first and channel != second:  # noqa: PLR1714  # a set is slow
            return loads[channel]
    return default


@compiled
def _comes_first(
    key: int,
    partner: int,
    target: int,
    target_load: float,
    best_key: int,
    best_partner: int,
    best_target: int,
    load: float,
) -> bool:
    """Of equal gains: the hotter key; a move before a swap; the lighter, then the lower target; the hotter partner."""
    if key != best_key:
        return key < best_key
    if (partner == NOBODY) != (best_partner == NOBODY):
        return partner == NOBODY
    if partner != NOBODY:
        return partner < best_partner
    if target_load != load:
        return target_load < load
    return target < best_target


@compiled
def _least_factor(ratio: float, ratio2: float, linear: int, resources: int) -> float:
    """The factor that ρ changes by at least, or little less, if the gaps of both rows change by these ratios."""
    if linear == resources:
        return ratio
    product = 1.0
    for k in range(resources):
        product *= ratio if k < linear else ratio2
    if resources == 2:
        return sqrt(product)
    # Halley's step from 1 gives no less than the third root, and so the rest of the product no more than it.
    root = (1.0 + 2.0 * product) / (2.0 + product)
    return product / (root * root) if product < 1.0 else 1.0


@compiled
def readjust(
    base: Floats,
    weights: Floats,
    counts: Floats,
    states: Floats,
    old: Channels,
    channels: int,
    row_of: Integers,
    deviations: Floats,
    mode: int,
    moved: float,
    ideal: float,
    limit: int,
    place: Channels,
) -> tuple[int, int, bool]:
    """Move and swap keys while that lowers ρ: readj, on ``place``.

    Gives how many moves and swaps there were, and whether a key reached its limit.
    """
    rows, keys = weights.shape
    same = rows == 1 and (len(deviations) == 0 or deviations.min() == deviations.max())
    times = np.zeros(keys, np.int64)
    loads = base.copy()
    means = np.zeros(2)
    for row in range(rows):
        means[row] = (base[row].sum() + weights[row].sum()) / channels
    highs = np.empty((rows, 3), np.int64)
    lows = np.empty((rows, 3), np.int64)
    gaps = np.zeros(2)
    starts = np.zeros(channels + 1, np.int64)
    fill = np.zeros(channels, np.int64)
    members = np.zeros(keys, np.int64)
    member_weights = np.zeros(keys)
    moves, swaps, limited = 0, 0, False
    per_state = 1.0 / ideal
    linear = int((row_of == 0).sum())
    if len(deviations) == 0:
        return moves, swaps, limited
    while True:
        # Anew in each round, so that rounding cannot pile up; and members stay in order of their frequency.
        loads[:] = base
        starts[:] = 0
        for key in range(keys):
            for row in range(rows):
                loads[row, place[key]] += weights[row, key]
            starts[place[key] + 1] += 1
        for channel in range(channels):
            starts[channel + 1] += starts[channel]
            fill[channel] = starts[channel]
        for key in range(keys):
            channel = place[key]
            if times[key] >= limit:
                limited = True
                continue
            members[fill[channel]] = key
            member_weights[fill[channel]] = weights[0, key]
            fill[channel] += 1
        for row in range(rows):
            _three_extremes(loads[row], highs[row], lows[row])
            gaps[row] = loads[row, highs[row, 0]] - loads[row, lows[row, 0]]
        balance = balance_penalty(gaps[0], means[0], gaps[1], means[1], row_of, deviations, same)
        if balance == 0.0:
            break
        bar = balance * (1.0 - 1e-12)  # less is rounding, not balance
        per_gap = 1.0 / gaps[0]
        per_gap2 = 1.0 / gaps[1] if rows > 1 else 0.0
        current = utility(mode, balance, moved / ideal)
        best, best_key, best_partner, best_source, best_target = -inf, NOBODY, NOBODY, NOBODY, NOBODY
        for source in range(channels):
            for target in range(channels):
                if target == source:
                    continue
                load, target_load = loads[0, source], loads[0, target]
                others_high = _extreme_without(loads[0], highs[0], source, target, -inf)
                others_low = _extreme_without(loads[0], lows[0], source, target, inf)
                # Channels that are not touched already have this gap.
                useful = others_high - others_low < gaps[0]
                others_high2, others_low2 = -inf, inf
                if rows > 1:
                    others_high2 = _extreme_without(loads[1], highs[1], source, target, -inf)
                    others_low2 = _extreme_without(loads[1], lows[1], source, target, inf)
                    useful = useful or others_high2 - others_low2 < gaps[1]
                if not useful:
                    continue
                # The gap of a kind of load shrinks only if less than the difference goes from the fuller to the
                # emptier channel. With one kind, partners are thus a run of the target's keys in order of frequency.
                difference = load - target_load
                if rows == 1 and difference <= 0.0:
                    continue
                run = starts[target]
                end = fill[target]
                for at in range(starts[source], fill[source]):
                    key = members[at]
                    weight = member_weights[at]
                    while run < end and member_weights[run] >= weight:
                        run += 1
                    if rows == 1 and run == end and weight >= difference:
                        continue
                    home = old[key]
                    cost = 0.0
                    if home == source:
                        cost = states[key]
                    elif home == target:
                        cost = -states[key]
                    for other in range(run - 1, end):
                        if other < run:  # the move, before the swaps
                            partner = NOBODY
                            sent, volume = weight, counts[key]
                            if rows == 1 and sent >= difference:
                                continue
                        else:
                            partner = members[other]
                            sent = weight - member_weights[other]
                            if rows == 1 and sent >= difference:
                                break
                            volume = counts[key] - counts[partner]
                        left, grown = load - sent, target_load + sent
                        gap = max(others_high, left, grown) - min(others_low, left, grown)
                        gap2 = 0.0
                        if rows > 1:
                            sent2 = weights[1, key] - (weights[1, partner] if partner != NOBODY else 0.0)
                            left2, grown2 = loads[1, source] - sent2, loads[1, target] + sent2
                            gap2 = max(others_high2, left2, grown2) - min(others_low2, left2, grown2)
                            if gap >= gaps[0] and gap2 >= gaps[1]:
                                continue
                        elif gap >= gaps[0]:
                            continue
                        shift = cost
                        if partner != NOBODY:
                            if old[partner] == target:
                                shift += states[partner]
                            elif old[partner] == source:
                                shift -= states[partner]
                        migrated = max(moved + shift, 0.0)
                        # Most candidates fall here, by a bound that takes no root and hardly a division.
                        bound = utility(
                            mode,
                            balance * _least_factor(gap * per_gap, gap2 * per_gap2, linear, len(deviations)),
                            migrated * per_state,
                        )
                        if current - bound + 1e-12 * (current + bound) < best * volume:
                            continue
                        after = balance_penalty(gap, means[0], gap2, means[1], row_of, deviations, same)
                        if after >= bar:
                            continue
                        gain = (current - utility(mode, after, migrated / ideal)) / volume
                        if gain > best or (
                            gain == best
                            and _comes_first(
                                key,
                                partner,
                                target,
                                target_load,
                                best_key,
                                best_partner,
                                best_target,
                                loads[0, best_target],
                            )
                        ):
                            best, best_key, best_partner = gain, key, partner
                            best_source, best_target = source, target
        if best_key == NOBODY:
            break
        moved += _migration(states[best_key], old[best_key], best_source, best_target)
        place[best_key] = best_target
        times[best_key] += 1
        if best_partner == NOBODY:
            moves += 1
        else:
            moved += _migration(states[best_partner], old[best_partner], best_target, best_source)
            place[best_partner] = best_source
            times[best_partner] += 1
            swaps += 1
    return moves, swaps, limited


@compiled
def _migration(state: float, home: int, source: int, target: int) -> float:
    """What moving a key adds to the state moved; negative on the way home."""
    if home == source:
        return state
    if home == target:
        return -state
    return 0.0
