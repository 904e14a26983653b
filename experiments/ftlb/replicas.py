"""Hash tables with a backup for every slot, and the planners that Figures 8 and 9 compare on drifting keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evenkeel.planning import Ftlb, MinTable, Mixed, Readj
from evenkeel.routing import ConsistentHashRing, Ragged, RoutingTable
from evenkeel.sim import Drifting, Planned, Zipf, replay

__all__ = ["PLANNERS", "hashed", "planned", "replicated"]

PLANNERS = ("FTLB", "Mixed", "MRT", "Readj")
TABLE_LIMIT = 3000
TRACKED_BY_READJ = 3000


def hashed(tasks: int) -> RoutingTable:
    """Give the consistent hash that the paper starts from."""
    return RoutingTable.from_ring(ConsistentHashRing(tasks))


def replicated(tasks: int, seed: int = 0) -> RoutingTable:
    """Give the same with a backup of every slot on another task."""
    table = hashed(tasks)
    others = np.random.default_rng(seed).integers(1, tasks, table.slots)
    backups = ((table.slot_channels + others) % tasks).astype(np.int32)
    return table.evolve(slot_backups=Ragged(np.arange(table.slots + 1), backups))


def planned(keys: int, theta_max: float, tasks: int, windows: int, rate: float) -> list[dict[str, Any]]:
    """Average planning time, moved state and skewness of each planner while keys drift across tasks."""
    table = hashed(tasks)
    stream = Drifting(Zipf(keys, 0.8, tuples=10 * keys), rate=rate, across=table)
    done = replay(
        stream,
        {
            "FTLB": Planned(Ftlb(theta_max=theta_max, table_limit=TABLE_LIMIT), table=replicated(tasks)),
            "Mixed": Planned(Mixed(theta_max=theta_max, table_limit=TABLE_LIMIT), table=table),
            "MRT": Planned(MinTable(theta_max=theta_max), table=table),
            "Readj": Planned(Readj(), table=table, track=TRACKED_BY_READJ),
        },
        channels=tasks,
        windows=windows,
    )
    rows = []
    for name in done.strategies:
        moved = 100 * done.column(name, "moved_bytes") / done.column(name, "state_bytes")
        rows.append(
            {
                "keys": keys,
                "theta_max": theta_max,
                "strategy": name,
                "plan_ms": float(np.median(done.column(name, "plan_ms"))),
                "moved_percent": float(moved.mean()),
                "switches": int(done.column(name, "switches").sum()),
                "pins": int(done.column(name, "pins")[-1]),
                "skewness": float(done.column(name, "skewness")[1:].mean()),
            }
        )
    return rows


def warmed_up() -> None:
    """Compile what is compiled on first use, so that the first measurement does not pay for it."""
    planned(200, 0.02, 3, 2, 0.5)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    """Put rows into a table."""
    return pa.Table.from_pylist(rows)
