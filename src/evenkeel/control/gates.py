"""Gates: small questions, each answered yes or no with its number and its reason in words.

Two kinds. *Is there a reason to plan?* Any of :class:`Imbalance`, :class:`OverloadedChannel`, drift or elasticity is
enough. *May the plan be carried out?* All of :class:`CoolDown`, :class:`SomethingToDo`, :class:`RelativeGain`,
:class:`WorthItsCost` and :class:`Budget` must agree. Gates keep no state; what they need to remember is passed in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.planning import Plan
    from evenkeel.routing import RoutingTable

__all__ = [
    "Answer",
    "Budget",
    "CoolDown",
    "Imbalance",
    "OverloadedChannel",
    "RelativeGain",
    "SomethingToDo",
    "WorthItsCost",
    "chance_excess",
    "check_range",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gate says."""

    gate: str
    passes: bool
    number: float
    """What the gate looked at."""
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Give the answer as plain values."""
        return {"gate": self.gate, "passes": self.passes, "number": self.number, "reason": self.reason}


def chance_excess(counts: NDArray[np.float64]) -> float:
    """Give the share by which the fullest of equal channels lies above the average by mere chance.

    With n tuples per channel on average, counts are Poisson and the largest of N lies about √(2 ln N / n) above n. No
    gate takes such an excess for imbalance, and no plan can promise to be rid of it.

    >>> chance_excess(np.full(8, 10_000.0))
    0.020393...
    """
    mean = float(counts.mean())
    return math.sqrt(2 * math.log(len(counts)) / mean) if mean > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Ask whether the fullest channel is too far above the average: yes from ``start`` on, then until at ``stop``.

    Parameters
    ----------
    start, stop
        Skewness (maximum over average) at which balancing starts, and at which it is good enough again; chance comes
        on top of both.
    """

    start: float = 1.15
    stop: float = 1.05

    def __post_init__(self) -> None:
        check_range("stop", self.stop, 1)
        check_range("start", self.start, self.stop)

    def ask(self, skewness: float, chance: float, *, started: bool) -> Answer:
        """Compare the newest window's skewness; ``started`` is the gate's last answer."""
        limit = (self.stop if started else self.start) + chance
        yes = skewness > limit
        word = "stop" if started else "start"
        reason = (
            f"The fullest channel has {skewness:.3f} times the average load, {'above' if yes else 'not above'} "
            f"{limit:.3f} ({word} {limit - chance:.3f} + chance {chance:.3f})."
        )
        return Answer("imbalance", yes, skewness, reason)


@dataclass(frozen=True, slots=True)
class OverloadedChannel:
    """Ask whether one and the same channel is overloaded again and again, be the others as even as they may.

    Parameters
    ----------
    ratio
        Load over the average from which a channel is overloaded; chance comes on top.
    windows, of
        In how many of the last windows, the newest among them.
    """

    ratio: float = 1.1
    windows: int = 3
    of: int = 4

    def __post_init__(self) -> None:
        check_range("ratio", self.ratio, 1)
        if not 1 <= self.windows <= self.of:
            raise InvalidArgumentError(f"windows must be from 1 to of; got {self.windows} of {self.of}.")

    def ask(self, ratios: NDArray[np.float64], chance: float) -> Answer:
        """Look at windows x channels of loads over the average, oldest window first."""
        over = ratios[-self.of :] > self.ratio + chance
        times = np.where(over[-1], over.sum(axis=0), 0)
        worst = int(np.lexsort((ratios[-1], times))[-1])
        often = int(times[worst])
        reason = (
            f"Channel {worst} was above {self.ratio + chance:.3f} times the average in {often} of {len(over)} windows; "
            f"{self.windows} are needed."
            if often
            else f"No channel is above {self.ratio + chance:.3f} times the average."
        )
        return Answer("overloaded channel", often >= self.windows, often, reason)


@dataclass(frozen=True, slots=True)
class CoolDown:
    """Ask whether enough windows have passed since the last change to see what it brought.

    Parameters
    ----------
    windows
        A change is followed by so many whole windows without one; times the caution that the planner has earned.
    """

    windows: int = 1

    def __post_init__(self) -> None:
        check_range("windows", self.windows, 0)

    def ask(self, since: int | None, caution: int) -> Answer:
        """Compare the windows since the last change; None where there was none."""
        if since is None:
            return Answer("cool-down", True, 0, "Nothing was changed so far.")
        needed = self.windows * caution
        reason = f"{since} windows since the last change; more than {needed} are needed."
        return Answer("cool-down", since > needed, since, reason)


@dataclass(frozen=True, slots=True)
class SomethingToDo:
    """Ask whether the plan changes anything at all."""

    def ask(self, plan: Plan, table: RoutingTable) -> Answer:
        """Count the plan's moves."""
        changes = len(plan.moves) > 0 or plan.table.channels != table.channels
        reason = f"The plan has {len(plan.moves)} moves." if changes else "The plan changes nothing."
        return Answer("something to do", changes, len(plan.moves), reason)


@dataclass(frozen=True, slots=True)
class RelativeGain:
    """Ask whether a batch is to become shorter by a share that is worth the stir.

    Parameters
    ----------
    share
        The least share of the busiest channel's time.
    """

    share: float = 0.05

    def __post_init__(self) -> None:
        check_range("share", self.share, 0, 1)

    def ask(self, before: float, predicted: float) -> Answer:
        """Compare skewness before and after."""
        gain = 1 - predicted / before
        reason = f"A batch is to take {gain:.1%} less time; {self.share:.1%} is the least."
        return Answer("relative gain", gain >= self.share, gain, reason)


@dataclass(frozen=True, slots=True)
class WorthItsCost:
    """Ask whether the time saved in the next batches outweighs the time that moving the state takes.

    Parameters
    ----------
    horizon_batches
        For how many batches a plan is expected to hold.
    """

    horizon_batches: int = 100

    def __post_init__(self) -> None:
        check_range("horizon_batches", self.horizon_batches, 1)

    def ask(self, saved_ms: float, cost_ms: float, caution: int) -> Answer:
        """Weigh the time saved per batch against the time to move, times the caution that the planner has earned."""
        net = saved_ms * self.horizon_batches - cost_ms * caution
        careful = f" x caution {caution}" if caution > 1 else ""
        reason = (
            f"{saved_ms:.3g} ms saved in each of {self.horizon_batches} batches against {cost_ms:.3g} ms"
            f"{careful} to move the state."
        )
        return Answer("worth its cost", net > 0, net, reason)


@dataclass(frozen=True, slots=True)
class Budget:
    """Ask whether the plan can be carried out in good time with so many bytes per batch.

    Parameters
    ----------
    state_bytes
        The most state that one batch may carry, but for a single item that is larger; no limit by default.
    max_batches
        A plan that takes longer is refused: its numbers would be stale before it is done.
    """

    state_bytes: int | None = None
    max_batches: int = 100

    def __post_init__(self) -> None:
        if self.state_bytes is not None:
            check_range("state_bytes", self.state_bytes, 1)
        check_range("max_batches", self.max_batches, 1)

    def ask(self, state_bytes: int, steps: int) -> Answer:
        """Count the batches that carrying out the plan takes."""
        reason = f"{state_bytes:,} bytes take {steps} batch{'es' * (steps > 1)}; {self.max_batches} are the most."
        return Answer("budget", steps <= self.max_batches, steps, reason)


def check_range(name: str, value: float, lowest: float, highest: float = math.inf) -> None:
    """Refuse a number that is not finite or outside ``lowest`` … ``highest``."""
    if not (math.isfinite(value) and lowest <= value <= highest):
        limits = f"at least {lowest:g}" if highest == math.inf else f"from {lowest:g} to {highest:g}"
        raise InvalidArgumentError(f"{name} must be {limits}; got {value}.", name=name, value=value)
