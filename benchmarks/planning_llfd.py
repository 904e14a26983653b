"""Planners of the least-load-fit family: a million tracked keys, as the papers' claims are about."""

from __future__ import annotations

from benchmarks.workloads import zipf_keys
from evenkeel.planning import Problem
from evenkeel.planning.ftlb import Ftlb
from evenkeel.planning.llfd import Llfd
from evenkeel.planning.min_table import MinTable
from evenkeel.planning.mixed import Mixed
from evenkeel.routing import Ragged, RoutingTable

CHANNELS = 40
THETA_MAX = 0.02
TARGET_MS = 1000
SLOTS = 4096


def cases(quick):
    """(label, callable, target in ms) for each planner; the first call compiles."""
    keys = 100_000 if quick else 1_000_000
    snapshot = zipf_keys(keys)
    table = RoutingTable.even(CHANNELS, SLOTS)
    picked = snapshot.key_hashes[:: keys // 10_000]
    pinned = table.with_pins(picked, picked // SLOTS % CHANNELS)
    backups = Ragged.of([[(channel + 1) % CHANNELS] for channel in table.slot_channels.tolist()])
    replicated = table.evolve(slot_backups=backups)
    problems = {
        "llfd": (Llfd(theta_max=THETA_MAX), table),
        "min_table": (MinTable(theta_max=THETA_MAX), pinned),
        "mixed, 10,000 pins at first, at most 5,000": (Mixed(theta_max=THETA_MAX, table_limit=5_000), pinned),
        "ftlb": (Ftlb(theta_max=THETA_MAX), table),
        "ftlb, one replica each": (Ftlb(theta_max=THETA_MAX), replicated),
    }
    return [
        (
            f"{label}: {keys:,} keys, {CHANNELS} channels, θ_max {THETA_MAX}",
            lambda planner=planner, before=before: planner.propose(Problem((snapshot,), before, CHANNELS)),
            TARGET_MS,
        )
        for label, (planner, before) in problems.items()
    ]
