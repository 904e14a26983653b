"""ELB: eager load balancing, from overloaded channels to underloaded ones, with as many channels as the load needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from evenkeel import metrics
from evenkeel.errors import InvalidArgumentError
from evenkeel.planning import dealing
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.routing import RoutingTable

__all__ = ["Elb"]


@dataclass(frozen=True, slots=True)
class _Range:
    """How much load a channel is to carry."""

    channels: int
    target: float
    """(u + v)/2, where a channel is full."""
    slack: float
    """(u - v)/2, which no substream should exceed."""


@dataclass(frozen=True, slots=True)
class Elb(Planner):
    """Fit every channel's load into a range, moving substreams only from channels over the average to those under it.

    Three phases. *Preparing*: the number of channels π follows from the total load; a channel is overloaded if it
    carries more than the average of π. *Identifying*: each overloaded channel gives up its largest substreams under
    θ = min(its excess, (u - v)/2), θ following what is left of the excess. *Reassigning*: the largest goes to the least
    loaded of the underloaded channels, which leaves their circle once it carries (u + v)/2.

    Guarantee: a channel that gives stays above the average, and, but for what a shrinking number of channels forces,
    nothing goes to a channel that was over it; no substream moves within the under- or the overloaded. Equal loads
    stay untouched. Cost: O(p log p) for p substreams.

    Ties: among substreams of equal load the lower item (slots, then keys by hash), among channels the lower.

    Parameters
    ----------
    lower, upper
        The range v ≤ load ≤ u for a channel. Then π = ⌈2w / (u + v)⌉ for a total load w, at least 1, whatever number of
        channels is asked for. Give both or neither.
    tolerance
        Without them, the number of channels is the one asked for, and the range the average ± this share of it.
    keys
        ``"pinned"``: the substreams are slots and pinned keys. ``"tracked"``: each tracked key is one as well.
    whole_excess
        Take θ anew from what is left of the excess after each substream: (u - v)/2 bounds each substream, as the text
        motivates it. The listing (false) takes the substream's load from θ, so that (u - v)/2 bounds the sum of all
        that leave, and a large excess takes many windows.

    Notes
    -----
    Deviations from Algorithm 1:

    - Line 17 also ends when no substream fits under θ; as printed it would loop for ever.
    - If every underloaded channel is full before all is reassigned, the least loaded of all channels takes the rest.
    - Substreams over (u - v)/2 break the paper's assumption and can never leave an overloaded channel; they are named
      in the reasons. More slots, a wider range or pinned hot keys help.
    - The paper removes the n - π least loaded instances when shrinking. Here a channel's number is its place, and
      giving a channel another number would move all its state: so the channels with the highest numbers vanish.
    - π is not rounded up for a ratio within 1e-9 of a whole number, so that float rounding adds no channel.
    - Substreams without load never move, except from vanished channels; those are dealt out in turn.

    References
    ----------
    Q. Guo and Y. Zhou, Stateful Load Balancing for Parallel Stream Processing, §3, Algorithm 1.

    Examples
    --------
    >>> from evenkeel.planning import LoadSnapshot
    >>> from evenkeel.routing import RoutingTable
    >>> snapshot = LoadSnapshot.of_keys(["a", "b", "c", "d"], [4, 4, 1, 1], slots=64)
    >>> table = RoutingTable(np.zeros(64, np.int32), channels=1)
    >>> plan = Elb(lower=0, upper=10).plan(snapshot, table)
    >>> plan.table.channels, snapshot.per_channel(plan.table).tolist()
    (2, [6.0, 4.0])
    """

    name = "elb"
    measure = "load_variance"
    lower: float | None = None
    upper: float | None = None
    tolerance: float = 0.1
    keys: Literal["tracked", "pinned"] = "pinned"
    whole_excess: bool = True

    def __post_init__(self) -> None:
        dealing.check_not_negative("tolerance", self.tolerance)
        dealing.check_keys(self.keys)
        if (self.lower is None) != (self.upper is None):
            raise InvalidArgumentError("Give both bounds, lower and upper, or neither.")
        if self.lower is not None and self.upper is not None:
            dealing.check_not_negative("lower", self.lower)
            dealing.check_not_negative("upper", self.upper)
            if self.lower > self.upper or self.upper == 0:
                raise InvalidArgumentError(
                    f"The bounds must be 0 <= lower <= upper and upper > 0; got {self.lower} and {self.upper}.",
                    lower=self.lower,
                    upper=self.upper,
                )

    def propose(self, problem: Problem) -> Proposal:
        """Prepare, identify, reassign."""
        items = Items.of(problem.latest, problem.table, self.keys)
        total = float(items.loads.sum() + items.split_loads.sum())
        span = self._range(total, problem.channels)
        channels, mean = span.channels, total / span.channels
        homes = items.homes.astype(np.int32)
        removed = homes >= channels
        loads = _loads_without(items, removed, channels)
        overloaded = loads > mean
        order = dealing.heaviest_first(items.loads)

        leaves = removed.copy()
        self._identify(items, order, np.where(overloaded, loads - mean, 0.0), span.slack, leaves)
        loads = _loads_without(items, leaves, channels)
        dealing.deal(
            order[leaves[order]],
            items.loads,
            loads,
            homes,
            members=np.flatnonzero(~overloaded).astype(np.int32),
            target=span.target,
        )
        dealing.deal_in_turn(items, removed, homes, channels)

        given_up = int((leaves & ~removed).sum())
        reasons = [f"{given_up} substreams leave the {int(overloaded.sum())} channels over the average of {mean:g}."]
        if channels != problem.table.channels:
            reasons.append(f"{problem.table.channels} → {channels} channels for a total load of {total:g}.")
        if removed.any():
            reasons.append(f"{int(removed.sum())} substreams were on channels that vanish.")
        too_heavy = int((items.loads > span.slack).sum())
        if too_heavy:
            reasons.append(
                f"{too_heavy} substreams are heavier than (u - v)/2 = {span.slack:g}, which ELB assumes of none: they "
                "cannot leave an overloaded channel. More slots, a wider range or keys of their own help."
            )
        return Proposal(items.table_with(homes, channels), tuple(reasons))

    def _range(self, total: float, channels: int) -> _Range:
        if self.lower is None or self.upper is None:
            mean = total / channels
            return _Range(channels, mean, mean * self.tolerance)
        middle = self.lower / 2 + self.upper / 2
        ratio = total / middle
        if ratio > np.iinfo(np.int32).max:
            raise InvalidArgumentError(
                f"A load of {total:g} asks for {ratio:g} channels of {middle:g}; choose higher bounds."
            )
        whole = round(ratio)
        needed = whole if math.isclose(ratio, whole, rel_tol=1e-9) else math.ceil(ratio)
        return _Range(max(1, needed), middle, (self.upper - self.lower) / 2)

    def _identify(
        self,
        items: Items,
        order: NDArray[np.int64],
        excess: NDArray[np.float64],
        slack: float,
        leaves: NDArray[np.bool_],
    ) -> None:
        """Mark what the overloaded channels give up (phase 2)."""
        from evenkeel.planning import _kernels

        room, cap = (excess, slack) if self.whole_excess else (np.minimum(excess, slack), math.inf)
        _kernels.shed(order, items.loads, items.homes, room, cap, False, leaves)

    def score(self, problem: Problem, table: RoutingTable) -> float:
        """Measure the variance of the channels' loads, var(L_t)."""
        return metrics.load_variance(problem.latest.per_channel(table))


def _loads_without(items: Items, gone: NDArray[np.bool_], channels: int) -> NDArray[np.float64]:
    """Each channel's load without some items, which must include all on vanished channels."""
    there = ~gone
    loads: NDArray[np.float64] = items.fixed_for(channels) + np.bincount(
        items.homes[there], weights=items.loads[there], minlength=channels
    )
    return loads
