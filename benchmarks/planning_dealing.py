"""Planners that deal items out: LPTF and DLB over a million tracked keys, CLB over a day of hourly windows."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads import zipf_keys
from evenkeel.planning import LoadSnapshot, Problem
from evenkeel.planning.clb import Clb
from evenkeel.planning.dlb import DlbH, DlbL
from evenkeel.planning.lptf import Lptf
from evenkeel.routing import RoutingTable

CHANNELS = 40
SLOTS = 4096


def cases(quick):
    """(label, callable, target in ms) for each planner; the first call compiles."""
    keys = 100_000 if quick else 1_000_000
    skewed = Problem((zipf_keys(keys),), skewed_table(), CHANNELS)
    day = Problem(tuple(waves(slots=1000, windows=24)), RoutingTable.even(32, 1000), 32)
    dealt = {
        "lptf": Lptf(),
        "dlb_h, threshold 15 %": DlbH(),
        "dlb_h, threshold 0": DlbH(threshold=0),
        "dlb_l, threshold 15 %": DlbL(),
        "dlb_l, threshold 0": DlbL(threshold=0),
    }
    correlated = {"clb, as published": Clb(), "clb, balance_means": Clb(balance_means=True)}
    return [
        *(
            (f"{label}: {keys:,} keys, {CHANNELS} channels", lambda planner=planner: planner.propose(skewed), 1000)
            for label, planner in dealt.items()
        ),
        *(
            (f"{label}: 1,000 slots, 24 windows, 32 channels", lambda planner=planner: planner.propose(day), 200)
            for label, planner in correlated.items()
        ),
    ]


def skewed_table():
    """Low channels have many slots, high ones few: a relative standard deviation of some 120 %."""
    return RoutingTable(np.random.default_rng(1).integers(0, CHANNELS, SLOTS) ** 2 // CHANNELS, CHANNELS)


def waves(slots, windows):
    """Slots of very different loads, in seven waves, with noise."""
    rng = np.random.default_rng(2)
    size = rng.zipf(1.5, slots).clip(max=5000) * 100.0
    for window in range(windows):
        loads = size * (1 + 0.5 * np.sin(window / 4 + np.arange(slots) % 7)) * rng.uniform(0.5, 1.5, slots)
        yield LoadSnapshot(loads, loads, loads.astype(np.int64), [], [], [], [])
