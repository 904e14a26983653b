"""Scan, redist and readj at the paper's defaults: 10⁶ keys, Zipf 1, ten channels, LCL, APM."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.hashing import hash_keys
from evenkeel.metrics import ResourceProfile
from evenkeel.planning import LoadSnapshot, Problem
from evenkeel.planning.readj import Readj
from evenkeel.planning.redist import Redist
from evenkeel.planning.scan import Scan
from evenkeel.routing import ConsistentHashRing, RoutingTable

if TYPE_CHECKING:
    from collections.abc import Callable

CHANNELS = 10
SLOTS = 4096
TRACKED = 4000  # what a lossy counter would keep; the rest is in the slots
LIMITS_MS = {("scan", 0.1): 5, ("scan", 0.008): 5, ("redist", 0.008): 50, ("readj", 0.1): 5, ("readj", 0.008): 100}


def cases(quick: bool) -> list[tuple[str, Callable[[], object], float | None]]:
    """Label, what to time, and the most milliseconds that its median may take."""
    keys = 100_000 if quick else 1_000_000
    counts = np.floor(1e8 / np.arange(1, keys + 1) / np.log(keys))
    window = LoadSnapshot.of_keys(hash_keys(np.arange(keys)), counts, slots=SLOTS, track=TRACKED)
    found = []
    for before in (CHANNELS - 1, CHANNELS):
        problem = Problem((window,), RoutingTable.from_ring(ConsistentHashRing(before), SLOTS), CHANNELS)
        for planner in (Scan, Redist, Readj):
            for share in (0.1, 0.008):
                label = f"{planner.name}, σ = {share}, N {before} → {CHANNELS}"
                run = partial(planner(untracked_share=share).propose, problem)
                found.append((label, run, LIMITS_MS.get((planner.name, share))))
        quadratic = Readj(ResourceProfile.named(computation="quadratic"), untracked_share=0.008)
        label = f"readj, σ = 0.008, quadratic computation (LQL), N {before} → {CHANNELS}"
        found.append((label, partial(quadratic.propose, problem), None))
    return found
