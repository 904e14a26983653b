"""What the channels report of a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from evenkeel.control.tally import Tally
from evenkeel.errors import InvalidArgumentError

__all__ = ["BatchReport", "ChannelReport"]


@dataclass(frozen=True, slots=True, eq=False)
class ChannelReport:
    """What one channel measured in one batch.

    Parameters
    ----------
    channel
        Which channel.
    busy_ms
        How long it worked on its tuples, without the time that moved state took.
    slots
        Measures of whole slots, heavy keys included; names every slot of which the channel holds state.
    keys
        Measures of its heavy keys, and of every pinned or split key that it holds.
    keys_held
        How many keys it holds state of.
    """

    channel: int
    busy_ms: float
    slots: Tally
    keys: Tally = field(default_factory=Tally.empty)
    keys_held: int = 0

    def __post_init__(self) -> None:
        if self.channel < 0:
            raise InvalidArgumentError(f"channel must not be negative; got {self.channel}.", channel=self.channel)
        _check_amount("busy_ms", self.busy_ms)
        _check_amount("keys_held", self.keys_held)


@dataclass(frozen=True, slots=True, eq=False)
class BatchReport:
    """What was measured in one micro-batch.

    Parameters
    ----------
    batch
        Its number.
    time
        When it ended, in seconds of any clock that never goes back.
    channels
        One report per channel.
    moved_bytes, moving_ms
        State that was carried from channel to channel in this batch, and by how much it prolonged the batch.
    """

    batch: int
    time: float
    channels: tuple[ChannelReport, ...]
    moved_bytes: int = 0
    moving_ms: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", tuple(self.channels))
        numbers = [report.channel for report in self.channels]
        if not numbers or len(set(numbers)) < len(numbers):
            raise InvalidArgumentError(
                f"A batch needs one report from each channel; got reports from {sorted(numbers)}.", batch=self.batch
            )
        _check_amount("moved_bytes", self.moved_bytes)
        _check_amount("moving_ms", self.moving_ms)


def _check_amount(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise InvalidArgumentError(f"{name} must be finite and not negative; got {value}.", name=name, value=value)
