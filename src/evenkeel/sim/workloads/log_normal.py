"""Log-normal keys, as of an online social network."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from evenkeel.sim.popularity import LogNormalKeys, Popularity
from evenkeel.sim.workloads.base import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LogNormal"]


@dataclass(frozen=True)
class LogNormal(Drawn):
    """A tuple's key is a log-normal number, rounded to the nearest integer.

    The paper does not say how a number becomes a key. Rounded, ten million tuples have just the statistics of its Table
    I: LN₁ (1.789, 2.366) has 16 thousand keys and 14.71 % of the tuples on the hottest, LN₂ (2.245, 1.133) has 1.1
    thousand and 7.01 %.

    Parameters
    ----------
    mean, deviation
        Of the underlying normal distribution (μ, σ); those of LN₁ by default.
    tuples, arrivals, seconds, seed, salt, hashed
        See :class:`Drawn`.

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §V, Table I.
    """

    name = "log_normal"

    mean: float = 1.789
    deviation: float = 2.366

    def popularities(self) -> Iterator[Popularity]:
        """Give the same distribution for ever."""
        return repeat(LogNormalKeys(self.mean, self.deviation))
