"""Zipf with an exponent that is switched on a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, repeat
from typing import TYPE_CHECKING

from evenkeel.errors import InvalidArgumentError
from evenkeel.sim.popularity import Popularity, ZipfKeys
from evenkeel.sim.workloads.base import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SwitchingZipf"]


@dataclass(frozen=True)
class SwitchingZipf(Drawn):
    """Phases of Zipf streams with different exponents, over and over.

    Parameters
    ----------
    keys
        How many keys there are.
    phases
        (exponent, windows) of each phase. The paper's are five minutes of 0.2 and ten of 1.5: with windows of a minute,
        the default.
    tuples, arrivals, seconds, seed, salt, hashed
        See :class:`Drawn`.

    References
    ----------
    N. Zacheilas et al., Dynamic Load Balancing Techniques for Distributed Complex Event Processing Systems, §4.
    """

    name = "switching_zipf"

    keys: int = 4096
    phases: tuple[tuple[float, int], ...] = ((0.2, 5), (1.5, 10))

    def __post_init__(self) -> None:
        Drawn.__post_init__(self)
        if not self.phases or any(windows < 1 for _, windows in self.phases):
            raise InvalidArgumentError(f"phases must be pairs of exponent and windows >= 1; got {self.phases}.")

    def popularities(self) -> Iterator[Popularity]:
        """Give the distribution of each phase for as long as it lasts."""
        phases = [(ZipfKeys(self.keys, exponent), windows) for exponent, windows in self.phases]
        for popularity, windows in cycle(phases):
            yield from repeat(popularity, windows)
