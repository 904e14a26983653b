"""Compiled automata over the events of each key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

Numbers = NDArray[np.int64]


@compiled
def _step(
    mask: int,
    now: Numbers,
    live: int,
    then: Numbers,
    variable_of: Numbers,
    next_starts: Numbers,
    next_states: Numbers,
    stamps: Numbers,
    stamp: int,
    parents: Numbers,
) -> tuple[int, int]:
    """Move all live states, the most wanted first, over an event; gives how many live on, and which one matched or -1.

    What is less wanted than a match is given up. ``parents`` gets the state from which each was reached.
    """
    count = 0
    for i in range(live):
        state = now[i]
        if (mask >> variable_of[state]) & 1:
            for j in range(next_starts[state], next_starts[state + 1]):
                target = next_states[j]
                if target < 0:
                    return count, state
                if stamps[target] != stamp:
                    stamps[target] = stamp
                    parents[target] = state
                    then[count] = target
                    count += 1
    return count, -1


@compiled
def find_matches(
    masks: Numbers,
    times: Numbers,
    starts: Numbers,
    waiting: Numbers,
    best: Numbers,
    live_starts: Numbers,
    live: Numbers,
    variable_of: Numbers,
    next_starts: Numbers,
    next_states: Numbers,
    within: int,
    watermark: int,
    overlap: bool,
) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """Find the matches in each key's events, going on where the last batch ended.

    The first ``waiting[k]`` events of key k were seen before: a match was sought from the first of them, with the
    states in ``live[live_starts[k]:live_starts[k + 1]]`` still alive, and ``best[k]`` events matched so far. Gives the
    matches (first event, number of events) and the same facts about what is still sought: where from, best, live.
    """
    states = len(variable_of)
    now, then = np.empty(states, np.int64), np.empty(states, np.int64)
    stamps, parents, stamp = np.full(states, -1), np.empty(states, np.int64), 0
    keys = len(waiting)
    matches, found = np.empty((len(masks), 2), np.int64), 0
    sought, sought_best = np.empty(keys, np.int64), np.zeros(keys, np.int64)
    new_starts, new_live = np.zeros(keys + 1, np.int64), np.empty(max(16, len(live)), np.int64)
    for key in range(keys):
        first, end = starts[key], starts[key + 1]
        at, longest, alive = first, 0, 0
        if waiting[key] > 0:
            at, longest = first + waiting[key], best[key]
            for i in range(live_starts[key], live_starts[key + 1]):
                now[alive] = live[i]
                alive += 1
        while first < end:
            if at == first:
                longest, alive = 0, next_starts[states + 1] - next_starts[states]
                now[:alive] = next_states[next_starts[states] : next_starts[states + 1]]
            while alive > 0 and at < end:
                if within >= 0 and times[at] - times[first] > within:
                    alive = 0
                    break
                stamp += 1
                alive, matched = _step(
                    masks[at], now, alive, then, variable_of, next_starts, next_states, stamps, stamp, parents
                )
                now, then = then, now
                at += 1
                if matched >= 0:
                    longest = at - first
            if alive > 0 and not (within >= 0 and times[first] + within < watermark):
                break  # more events may come
            if longest > 0:
                matches[found, 0], matches[found, 1] = first, longest
                found += 1
            first += longest if longest > 0 and not overlap else 1
            at, alive = first, 0
        sought[key] = first
        new_starts[key + 1] = new_starts[key]
        if first < end:
            sought_best[key] = longest
            new_starts[key + 1] += alive
            if new_starts[key + 1] > len(new_live):
                larger = np.empty(2 * new_starts[key + 1], np.int64)
                larger[: new_starts[key]] = new_live[: new_starts[key]]
                new_live = larger
            new_live[new_starts[key] : new_starts[key + 1]] = now[:alive]
    return matches[:found], sought, sought_best, new_starts, new_live[: new_starts[keys]]


@compiled
def classify(
    masks: Numbers, matches: Numbers, variable_of: Numbers, next_starts: Numbers, next_states: Numbers
) -> Numbers:
    """Give the variable that each event of each match stands for, match after match."""
    states = len(variable_of)
    now, then = np.empty(states, np.int64), np.empty(states, np.int64)
    stamps, stamp = np.full(states, -1), 0
    out = np.empty(matches[:, 1].sum(), np.int64)
    begin = 0
    for m in range(len(matches)):
        first, size = matches[m]
        parents = np.empty((size, states), np.int64)
        alive = next_starts[states + 1] - next_starts[states]
        now[:alive] = next_states[next_starts[states] : next_starts[states + 1]]
        matched = -1
        for i in range(size):
            stamp += 1
            alive, matched = _step(
                masks[first + i], now, alive, then, variable_of, next_starts, next_states, stamps, stamp, parents[i]
            )
            now, then = then, now
        for i in range(size - 1, -1, -1):
            out[begin + i] = variable_of[matched]
            if i > 0:
                matched = parents[i - 1, matched]
        begin += size
    return out
