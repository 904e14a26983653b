"""Elasticity: how many channels the load needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.control.gates import Answer, check_range
from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Elasticity"]


@dataclass(frozen=True, slots=True)
class Elasticity:
    """Keep the load per channel within bounds by changing the number of channels.

    While a channel's average load is within the bounds, nothing changes: that is the hysteresis. Beyond them, a total
    load w asks for π = ⌈2w / (u + v)⌉ channels, so that each carries the middle. Growing is decided by the newest
    window alone; shrinking needs several in a row below the lower bound, and then goes only as far as the fullest of
    them allows.

    Parameters
    ----------
    lower, upper
        The bounds v and u, as cost per channel and batch; :meth:`around` gives them for a target.
    min_channels, max_channels
        The fewest and the most channels.
    max_step
        The most channels that one decision adds or removes; no limit by default.
    shrink_windows
        How many windows must have passed since the last change, and must all ask for fewer channels.

    References
    ----------
    Q. Guo and Y. Zhou, Stateful Load Balancing for Parallel Stream Processing, §3 (ELB).

    Examples
    --------
    >>> elasticity = Elasticity.around(100, slack=0.25, max_channels=16)
    >>> elasticity.ask([400, 900], channels=4).number
    9
    >>> elasticity.ask([400, 480], channels=4).passes
    False
    """

    lower: float
    upper: float
    min_channels: int = 1
    max_channels: int = 1024
    max_step: int | None = None
    shrink_windows: int = 3

    def __post_init__(self) -> None:
        check_range("lower", self.lower, 0)
        check_range("upper", self.upper, self.lower)
        if self.upper == 0:
            raise InvalidArgumentError("upper must be above 0; got 0.", name="upper")
        check_range("min_channels", self.min_channels, 1)
        check_range("max_channels", self.max_channels, self.min_channels)
        check_range("shrink_windows", self.shrink_windows, 1)
        if self.max_step is not None:
            check_range("max_step", self.max_step, 1)

    @classmethod
    def around(
        cls,
        target: float,
        *,
        slack: float = 0.2,
        min_channels: int = 1,
        max_channels: int = 1024,
        max_step: int | None = None,
        shrink_windows: int = 3,
    ) -> Elasticity:
        """Aim at a cost per channel and batch, and leave all as it is within ``slack`` of it, as a share."""
        check_range("slack", slack, 0, 1)
        lower, upper = target * (1 - slack), target * (1 + slack)
        return cls(lower, upper, min_channels, max_channels, max_step, shrink_windows)

    def needed(self, load: float) -> int:
        """Give π for a total load, within the fewest and the most channels.

        A ratio within 1e-9 of a whole number is not rounded up, so that float rounding adds no channel.
        """
        ratio = min(2 * load / (self.lower + self.upper), self.max_channels)
        whole = round(ratio)
        channels = whole if math.isclose(ratio, whole, rel_tol=1e-9) else math.ceil(ratio)
        return min(max(channels, self.min_channels), self.max_channels)

    def ask(self, loads: Sequence[float], channels: int, since: int | None = None) -> Answer:
        """Say whether the number of channels is to change; the answer's number is how many there are to be.

        Parameters
        ----------
        loads
            Cost per batch in the kept windows, newest last.
        channels
            How many there are.
        since
            Windows since the last change of the table; None where there was none.
        """
        each = loads[-1] / channels
        recent = loads[-self.shrink_windows :]
        wanted = channels
        why = f"between {self.lower:g} and {self.upper:g}"
        if not self.min_channels <= channels <= self.max_channels:
            wanted = min(max(channels, self.min_channels), self.max_channels)
            why = f"and from {self.min_channels} to {self.max_channels} channels are allowed"
        elif each > self.upper:
            wanted = max(channels, self.needed(loads[-1]))
            why = f"over {self.upper:g}"
        elif max(recent) / channels < self.lower:
            why = f"under {self.lower:g}"
            if len(recent) < self.shrink_windows or (since is not None and since < self.shrink_windows):
                why += f", but not yet for {self.shrink_windows} windows"
            else:
                wanted = min(channels, self.needed(max(recent)))
        if self.max_step is not None:
            wanted = min(max(wanted, channels - self.max_step), channels + self.max_step)
        reason = f"A channel's load is {each:.4g} on average, {why}: {channels} → {wanted} channels."
        if wanted == channels:
            reason = f"A channel's load is {each:.4g} on average, {why}: {channels} channels stay."
        return Answer("elasticity", wanted != channels, wanted, reason)
