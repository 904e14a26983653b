"""Routing: tables, the consistent-hash ring, and routers."""

from evenkeel.routing.moves import Action, Moves
from evenkeel.routing.ragged import Ragged
from evenkeel.routing.ring import ConsistentHashRing
from evenkeel.routing.routers import ROUTERS, Router, make_router
from evenkeel.routing.table import RoutingTable, default_slots

__all__ = [
    "ROUTERS",
    "Action",
    "ConsistentHashRing",
    "Moves",
    "Ragged",
    "Router",
    "RoutingTable",
    "default_slots",
    "make_router",
]
