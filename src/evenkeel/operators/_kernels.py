"""Compiled loops of the operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel._kernels.compile import compiled

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]


@compiled
def scatter_fixed(fixed: NDArray[Any], starts: Offsets, out: Bytes) -> None:
    """Copy row ``i`` of ``fixed`` (rows × bytes) to ``out[starts[i]:]``."""
    for i in range(fixed.shape[0]):
        at = starts[i]
        for j in range(fixed.shape[1]):
            out[at + j] = fixed[i, j]


@compiled
def gather_fixed(data: Bytes, starts: Offsets, out: NDArray[Any]) -> None:
    """Undo :func:`scatter_fixed`."""
    for i in range(out.shape[0]):
        at = starts[i]
        for j in range(out.shape[1]):
            out[i, j] = data[at + j]


@compiled
def copy_slices(source: Bytes, source_starts: Offsets, lengths: Offsets, target_starts: Offsets, out: Bytes) -> None:
    """Copy ``lengths[i]`` bytes from ``source[source_starts[i]:]`` to ``out[target_starts[i]:]``."""
    for i in range(len(lengths)):
        a = source_starts[i]
        b = target_starts[i]
        for j in range(lengths[i]):
            out[b + j] = source[a + j]
