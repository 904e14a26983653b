"""Planners: how long each takes, and how that grows with keys and channels."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks import planning_dealing, planning_gedik, planning_llfd
from benchmarks.measure import time_together
from benchmarks.workloads import zipf, zipf_keys
from evenkeel.hashing import hash_keys
from evenkeel.planning import PLANNERS, Keel, LoadSnapshot, Problem, make_planner
from evenkeel.routing import RoutingTable


def run(quick: bool) -> list[dict[str, object]]:
    listed = [
        *planning_gedik.cases(quick),
        *planning_dealing.cases(quick),
        *planning_llfd.cases(quick),
        *keel_cases(),
    ]
    timings = time_together(5, **{label: call for label, call, _ in listed})
    rows = [
        {
            "what": label,
            "value": timings[label].median * 1e3,
            "unit": "ms",
            "target": f"<= {limit:g} ms" if limit else "",
            "met": timings[label].median * 1e3 <= limit if limit else None,
            **timings[label].repeated,
        }
        for label, _, limit in listed
    ]
    return [*rows, *growth(quick)]


def keel_cases():
    """4,096 slots and 1,000 pins on 64 channels, with and without a budget."""
    hashes = hash_keys(np.arange(100_000))
    for skew in (0.6, 1.0):
        snapshot = LoadSnapshot.of_keys(hashes, zipf(100_000, skew), slots=4096, track=1000)
        pinned = RoutingTable.even(64).with_pins(snapshot.key_hashes, np.arange(1000) % 64)
        problem = Problem((snapshot,), pinned, 64)
        label = f"keel, 4,096 slots + 1,000 pins, N 64, Zipf {skew:g}"
        yield label, lambda problem=problem: Keel().propose(problem), 50
        budget = int(snapshot.total("state_bytes") // 100)
        yield (
            f"{label}, at most 1 % of the state",
            lambda problem=problem, budget=budget: Keel(budget_bytes=budget).propose(problem),
            None,
        )


# Four times the channels: nearly nothing for most, whose work is in the keys. The Gedik planners track R ∝ N keys and
# take O(RN log N), O(R²N log N) and O(R³ log N); the DLB planners make a step per channel and key that leaves it.
GROWTH_WITH_CHANNELS = {"scan": 21, "redist": 83, "readj": 83, "dlb_h": 16, "dlb_l": 16}


def growth(quick: bool) -> list[dict[str, object]]:
    """Time at each size over the time at a tenth of the keys, or a quarter of the channels."""
    rows = []
    largest = 100_000 if quick else 1_000_000
    for name in PLANNERS:
        if name == "exact":
            continue
        sizes = [(keys, 40) for keys in (largest // 100, largest // 10, largest)]
        sizes += [(largest // 10, channels) for channels in (10, 160)]
        problems = {size: Problem((zipf_keys(size[0]),), RoutingTable.even(size[1], 4096), size[1]) for size in sizes}
        planner = make_planner(name)
        timings = time_together(
            3, **{str(size): partial(planner.propose, problem) for size, problem in problems.items()}
        )
        by_keys = [timings[str(size)].median * 1e3 for size in sizes[:3]]
        by_channels = [timings[str(size)].median * 1e3 for size in (sizes[3], sizes[1], sizes[4])]
        rows.append(
            {
                "what": f"growth of {name}: {largest // 100:,} → {largest // 10:,} → {largest:,} tracked keys, N 40",
                "value": by_keys[2],
                "unit": f"ms; {by_keys[0]:.2f} → {by_keys[1]:.2f} → {by_keys[2]:.1f} ms",
                "ratio": by_keys[2] / by_keys[1],
                "peer": "its own time at a tenth of the keys",
                "target": "ratio <= 15 (n log n)",
                "met": by_keys[2] / by_keys[1] <= 15,
            }
        )
        rows.append(
            {
                "what": f"growth of {name}: N 10 → 40 → 160, {largest // 10:,} tracked keys",
                "value": by_channels[2],
                "unit": f"ms; {by_channels[0]:.2f} → {by_channels[1]:.2f} → {by_channels[2]:.1f} ms",
                "ratio": by_channels[2] / by_channels[1],
                "peer": "its own time at a quarter of the channels",
                "target": f"ratio <= {GROWTH_WITH_CHANNELS.get(name, 4)}",
                "met": by_channels[2] / by_channels[1] <= GROWTH_WITH_CHANNELS.get(name, 4),
            }
        )
    return rows
