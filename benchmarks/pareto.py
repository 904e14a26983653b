"""keel beside every other planner: with their bytes, it should be at least as even."""

from __future__ import annotations

from benchmarks.workloads import Workload, all_workloads
from evenkeel.errors import InvalidArgumentError
from evenkeel.planning import PLANNERS, Keel, Plan, make_planner

OTHERS = [name for name in PLANNERS if name not in {"exact", "keel"}]


def compare(workload: Workload, name: str) -> tuple[Plan, Plan]:
    """The other's plan, and keel's with the other's bytes as its budget."""
    other = make_planner(name).plan(workload.snapshots, workload.table, workload.channels)
    keel = Keel(tolerance=0, budget_bytes=other.movement.state_bytes, max_pins=len(workload.snapshots[-1].key_hashes))
    return other, keel.plan(workload.snapshots, workload.table, workload.channels)


def run(quick: bool) -> list[dict[str, object]]:
    rows = []
    for workload in all_workloads(quick):
        for name in OTHERS:
            try:
                other, keel = compare(workload, name)
            except InvalidArgumentError as refusal:
                rows.append({"what": f"{workload.name}: {name}", "value": float("nan"), "unit": str(refusal)})
                continue
            average = workload.snapshots[-1].total() / workload.channels
            mine, theirs = keel.after.imbalance / average, other.after.imbalance / average
            rows.append(
                {
                    "what": f"{workload.name}: {name}",
                    "value": 100 * theirs,
                    "unit": f"% over average, {other.movement.percent:.1f} % moved, {other.seconds * 1e3:.0f} ms",
                    "ratio": 100 * mine,
                    "peer": f"keel: % over average, {keel.movement.percent:.1f} % moved, {keel.seconds * 1e3:.0f} ms",
                    "target": "keel not above",
                    "met": mine <= theirs + 1e-4,
                }
            )
    return rows
