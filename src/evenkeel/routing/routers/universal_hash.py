"""A hash function drawn at random from a universal family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.routing.routers.base import Router

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UniversalHash", "universal_hash"]

PRIME = (1 << 61) - 1


def universal_hash(values: NDArray[np.int64], channels: int, seed: int) -> NDArray[np.int32]:
    """Give ``((a·x + b) mod p) mod N`` with p = 2⁶¹ − 1 and a ≥ 1, b drawn by ``seed``.

    Carter and Wegman's family is 2-universal: for x ≠ y (mod p), the chance over the seeds that both get one channel is
    at most 1/N. O(n), compiled.
    """
    from evenkeel.routing import _kernels

    rng = np.random.default_rng(seed)
    a, b = rng.integers(1, PRIME, dtype=np.uint64), rng.integers(0, PRIME, dtype=np.uint64)
    out = np.empty(len(values), np.int32)
    _kernels.hash_universally(values.view(np.uint64), a, b, channels, out)
    return out


class UniversalHash(Router):
    """Send a key to a hash function drawn at random from a 2-universal family (UHLB).

    Another seed gives another function, so that a bad draw does not last; but nearly all keys move with each change.
    Balanced only in expectation, and only as far as keys are alike.

    References
    ----------
    Q. Guo and Y. Zhou, Stateful Load Balancing for Parallel Stream Processing, §5.
    """

    name = "universal_hash"
    keeps_keys_together = True

    def _route(self, hashes: NDArray[np.int64], sources: NDArray[np.int64], out: NDArray[np.int32]) -> None:  # noqa: ARG002
        out[:] = universal_hash(hashes, self.channels, self.seed)
