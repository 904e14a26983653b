"""Planners: from measured loads to the next routing table; one per file, chosen by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import UnknownNameError
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.clb import Clb
from evenkeel.planning.consistent_hash import ConsistentHash
from evenkeel.planning.dlb import DlbH, DlbL
from evenkeel.planning.elb import Elb
from evenkeel.planning.exact import Exact
from evenkeel.planning.flux import Flux
from evenkeel.planning.ftlb import Ftlb
from evenkeel.planning.items import Items
from evenkeel.planning.keel import Keel
from evenkeel.planning.llfd import Llfd
from evenkeel.planning.lptf import Lptf
from evenkeel.planning.min_mig import MinMig
from evenkeel.planning.min_table import MinTable
from evenkeel.planning.mixed import Mixed
from evenkeel.planning.plan import Balance, Movement, Plan
from evenkeel.planning.readj import Readj
from evenkeel.planning.redist import Redist
from evenkeel.planning.scan import Scan
from evenkeel.planning.snapshot import LoadSnapshot
from evenkeel.planning.stay_put import StayPut
from evenkeel.planning.uhlb import Uhlb
from evenkeel.planning.validate import validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenkeel.routing import RoutingTable

__all__ = [
    "PLANNERS",
    "Balance",
    "Clb",
    "ConsistentHash",
    "DlbH",
    "DlbL",
    "Elb",
    "Exact",
    "Flux",
    "Ftlb",
    "Items",
    "Keel",
    "Llfd",
    "LoadSnapshot",
    "Lptf",
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
    "Uhlb",
    "make_planner",
    "plan",
    "validate",
    "warm_up",
]

PLANNERS: dict[str, type[Planner]] = {
    planner.name: planner
    for planner in (
        StayPut,
        Uhlb,
        ConsistentHash,
        Lptf,
        Flux,
        Elb,
        Clb,
        DlbH,
        DlbL,
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


def warm_up(planner: Planner, table: RoutingTable) -> None:
    """Plan for made-up loads, so that what a planner needs is compiled, or loaded, before a batch waits for it."""
    keys = np.arange(64)
    loads = LoadSnapshot.of_keys(keys, 1 / (1.0 + keys), state_bytes=np.ones(64, np.int64), slots=table.slots)
    moved = planner.plan(loads, table).table
    planner.plan(loads, moved, table.channels + 1)
