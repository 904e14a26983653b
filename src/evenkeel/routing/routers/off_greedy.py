"""Off-line greedy: the whole distribution is known beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import as_hashes
from evenkeel.routing.routers.base import Router
from evenkeel.routing.table import RoutingTable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["OffGreedy"]


class OffGreedy(Router):
    """Give the keys, most frequent first, each to the channel that is least loaded by then.

    An unfair yardstick for on-line routers: it must see the stream before it routes it. Call :meth:`fit` with the whole
    stream, or let the first call of :meth:`route` be it. Keys that were not seen then go by their hash. Of equally
    frequent keys the lower hash comes first; the lowest channel wins a tie.

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §V (Off-Greedy).
    """

    name = "off_greedy"
    keeps_keys_together = True

    def __init__(self, channels: int, *, sources: int = 1, seed: int = 0) -> None:
        super().__init__(channels, sources=sources, seed=seed)
        self.table: RoutingTable | None = None

    def fit(self, keys: Any, counts: ArrayLike | None = None) -> OffGreedy:
        """Learn the distribution: all tuples' keys, or distinct keys with their counts."""
        hashes = as_hashes(keys)
        if counts is None:
            distinct, numbers = np.unique(hashes, return_counts=True)
        else:
            order = np.argsort(hashes)
            distinct, numbers = hashes[order], np.asarray(counts, np.int64)[order]
            if (np.diff(distinct) == 0).any():
                raise InvalidArgumentError("Keys given with counts must be distinct.")
        from evenkeel.routing import _kernels

        by_count = np.argsort(-numbers, kind="stable")
        places = np.empty(len(distinct), np.int32)
        _kernels.deal_by_weight(numbers[by_count], np.zeros(self.channels, np.int64), places)
        self.table = RoutingTable.even(self.channels).with_pins(distinct[by_count], places)
        return self

    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:  # noqa: ARG002
        if self.table is None:
            self.fit(hashes)
        assert self.table is not None
        out[:] = self.table.route(hashes)
