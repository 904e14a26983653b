"""What the controller can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenkeel.control.drift import DriftOptions
from evenkeel.control.gates import (
    Budget,
    CoolDown,
    Imbalance,
    OverloadedChannel,
    RelativeGain,
    WorthItsCost,
    check_range,
)
from evenkeel.control.windows import WindowOptions
from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from evenkeel.control.elasticity import Elasticity

__all__ = ["ControlOptions"]


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """How the controller measures, and when it acts.

    Parameters
    ----------
    windows
        Length of a statistics window, and how many are kept.
    imbalance, overloaded_channel, drift
        Reasons to plan.
    cool_down, relative_gain, worth_its_cost, budget
        What a plan must pass to be carried out.
    elasticity
        How many channels there are to be; they stay as they are by default.
    bytes_per_ms
        How fast state moves, until it was measured.
    log_limit
        How many decisions are remembered.
    """

    windows: WindowOptions = field(default_factory=WindowOptions)
    imbalance: Imbalance = field(default_factory=Imbalance)
    overloaded_channel: OverloadedChannel = field(default_factory=OverloadedChannel)
    drift: DriftOptions = field(default_factory=DriftOptions)
    cool_down: CoolDown = field(default_factory=CoolDown)
    relative_gain: RelativeGain = field(default_factory=RelativeGain)
    worth_its_cost: WorthItsCost = field(default_factory=WorthItsCost)
    budget: Budget = field(default_factory=Budget)
    elasticity: Elasticity | None = None
    bytes_per_ms: float = 20_000.0
    log_limit: int = 250

    def __post_init__(self) -> None:
        if not self.bytes_per_ms > 0:
            raise InvalidArgumentError(f"bytes_per_ms must be above 0; got {self.bytes_per_ms}.", name="bytes_per_ms")
        check_range("log_limit", self.log_limit, 1)
        look_back = max(self.overloaded_channel.of, self.elasticity.shrink_windows if self.elasticity else 1)
        if self.windows.keep < look_back:
            raise InvalidArgumentError(
                f"The gates look back over {look_back} windows, but only {self.windows.keep} are kept; keep more.",
                keep=self.windows.keep,
                needed=look_back,
            )
