"""Key grouping: the bare hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.routing.routers.base import Router

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KeyGrouping"]


class KeyGrouping(Router):
    """Send a key to ``hash mod N``: what Spark, Storm and Flink do by default.

    No state and no balance: a channel's load is whatever its keys bring (single choice, H in the PKG paper §V).

    >>> KeyGrouping(4).route(["a", "b", "a"]).tolist()
    [0, 3, 0]
    """

    name = "key_grouping"
    keeps_keys_together = True

    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:  # noqa: ARG002
        np.remainder(hashes, self.channels, out=out, casting="unsafe")
