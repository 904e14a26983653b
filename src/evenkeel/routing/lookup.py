"""How compiled loops find a key's own entry among many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Lookup"]


@dataclass(frozen=True, slots=True)
class Lookup:
    """Listed keys in a hash map, behind a bitmap that answers for most keys that are not listed."""

    bits: NDArray[np.uint64]
    map_keys: NDArray[np.int64]
    map_values: NDArray[np.int32]

    @classmethod
    def of(cls, hashes: NDArray[np.int64]) -> Lookup:
        """Index distinct key hashes by their place in the array."""
        from evenkeel._kernels import openmap
        from evenkeel.routing import _kernels

        map_keys, map_values = openmap.empty_map(len(hashes))
        openmap.fill(map_keys, map_values, hashes, np.arange(len(hashes), dtype=np.int32))
        # 16 to 32 bits per listed key: one foreign key in twenty passes, and 100,000 pins take 256 KB.
        bits = np.zeros(1 << max(0, (16 * len(hashes) // 64).bit_length()), np.uint64)
        _kernels.fill_filter(hashes, bits)
        return cls(bits, map_keys, map_values)
