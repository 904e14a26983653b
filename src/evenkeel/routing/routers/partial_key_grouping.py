"""Partial key grouping: every tuple takes the less loaded of its key's two channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import as_hashes
from evenkeel.routing.routers.base import Router, choice_seeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LoadView", "PartialKeyGrouping"]

LoadView = Literal["global", "local", "probing"]


class PartialKeyGrouping(Router):
    """Send each tuple to the least loaded of its key's d candidates (PKG, Greedy-d with key splitting).

    A key's state is in at most d partial states, whatever N is. With two choices, the hottest key's share p₁ ≤ 1/(5N)
    and m ≥ N² tuples, the imbalance is O(m/N) with probability 1 − 1/N (Theorem 4.1); once N exceeds about 2/p₁ no two
    channels can hold the hottest key, and the imbalance grows with m.

    Parameters
    ----------
    channels, sources, seed
        As for every router.
    choices
        Candidates per key (d).
    view
        What a source knows of the loads: ``"global"`` (G) all loads at once; ``"local"`` (L) only what it sent itself;
        ``"probing"`` (LP) the same, set to the true loads every ``probe_every`` tuples.
    probe_every
        Tuples, of all sources together, between two probes. The paper probes by the minute; a router has no clock.

    Notes
    -----
    O(d) per tuple, compiled; memory O(N · sources). The first choice wins a tie.

    Examples
    --------
    >>> router = PartialKeyGrouping(channels=4, seed=1)
    >>> np.bincount(router.route(["hot"] * 1000), minlength=4).tolist()
    [0, 500, 0, 500]

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §III and §V (Q2).
    """

    name = "pkg"
    keeps_keys_together = False

    def __init__(
        self,
        channels: int,
        *,
        sources: int = 1,
        seed: int = 0,
        choices: int = 2,
        view: LoadView = "local",
        probe_every: int = 0,
    ) -> None:
        super().__init__(channels, sources=sources, seed=seed)
        if choices < 1:
            raise InvalidArgumentError(f"choices must be at least 1; got {choices}.")
        if view not in ("global", "local", "probing"):
            raise InvalidArgumentError(f"view must be 'global', 'local' or 'probing'; got {view!r}.")
        if (view == "probing") != (probe_every > 0):
            raise InvalidArgumentError(
                f"probe_every must be positive for the view 'probing', and is for it alone; got {probe_every} for "
                f"{view!r}."
            )
        self.choices = choices
        self.view = view
        self.loads = np.zeros(channels, np.int64)
        self._seeds = choice_seeds(seed, choices)
        self._estimates = np.zeros((1 if view == "global" else sources, channels), np.int64)
        self._probe_every = probe_every
        self._since_probe = np.zeros(1, np.int64)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, choices={self.choices})"

    def reachable(self, keys: Any) -> NDArray[np.int32]:
        """Give the d candidates of each key."""
        from evenkeel.routing import _kernels

        hashes = as_hashes(keys)
        out = np.empty((len(hashes), self.choices), np.int32)
        _kernels.all_choices(hashes, self._seeds, self.channels, out)
        return out

    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:
        from evenkeel.routing import _kernels

        _kernels.route_partial_keys(
            hashes,
            sources if self.view != "global" else sources[:0],
            self._seeds,
            self._estimates,
            self.loads,
            self._probe_every,
            self._since_probe,
            out,
        )
