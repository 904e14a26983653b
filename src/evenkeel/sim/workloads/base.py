"""What every workload is: a stream cut into windows, the same each time it is asked for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.sim.drawing import DrawnWindow, KeySpace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evenkeel.sim.popularity import Popularity
    from evenkeel.sim.window import Window

__all__ = ["Amount", "Drawn", "Synthetic", "Workload"]

Amount: TypeAlias = int | Sequence[int] | Callable[[int], float]
"""Tuples per window: always as many, or those of each window (the last goes on), or a function of its number."""


class Workload(ABC):
    """A stream cut into windows; a value that gives the same windows each time."""

    name: ClassVar[str]
    """How the workload is chosen by name."""

    @property
    def sources(self) -> int:
        """How many sources send its tuples."""
        return 1

    @property
    def endless(self) -> bool:
        """Whether there is always one more window."""
        return False

    @abstractmethod
    def windows(self) -> Iterator[Window]:
        """Give the windows in order; without end where the stream has none."""

    def first(self, windows: int | None) -> Iterator[Window]:
        """Give the first windows, or all of them."""
        if windows is None and self.endless:
            raise InvalidArgumentError("The stream has no end; say how many windows of it are wanted.")
        return islice(self.windows(), windows)


class Synthetic(Workload):
    """A stream of independent draws; the distribution may change from window to window."""

    @property
    def endless(self) -> bool:
        """Always."""
        return True

    @property
    @abstractmethod
    def arrival(self) -> Drawn:
        """The workload that says how many tuples arrive in a window, of which keys and with which seed."""

    @abstractmethod
    def popularities(self) -> Iterator[Popularity]:
        """Give the distribution of each window, without end."""

    def windows(self) -> Iterator[Window]:
        """Draw one window after the other."""
        arrival = self.arrival
        space = KeySpace(arrival.salt, hashed=arrival.hashed)
        for number, popularity in enumerate(self.popularities()):
            yield DrawnWindow(
                number=number,
                seconds=arrival.seconds,
                start=number * arrival.seconds,
                tuples_drawn=arrival.amount(number),
                popularity=popularity,
                space=space,
                seed=arrival.seed,
                poisson=arrival.arrivals == "poisson",
            )


@dataclass(frozen=True, kw_only=True)
class Drawn(Synthetic):
    """The options that all synthetic workloads share.

    Parameters
    ----------
    tuples
        Per window: a number, one for each window (the last goes on), or a function of the window's number.
    arrivals
        ``"fixed"``: just as many, evenly spaced. ``"poisson"``: a Poisson process with that many on average.
    seconds
        How long a window is.
    seed
        Gives another sample.
    salt
        Gives other keys with the same distribution, hence other places in every hash.
    hashed
        Whether keys are hashed as Spark hashes a long; if not, a key's number is its hash.
    """

    tuples: Amount = 100_000
    arrivals: Literal["fixed", "poisson"] = "fixed"
    seconds: float = 1.0
    seed: int = 0
    salt: int = 0
    hashed: bool = True

    def __post_init__(self) -> None:
        if self.arrivals not in {"fixed", "poisson"}:
            raise InvalidArgumentError(f"arrivals must be 'fixed' or 'poisson'; got {self.arrivals!r}.")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise InvalidArgumentError(f"seconds must be finite and above 0; got {self.seconds}.")
        if self.seed < 0 or not 0 <= self.salt < 1 << 22:
            raise InvalidArgumentError(
                f"seed and salt must not be negative, and salt below 2²²; got {self.seed} and {self.salt}."
            )
        if isinstance(self.tuples, Sequence) and len(self.tuples) == 0:
            raise InvalidArgumentError("tuples must be a number, a function, or name at least one window; got none.")

    @property
    def arrival(self) -> Drawn:
        """Itself."""
        return self

    def amount(self, window: int) -> int:
        """Give the number of tuples of a window."""
        if isinstance(self.tuples, int):
            mean: float = self.tuples
        elif isinstance(self.tuples, Sequence):
            mean = self.tuples[min(window, len(self.tuples) - 1)]
        else:
            mean = self.tuples(window)
        if not (math.isfinite(mean) and mean >= 0):
            raise InvalidArgumentError(f"A window cannot have {mean} tuples.", window=window)
        if self.arrivals == "fixed":
            return round(mean)
        return int(np.random.default_rng(np.random.SeedSequence((self.seed, window, 9))).poisson(mean))
