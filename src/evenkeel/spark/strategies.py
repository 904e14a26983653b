"""A strategy: who decides where keys go. By name or as an object."""

from __future__ import annotations

from dataclasses import dataclass

from evenkeel.control import Controller
from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.planning import PLANNERS, Planner, make_planner
from evenkeel.routing import ROUTERS, Router, make_router

__all__ = ["Strategy", "as_strategy"]

_REMEMBER_KEYS = ("potc", "on_greedy", "off_greedy")


@dataclass(frozen=True, slots=True)
class Strategy:
    """A controller that changes the table while the query runs; or a router that looks at every tuple."""

    controller: Controller
    router: Router | None = None

    @property
    def splits(self) -> bool:
        """Whether tuples of one key go to several channels."""
        return self.router is not None and not self.router.keeps_keys_together


def as_strategy(strategy: str | Planner | Controller | Router, channels: int) -> Strategy:
    """Give the strategy that is meant.

    ``"key_grouping"`` is the table that stays as it is, which routes as ``hash mod N`` does. Routers that decide once
    for each key and remember it work for a single source; a Spark job has one per map task.
    """
    if isinstance(strategy, str):
        if strategy == "key_grouping":
            strategy = "stay_put"
        if strategy in PLANNERS:
            strategy = make_planner(strategy)
        elif strategy in ROUTERS:
            strategy = make_router(strategy, channels)
        else:
            raise UnknownNameError("strategy", strategy, sorted({*PLANNERS, *ROUTERS} - {*_REMEMBER_KEYS}))
    if isinstance(strategy, Router):
        if strategy.name in _REMEMBER_KEYS:
            raise InvalidArgumentError(
                f"{strategy.name!r} remembers a choice for each key, which the map tasks of a Spark job cannot share. "
                "Use it in simulations; on Spark, take 'keel' or 'pkg'."
            )
        if strategy.channels != channels:
            raise InvalidArgumentError(f"The router is for {strategy.channels} channels, the stage has {channels}.")
        return Strategy(Controller(make_planner("stay_put")), strategy)
    return Strategy(Controller(strategy) if isinstance(strategy, Planner) else strategy)
