"""What can be replayed: routers, planners and controllers, with the options of a replay."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evenkeel.control import Controller
from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.planning import PLANNERS, Planner, StayPut
from evenkeel.routing import ROUTERS, Router, RoutingTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Controlled", "Planned", "Routed", "Strategy", "as_strategy"]


@dataclass(frozen=True, eq=False)
class Routed:
    """A router, which sees the stream tuple by tuple.

    Parameters
    ----------
    router
        A name, a router (copied before use, so that it can be used again; its own number of channels counts), a routing
        table, or a function from the number of channels to a router.
    options
        For a router by name.
    level
        ``"tuples"`` routes every tuple, ``"histogram"`` every key once, which is the same for routers that neither
        split keys nor look at the order, and much faster; ``"auto"`` takes it where it may.
    flush_every
        Partial states are handed on to be merged, and dropped, every so many windows; never by default.
    count_pairs
        Whether to count the (key, channel) pairs, which is what the channels must hold: 12 to 48 bytes of memory for
        each.
    afresh
        Whether the router starts anew in each window, as it does in the map tasks of each batch on Spark; else it
        remembers loads and hot keys from window to window.
    """

    router: str | Router | RoutingTable | Callable[[int], Router]
    options: Mapping[str, Any] = field(default_factory=dict)
    level: Literal["auto", "tuples", "histogram"] = "auto"
    flush_every: int | None = None
    count_pairs: bool = True
    afresh: bool = False

    def __post_init__(self) -> None:
        if self.level not in {"auto", "tuples", "histogram"}:
            raise InvalidArgumentError(f"level must be 'auto', 'tuples' or 'histogram'; got {self.level!r}.")
        _check_least("flush_every", self.flush_every)


@dataclass(frozen=True, eq=False)
class Planned:
    """A planner that is asked after every window, or every few, and obeyed.

    Parameters
    ----------
    planner
        A name (with its default options), or a planner.
    every
        Windows between two plans (1/f).
    look_back
        How many windows the planner sees; as many as ``every`` by default.
    track
        How many keys are measured one by one, the costliest; the others by slot. None: all of them.
    table
        The first table; by default the slots are dealt out evenly.
    backup_cost
        What a tuple costs at each backup of its key, as a share of its cost.
    """

    planner: str | Planner
    every: int = 1
    look_back: int | None = None
    track: int | None = None
    table: RoutingTable | None = None
    backup_cost: float = 0.0

    def __post_init__(self) -> None:
        _check_least("every", self.every)
        _check_least("look_back", self.look_back)
        _check_least("track", self.track, 0)
        _check_least("backup_cost", self.backup_cost, 0)


@dataclass(frozen=True, eq=False)
class Controlled:
    """A controller, to which every window is a batch.

    Parameters
    ----------
    controller
        Copied before use, so that it can be used again. Its options say how many keys are tracked.
    table
        The first table; by default the slots are dealt out evenly.
    ms_per_load
        How long one unit of load takes, for the controller's weighing of gain against cost; by default what the
        replay's service says, else 0.01 ms.
    backup_cost
        As for :class:`Planned`.
    heavy_keys
        How many keys each channel reports one by one, the costliest; the others by slot. The engine's report 100.
    """

    controller: Controller
    table: RoutingTable | None = None
    ms_per_load: float | None = None
    backup_cost: float = 0.0
    heavy_keys: int = 100

    def __post_init__(self) -> None:
        _check_least("backup_cost", self.backup_cost, 0)
        _check_least("heavy_keys", self.heavy_keys, 0)


Strategy: TypeAlias = str | Router | RoutingTable | Planner | Controller | Routed | Planned | Controlled
"""What :func:`evenkeel.sim.replay` takes for a strategy; a name is that of a router or a planner."""


def as_strategy(strategy: Strategy | Callable[[int], Router]) -> Routed | Planned | Controlled:
    """Give a strategy with its options."""
    if isinstance(strategy, (Routed, Planned, Controlled)):
        return strategy
    if isinstance(strategy, str):
        return _named(strategy)
    if isinstance(strategy, Planner):
        return Planned(strategy)
    if isinstance(strategy, Controller):
        return Controlled(strategy)
    if isinstance(strategy, RoutingTable):
        return Planned(StayPut(), table=strategy)
    if isinstance(strategy, Router) or callable(strategy):
        return Routed(strategy)
    raise InvalidArgumentError(
        f"A strategy is a name, a router, a routing table, a planner or a controller; got {type(strategy).__name__}."
    )


def _named(name: str) -> Routed | Planned:
    if name in ROUTERS and name in PLANNERS:
        raise InvalidArgumentError(
            f"{name!r} is both a router and a planner; pass Routed({name!r}) or Planned({name!r})."
        )
    if name in ROUTERS:
        return Routed(name)
    if name in PLANNERS:
        return Planned(name)
    raise UnknownNameError("router or planner", name, {*ROUTERS, *PLANNERS})


def _check_least(name: str, value: float | None, least: float = 1) -> None:
    if value is not None and not value >= least:
        raise InvalidArgumentError(f"{name} must be at least {least:g}; got {value}.", name=name, value=value)
