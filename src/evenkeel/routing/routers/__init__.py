"""Routers, one per file, chosen by name."""

from __future__ import annotations

from typing import Any

from evenkeel.errors import UnknownNameError
from evenkeel.routing.routers.base import Router
from evenkeel.routing.routers.consistent_hash import ConsistentHash
from evenkeel.routing.routers.d_choices import DChoices
from evenkeel.routing.routers.key_grouping import KeyGrouping
from evenkeel.routing.routers.off_greedy import OffGreedy
from evenkeel.routing.routers.on_greedy import OnGreedy
from evenkeel.routing.routers.partial_key_grouping import PartialKeyGrouping
from evenkeel.routing.routers.shuffle import Shuffle
from evenkeel.routing.routers.static_potc import StaticPoTC
from evenkeel.routing.routers.universal_hash import UniversalHash
from evenkeel.routing.routers.w_choices import WChoices

__all__ = [
    "ROUTERS",
    "ConsistentHash",
    "DChoices",
    "KeyGrouping",
    "OffGreedy",
    "OnGreedy",
    "PartialKeyGrouping",
    "Router",
    "Shuffle",
    "StaticPoTC",
    "UniversalHash",
    "WChoices",
    "make_router",
]

ROUTERS: dict[str, type[Router]] = {
    router.name: router
    for router in (
        KeyGrouping,
        UniversalHash,
        ConsistentHash,
        Shuffle,
        StaticPoTC,
        OnGreedy,
        OffGreedy,
        PartialKeyGrouping,
        DChoices,
        WChoices,
    )
}
"""Every router by its name; a new one is one file and one line here."""


def make_router(name: str, channels: int, **options: Any) -> Router:
    """Make a router by its name.

    >>> make_router("pkg", 8, choices=3)
    PartialKeyGrouping(channels=8, sources=1, seed=0, choices=3)
    """
    if name not in ROUTERS:
        raise UnknownNameError("router", name, ROUTERS)
    return ROUTERS[name](channels, **options)
