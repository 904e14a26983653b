"""Every planner's distance to the optimum, on problems small enough to solve exactly."""

from __future__ import annotations

from statistics import mean

import numpy as np

from evenkeel.planning import PLANNERS, Exact, LoadSnapshot, make_planner
from evenkeel.routing import RoutingTable

CHANNELS, SLOTS, KEYS, TRACKED = 4, 16, 40, 30


def instance(seed: int) -> tuple[LoadSnapshot, RoutingTable]:
    """Forty Zipf keys in sixteen slots; state that has nothing to do with load."""
    rng = np.random.default_rng(seed)
    counts = np.round(1000 / np.arange(1, KEYS + 1) ** rng.choice([0.5, 0.8, 1.0]))
    hashes = rng.integers(-(2**63), 2**63 - 1, KEYS)
    snapshot = LoadSnapshot.of_keys(hashes, counts, slots=SLOTS, track=TRACKED, state_bytes=rng.integers(1, 100, KEYS))
    return snapshot, RoutingTable.even(CHANNELS, slots=SLOTS)


def run(quick: bool) -> list[dict[str, object]]:
    seeds = range(1 if quick else 8)
    rows = []
    for name in PLANNERS:
        if name == "exact":
            continue
        over, best, moved, fewest = [], [], [], []
        for seed in seeds:
            snapshot, table = instance(seed)
            plan = make_planner(name).plan(snapshot, table)
            sent = plan.movement.state_bytes
            evenest = Exact(budget_bytes=sent, time_limit_s=3, gap=1e-3).plan(snapshot, table)
            thriftiest = Exact(max_skewness=max(plan.after.skewness, 1.0) + 1e-9, time_limit_s=3, gap=1e-3).plan(
                snapshot, table
            )
            over.append(100 * (plan.after.skewness - 1))
            best.append(100 * (evenest.after.skewness - 1))
            moved.append(plan.movement.percent)
            fewest.append(thriftiest.movement.percent)
        rows.append(
            {
                "what": f"{name}: fullest channel over average, state moved (mean of {len(over)} instances)",
                "value": mean(over),
                "unit": f"% over, {mean(moved):.1f} % moved",
                "ratio": mean(best),
                "peer": f"optimum: % over for the same bytes; {mean(fewest):.1f} % would do for the same evenness",
            }
        )
    return rows
