"""A stream followed tuple by tuple, key by key, with dictionaries: slow, and plain to see."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from evenkeel.sim import Histograms

KEYS = [int(key) for key in np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 12)]

streams = st.lists(st.lists(st.sampled_from(KEYS), max_size=25), min_size=1, max_size=6)
"""Windows of tuples, each the hash of its key."""


def histograms(windows: list[list[int]], **more) -> Histograms:
    """The stream as a workload; its last window is there even if it is empty."""
    rows = [(number, key, count) for number, window in enumerate(windows) for key, count in Counter(window).items()]
    rows.append((len(windows) - 1, KEYS[0], 0))
    window, key, count = zip(*rows, strict=True)
    return Histograms(pa.table({"window": window, "hash": key, "count": count}), **more)


def state_after(windows: list[list[int]], number: int, model) -> dict[int, int]:
    """The bytes that each key holds at the end of a window, by the model's own words."""
    powers = {"constant": 0, "linear": 1, "sqrt": 0.5, "quadratic": 2}
    start = 0 if model.windows is None else max(0, number + 1 - model.windows)
    tuples = Counter(key for window in windows[start : number + 1] for key in window)
    held = {}
    for key, count in tuples.items():
        counted = count if model.at_most is None else min(count, model.at_most)
        held[key] = round(model.bytes_per_unit * counted ** powers[model.growth])
    return held


def moved_between(old, new, state: dict[int, int]) -> int:
    """The bytes of all keys that have another home in the new table."""
    return sum(size for key, size in state.items() if home(old, key) != home(new, key))


def home(table, key: int) -> int:
    for pin, channel in zip(table.pin_hashes.tolist(), table.pin_channels.tolist(), strict=True):
        if pin == key:
            return channel
    return int(table.slot_channels[key % table.slots])


def loads_tuple_by_tuple(router, tuples, sources=None) -> tuple[list[int], int]:
    """Route one tuple at a time; the loads, and the number of (key, channel) pairs."""
    loads, pairs = defaultdict(int), set()
    for place, key in enumerate(tuples):
        source = None if sources is None else [sources[place]]
        channel = int(router.route(np.array([key]), source)[0])
        loads[channel] += 1
        pairs.add((key, channel))
    return [loads[channel] for channel in range(router.channels)], len(pairs)
