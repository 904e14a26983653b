"""Copying a few bytes within a compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenkeel._kernels.compile import inlined

__all__ = ["copy"]


@inlined
def copy(source: Any, at: int, out: Any, to: int, count: int) -> None:
    """Copy bytes, or other numbers; counted without a sign, or each step would look whether to count from the end."""
    start, begin = np.uint64(at), np.uint64(to)
    for step in range(np.uint64(count)):
        out[begin + step] = source[start + step]
