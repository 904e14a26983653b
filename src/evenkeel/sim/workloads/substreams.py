"""A hundred substreams with Gaussian or Zipf sizes and Poisson arrivals."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Literal

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.sim.popularity import Popularity, Weighted, ZipfKeys
from evenkeel.sim.workloads.base import Amount, Drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Substreams"]


@dataclass(frozen=True)
class Substreams(Drawn):
    """Keys 1 to 100 as a hundred substreams whose sizes follow a Gaussian (S1) or a Zipf distribution (S2).

    With a table of ``keys`` slots, substream k is a slot of its own, since keys are not hashed by default. Tuples come
    as a Poisson process with λ = 10,000 per second, in windows of one minute.

    Parameters
    ----------
    kind
        ``"gaussian"`` or ``"zipf"``.
    keys
        How many substreams there are.
    exponent
        Of the Zipf distribution.
    mean, deviation
        Of the Gaussian, in key numbers from 1. What lies outside 1 to ``keys`` is cut off, and it is put where
        the mean of what is left is ``mean``; by default the mean of the Zipf.
    tuples, arrivals, seconds, seed, salt, hashed
        See :class:`Drawn`.

    Notes
    -----
    The paper gives neither the exponent nor the deviation, and says of the means only that they "are set as the same".

    References
    ----------
    Q. Guo and Y. Zhou, Stateful Load Balancing for Parallel Stream Processing, §5.
    """

    name = "substreams"

    kind: Literal["gaussian", "zipf"] = "gaussian"
    keys: int = 100
    exponent: float = 1.0
    mean: float | None = None
    deviation: float = 100 / 6
    _: KW_ONLY
    tuples: Amount = 600_000
    arrivals: Literal["fixed", "poisson"] = "poisson"
    seconds: float = 60.0
    hashed: bool = False

    def __post_init__(self) -> None:
        Drawn.__post_init__(self)
        if self.kind not in {"gaussian", "zipf"}:
            raise InvalidArgumentError(f"kind must be 'gaussian' or 'zipf'; got {self.kind!r}.")
        if not self.deviation > 0 or not (self.mean is None or 1 <= self.mean <= self.keys):
            raise InvalidArgumentError(
                f"deviation must be above 0 and mean from 1 to keys; got {self.deviation} and {self.mean}."
            )

    def popularities(self) -> Iterator[Popularity]:
        """Give the same distribution for ever."""
        zipf = ZipfKeys(self.keys, self.exponent)
        if self.kind == "zipf":
            return repeat(zipf)
        numbers = np.arange(1, self.keys + 1)
        mean = float(numbers @ zipf.probabilities) if self.mean is None else self.mean
        return repeat(Weighted(_gaussian(numbers, mean, self.deviation)))


def _gaussian(numbers: NDArray[np.int64], mean: float, deviation: float) -> NDArray[np.float64]:
    """The weights of a Gaussian, cut off, whose mean is ``mean``; its centre is found by halving."""

    def weights(centre: float) -> NDArray[np.float64]:
        exponents = -0.5 * ((numbers - centre) / deviation) ** 2
        return np.exp(exponents - exponents.max())

    low, high = -50 * deviation, numbers[-1] + 50 * deviation
    for _ in range(80):
        middle = (low + high) / 2
        shares = weights(middle)
        low, high = (middle, high) if numbers @ shares < mean * shares.sum() else (low, middle)
    return weights((low + high) / 2)
