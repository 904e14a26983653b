"""Compiled loops of scan and redist, and what readj shares with them.

Keys come hottest first. ``weights`` has one row per kind of load (linear, quadratic) and one column per key; ``base``
is, by row and channel, the load of what is not placed here. ``row_of[k]`` tells which row resource k is measured by,
and ``deviations[k]`` is the paper's θ of it. ``mode`` numbers the utility functions as their enum does. Loads are in
tuples instead of shares: every penalty is a ratio, and whole numbers add up without rounding, so that equal placements
compare as equal.
"""

from __future__ import annotations

from math import inf, log1p

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Channels = NDArray[np.int32]

NOBODY = -1


@compiled
def balance_penalty(
    gap: float, mean: float, gap2: float, mean2: float, row_of: Integers, deviations: Floats, same: bool
) -> float:
    """ρ from the gap and the mean of each row of loads; as :func:`evenkeel.metrics.balance_penalty`, bit for bit."""
    resources = len(deviations)
    if resources == 0:
        return 0.0
    if same:  # all resources have one penalty, which is also the mean of them
        return gap / (deviations[0] * mean) if gap > 0.0 else 0.0
    largest = 0.0
    for k in range(resources):
        largest = max(largest, _one_penalty(gap, mean, gap2, mean2, row_of[k], deviations[k]))
    if largest == 0.0:
        return 0.0
    product = 1.0
    for k in range(resources):
        product *= _one_penalty(gap, mean, gap2, mean2, row_of[k], deviations[k]) / largest
    return largest * product ** (1.0 / resources)


@compiled
def _one_penalty(gap: float, mean: float, gap2: float, mean2: float, row: int, deviation: float) -> float:
    if row == 0:
        return gap / (deviation * mean) if gap > 0.0 else 0.0
    return gap2 / (deviation * mean2) if gap2 > 0.0 else 0.0


@compiled
def utility(mode: int, balance: float, migration: float) -> float:
    """U(ρ, γ), lower is better."""
    if mode == 0:
        return balance
    if mode == 1:
        return balance + migration
    if mode == 2:
        return balance + log1p(migration)
    if mode == 3:
        return balance * (1.0 + migration)
    return balance * (1.0 + log1p(migration))


@compiled
def _gap_with(loads: Floats, channel: int, weight: float, fullest: float, least: Floats, least_at: Integers) -> float:
    """The gap between the fullest and the emptiest channel, once ``channel`` has ``weight`` more."""
    grown = loads[channel] + weight
    emptiest = least[1] if least_at[0] == channel else least[0]
    return max(fullest, grown) - min(emptiest, grown)


@compiled
def _two_least(loads: Floats, least: Floats, least_at: Integers) -> float:
    """Find the two least loaded channels, the lower one first where they tie; gives the greatest load."""
    least[0] = least[1] = inf
    least_at[0] = least_at[1] = NOBODY
    fullest = -inf
    for channel in range(len(loads)):
        load = loads[channel]
        fullest = max(fullest, load)
        if load < least[0]:
            least[1], least_at[1] = least[0], least_at[0]
            least[0], least_at[0] = load, channel
        elif load < least[1]:
            least[1], least_at[1] = load, channel
    return fullest


@compiled
def _front(loads: Floats, least_at: Integers, choose: bool, front: Integers, better_one: Integers) -> int:
    """List the channels that can be best for a key that must move, and by whom each is bettered; gives their number.

    A channel that has more load of every kind than another has no lower penalty. It is worth a look only if it is
    bettered by one channel alone: for a key whose home is that one. To find out pays where many keys are compared.
    """
    rows, channels = loads.shape
    if rows == 1:
        front[0], better_one[0] = least_at[0], NOBODY
        if channels > 1:
            front[1], better_one[1] = least_at[1], least_at[0]
        return min(channels, 2)
    size = 0
    for channel in range(channels):
        betters, better = 0, NOBODY
        for other in range(channels if choose else 0):
            first = loads[0, other] - loads[0, channel]
            if loads[1, other] <= loads[1, channel] and (first < 0.0 or (first == 0.0 and other < channel)):
                betters, better = betters + 1, other
                if betters == 2:
                    break
        if betters < 2:
            front[size], better_one[size] = channel, better
            size += 1
    return size


@compiled
def place(
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
    choose: bool,
    out: Channels,
) -> None:
    """Place every key anew: scan, or with ``choose`` redist."""
    rows, keys = weights.shape
    same = rows == 1 and (len(deviations) == 0 or deviations.min() == deviations.max())
    loads = base.copy()
    totals = np.zeros(rows)
    for row in range(rows):
        totals[row] = base[row].sum()
    least = np.empty((2, 2))
    least_at = np.empty((2, 2), np.int64)
    fullest = np.zeros(2)
    waiting = np.arange(keys)
    front = np.empty(channels, np.int64)
    better_one = np.empty(channels, np.int64)
    gap2, mean2 = 0.0, 1.0
    for step in range(keys):
        for row in range(rows):
            fullest[row] = _two_least(loads[row], least[row], least_at[row])
        size = _front(loads, least_at[0], choose, front, better_one)
        best, best_channel, best_at = inf, NOBODY, step
        # waiting[step:] are the keys still to be placed, hottest first.
        for at in range(step, keys if choose else step + 1):
            key = waiting[at]
            volume = counts[key] if choose else 1.0
            home = old[key]
            stays = moved / ideal
            moves = (moved + states[key]) / ideal
            mean = (totals[0] + weights[0, key]) / channels
            if rows > 1:
                mean2 = (totals[1] + weights[1, key]) / channels
            own_best, own_channel, away_load = inf, NOBODY, -inf
            if home < channels:
                gap = _gap_with(loads[0], home, weights[0, key], fullest[0], least[0], least_at[0])
                if rows > 1:
                    gap2 = _gap_with(loads[1], home, weights[1, key], fullest[1], least[1], least_at[1])
                own_best = (
                    utility(mode, balance_penalty(gap, mean, gap2, mean2, row_of, deviations, same), stays) / volume
                )
                own_channel = home
            for at_front in range(size):
                channel = front[at_front]
                better = better_one[at_front]
                if channel == home or (better != NOBODY and better != home):  # noqa: PLR1714  # a set is slow
                    continue
                gap = _gap_with(loads[0], channel, weights[0, key], fullest[0], least[0], least_at[0])
                if rows > 1:
                    gap2 = _gap_with(loads[1], channel, weights[1, key], fullest[1], least[1], least_at[1])
                value = utility(mode, balance_penalty(gap, mean, gap2, mean2, row_of, deviations, same), moves) / volume
                if value < own_best or (value == own_best and loads[0, channel] < away_load):
                    own_best, own_channel, away_load = value, channel, loads[0, channel]
            if own_best < best:
                best, best_channel, best_at = own_best, own_channel, at
        key = waiting[best_at]
        for at in range(best_at, step, -1):
            waiting[at] = waiting[at - 1]
        waiting[step] = key
        out[key] = best_channel
        if best_channel != old[key]:
            moved += states[key]
        for row in range(rows):
            loads[row, best_channel] += weights[row, key]
            totals[row] += weights[row, key]
