"""Tuples that come from several sources, evenly or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import mix64
from evenkeel.sim.window import Histogram, Tuples, Window
from evenkeel.sim.workloads.base import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Sourced"]


@dataclass(frozen=True)
class Sourced(Workload):
    """Another workload whose tuples come from several sources.

    Parameters
    ----------
    base
        Whose tuples.
    count
        How many sources there are (S).
    by
        ``"turn"``: tuples are dealt out in turn, as shuffle grouping does. ``"key"``: each key comes from one source,
        by a hash of its own, so that hot keys make hot sources. ``"zipf"``: each tuple's source is drawn, source s with
        a share ∝ 1/(s + 1)^exponent, whatever its key. An edge list gives its sources itself; see :class:`Trace`.
    exponent
        The skew of the sources for ``"zipf"``.
    seed
        Gives another hash, or other draws.

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §V, Q3.
    """

    name = "sourced"

    base: Workload
    count: int = 5
    by: Literal["turn", "key", "zipf"] = "turn"
    exponent: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InvalidArgumentError(f"count must be at least 1; got {self.count}.")
        if self.by not in {"turn", "key", "zipf"}:
            raise InvalidArgumentError(f"by must be 'turn', 'key' or 'zipf'; got {self.by!r}.")

    @property
    def sources(self) -> int:
        """How many sources there are."""
        return self.count

    @property
    def endless(self) -> bool:
        """Whether the base is."""
        return self.base.endless

    def windows(self) -> Iterator[Window]:
        """Give the base's windows, with sources."""
        return (SourcedWindow(window, self) for window in self.base.windows())


class SourcedWindow(Window):
    """A window whose tuples know their sources."""

    def __init__(self, base: Window, options: Sourced) -> None:
        self.number, self.seconds, self.start = base.number, base.seconds, base.start
        self._base, self._options = base, options

    @property
    def size(self) -> int:
        """How many tuples there are."""
        return self._base.size

    def histogram(self) -> Histogram:
        """Give the tuples of each key; sources play no part in it."""
        return self._base.histogram()

    def tuples(self, *, full: bool = False) -> Iterator[Tuples]:
        """Give the base's tuples, with their sources."""
        done = 0
        options = self._options
        rng = np.random.default_rng(np.random.SeedSequence((options.seed, self.number)))
        for part in self._base.tuples(full=full):
            yield Tuples(part.hashes, part.ids, part.times, self._sources(part.hashes, done, rng))
            done += len(part)

    def _sources(self, hashes: NDArray[np.int64], done: int, rng: np.random.Generator) -> NDArray[np.int64]:
        options = self._options
        if options.by == "turn":
            return (done + np.arange(len(hashes))) % options.count
        if options.by == "key":
            mixed = mix64(hashes.view(np.uint64), options.seed)
            return (mixed % np.uint64(options.count)).astype(np.int64)
        shares = np.arange(1, options.count + 1) ** -float(options.exponent)
        return np.searchsorted(np.cumsum(shares / shares.sum())[:-1], rng.random(len(hashes)), side="right")
