"""What the planners that deal items out have in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenkeel import metrics
from evenkeel.errors import InvalidArgumentError
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.routing import RoutingTable

__all__ = [
    "ThresholdPlanner",
    "check_keys",
    "check_not_negative",
    "deal",
    "deal_in_turn",
    "heaviest_first",
    "settle",
]


@dataclass(frozen=True, slots=True)
class ThresholdPlanner(Planner):
    """A planner that acts when the relative standard deviation of the loads exceeds a threshold."""

    measure = "relative_std_percent"
    threshold: float = 0.0
    keys: Literal["tracked", "pinned"] = "tracked"

    def __post_init__(self) -> None:
        check_not_negative("threshold", self.threshold)
        check_keys(self.keys)

    def propose(self, problem: Problem) -> Proposal:
        """Settle what is on vanished channels; then, beyond the threshold, rebalance."""
        items = Items.of(problem.latest, problem.table, self.keys)
        homes, forced = settle(items, problem.channels)
        loads = items.channel_loads(homes, problem.channels)
        spread = metrics.relative_std_percent(loads)
        reasons = [f"{forced} items were on channels that vanish."] if forced else []
        if spread <= self.threshold:
            reasons.append(f"The loads deviate by {spread:.1f} %, no more than the {self.threshold:g} % allowed.")
        else:
            reasons += self.rebalance(items, homes, loads)
        return Proposal(items.table_with(homes, problem.channels), tuple(reasons))

    @abstractmethod
    def rebalance(self, items: Items, homes: NDArray[np.int32], loads: NDArray[np.float64]) -> list[str]:
        """Change ``homes``, on which the channels carry ``loads``, and say why."""

    def score(self, problem: Problem, table: RoutingTable) -> float:
        """Measure the relative standard deviation of the loads, in percent."""
        return metrics.relative_std_percent(problem.latest.per_channel(table))


def heaviest_first(loads: NDArray[np.float64]) -> NDArray[np.int64]:
    """Give the items that have a load, the heaviest first, the lower index first among equals. O(n log n)."""
    order = np.argsort(-loads, kind="stable")
    return order[: int(np.count_nonzero(loads > 0))]


def deal(
    order: NDArray[np.int64],
    loads: NDArray[np.float64],
    channel_loads: NDArray[np.float64],
    homes: NDArray[np.int32],
    *,
    members: NDArray[np.int32] | None = None,
    target: float = math.inf,
) -> None:
    """Put each item of ``order`` on the least loaded of the ``members`` (all channels by default); see the kernel.

    Fills ``homes`` and raises ``channel_loads``. Ties go to the lower channel. O(n log N), compiled.
    """
    from evenkeel.planning import _kernels

    everyone = np.arange(len(channel_loads), dtype=np.int32)
    _kernels.deal(order, loads, channel_loads, everyone if members is None else members, target, homes)


def settle(items: Items, channels: int) -> tuple[NDArray[np.int32], int]:
    """Give the items' homes once those of vanished channels have one, and how many had none.

    The heaviest goes first, each to the channel that is then least loaded. Items without load would all go to the same
    one: they are dealt out in turn instead.
    """
    homes = items.homes.astype(np.int32)
    homeless = homes >= channels
    count = int(homeless.sum())
    if count:
        kept = np.where(homeless, 0.0, items.loads)
        loads = items.fixed_for(channels) + np.bincount(np.where(homeless, 0, homes), weights=kept, minlength=channels)
        deal(heaviest_first(np.where(homeless, items.loads, 0.0)), items.loads, loads, homes)
        deal_in_turn(items, homeless, homes, channels)
    return homes, count


def deal_in_turn(items: Items, chosen: NDArray[np.bool_], homes: NDArray[np.int32], channels: int) -> None:
    """Put those of the chosen items that have no load on the channels in turn."""
    idle = np.flatnonzero(chosen & (items.loads <= 0))
    homes[idle] = np.arange(len(idle)) % channels


def check_not_negative(name: str, value: float) -> None:
    """Refuse what is no finite number from 0 up."""
    if not (math.isfinite(value) and value >= 0):
        raise InvalidArgumentError(f"{name} must be finite and not negative; got {value}.", name=name, value=value)


def check_keys(value: Any) -> None:
    """Refuse what :meth:`Items.of` would not understand."""
    if value not in {"tracked", "pinned"}:
        raise InvalidArgumentError(f'keys must be "tracked" or "pinned"; got {value!r}.', keys=value)
