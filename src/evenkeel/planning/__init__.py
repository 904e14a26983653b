"""Planners: from measured loads to the next routing table; one per file, chosen by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenkeel.errors import UnknownNameError
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.consistent_hash import ConsistentHash
from evenkeel.planning.exact import Exact
from evenkeel.planning.ftlb import Ftlb
from evenkeel.planning.items import Items
from evenkeel.planning.keel import Keel
from evenkeel.planning.llfd import Llfd
from evenkeel.planning.min_mig import MinMig
from evenkeel.planning.min_table import MinTable
from evenkeel.planning.mixed import Mixed
from evenkeel.planning.plan import Balance, Movement, Plan
from evenkeel.planning.readj import Readj
from evenkeel.planning.redist import Redist
from evenkeel.planning.scan import Scan
from evenkeel.planning.snapshot import LoadSnapshot
from evenkeel.planning.stay_put import StayPut
from evenkeel.planning.validate import validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenkeel.routing import RoutingTable

__all__ = [
    "PLANNERS",
    "Balance",
    "ConsistentHash",
    "Exact",
    "Ftlb",
    "Items",
    "Keel",
    "Llfd",
    "LoadSnapshot",
    "MinMig",
    "MinTable",
    "Mixed",
    "Movement",
    "Plan",
    "Planner",
    "Problem",
    "Proposal",
    "Readj",
    "Redist",
    "Scan",
    "StayPut",
    "make_planner",
    "plan",
    "validate",
]

PLANNERS: dict[str, type[Planner]] = {
    planner.name: planner
    for planner in (
        StayPut,
        ConsistentHash,
        Scan,
        Redist,
        Readj,
        Llfd,
        MinTable,
        MinMig,
        Mixed,
        Ftlb,
        Exact,
        Keel,
    )
}
"""Every planner by its name; a new one is one file and one line here."""


def make_planner(name: str, **options: Any) -> Planner:
    """Make a planner by its name, with the options of its class."""
    if name not in PLANNERS:
        raise UnknownNameError("planner", name, PLANNERS)
    return PLANNERS[name](**options)


def plan(
    planner: str | Planner,
    snapshots: LoadSnapshot | Sequence[LoadSnapshot],
    table: RoutingTable,
    channels: int | None = None,
) -> Plan:
    """Plan with a planner, or one chosen by name with its default options."""
    chosen = make_planner(planner) if isinstance(planner, str) else planner
    return chosen.plan(snapshots, table, channels)
