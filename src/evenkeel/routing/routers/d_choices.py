"""D-Choices: as many candidates for the hot keys as it takes, two for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.routing.routers.base import Router, choice_seeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DChoices"]


class DChoices(Router):
    """Partial key grouping in which the head of hot keys has d candidates, and d follows the stream.

    Two choices are not enough once N exceeds about 2/p₁. Each source finds its hot keys, those with more than
    ``threshold`` of its tuples, by space-saving, and gives them the least number of choices with which no set of hot
    keys overloads the channels it can reach. So memory stays near that of partial key grouping: the tail keeps two
    partial states per key.

    Parameters
    ----------
    channels, sources, seed
        As for every router.
    threshold
        Share of the tuples above which a key is hot; 1/(5N) by default, as in the paper.
    tolerance
        By how much the channels that hot keys can reach may exceed their fair share, as a share of all tuples.
    refresh_every
        Tuples of a source after which it sets d anew.

    Notes
    -----
    O(d) per tuple of a hot key, else O(log (1/threshold)) at most for space-saving, compiled; memory
    O(sources · (N + 1/threshold)). Every source sees the loads it sent itself.

    References
    ----------
    M. A. U. Nasir et al., When Two Choices Are not Enough: Balancing at Scale in Distributed Stream Processing,
    ICDE 2016.
    """

    name = "d_choices"
    keeps_keys_together = False
    _sets_choices: ClassVar[bool] = True

    def __init__(
        self,
        channels: int,
        *,
        sources: int = 1,
        seed: int = 0,
        threshold: float | None = None,
        tolerance: float = 1e-4,
        refresh_every: int = 10_000,
    ) -> None:
        super().__init__(channels, sources=sources, seed=seed)
        threshold = 1 / (5 * channels) if threshold is None else threshold
        if not 0 < threshold < 1:
            raise InvalidArgumentError(f"threshold must lie between 0 and 1; got {threshold}.")
        if tolerance < 0 or refresh_every < 1:
            raise InvalidArgumentError(
                f"tolerance must not be negative and refresh_every at least 1; got {tolerance} and {refresh_every}."
            )
        from evenkeel.sketches._kernels import space_saving_arrays

        self.threshold = threshold
        self._tolerance = tolerance
        self._refresh_every = refresh_every if self._sets_choices else 0
        self._seeds = choice_seeds(seed, max(channels, 2))
        self._estimates = np.zeros((sources, channels), np.int64)
        self._known = np.zeros((sources, channels), np.int64)
        self._order = np.tile(np.arange(channels, dtype=np.int32), (sources, 1))
        # Until the first refresh hot keys have two choices like all others; W-Choices gives them all from the start.
        self._choices = np.full(sources, 2 if self._sets_choices else channels)
        # Space-saving errs by at most total/capacity: a tenth of what makes a key hot.
        none = np.empty(0, np.int64)
        empty = space_saving_arrays(int(np.ceil(10 / threshold)), none, none, none, 0, 0)
        self._sketch = tuple(np.tile(array, (sources, 1)) for array in empty)

    @property
    def choices(self) -> NDArray[np.int64]:
        """How many candidates each source gives to its hot keys now."""
        return self._choices.copy()

    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:
        from evenkeel.routing import _kernels

        _kernels.route_head_apart(
            hashes,
            sources,
            self._seeds,
            self._estimates,
            self._order,
            self._known,
            self._sketch,
            self.threshold,
            self._choices,
            self._refresh_every,
            self._tolerance,
            out,
        )
