"""When keys want to be called: eight bytes before the value, and an index by time in the working copy.

The time travels with the value, so a key that moves, or is restored, wants what it wanted before. The index is only
added to: a key that changed its mind leaves an old entry behind, which is recognised by the value's own time and goes
when that time is passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NEVER", "WAKE_BYTES", "wake_bytes", "wakes_of", "with_wakes", "without_wakes"]

WAKE_BYTES = 8
NEVER = np.iinfo(np.int64).max
_SIGN = np.uint64(1 << 63)


def wake_bytes(time: int) -> bytes:
    """Give a time as bytes that sort as times do."""
    return (time + (1 << 63)).to_bytes(WAKE_BYTES, "big")


def with_wakes(values: pa.LargeBinaryArray, wakes: NDArray[np.int64]) -> pa.LargeBinaryArray:
    """Put each key's time before its value; nulls stay null. O(bytes)."""
    encoded = (np.ascontiguousarray(wakes, np.int64).view(np.uint64) ^ _SIGN).astype(">u8")
    prefix = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(WAKE_BYTES), len(encoded), [None, pa.py_buffer(encoded.tobytes())]
    )
    return pc.binary_join_element_wise(prefix.cast(pa.large_binary()), values, pa.scalar(b"", pa.large_binary()))


def without_wakes(values: Any) -> pa.LargeBinaryArray:
    """Give the values alone."""
    # Not by Arrow's binary_slice: it sets aside room for as many bytes as the longest value has, times the values.
    return pa.array([value and value[WAKE_BYTES:] for value in values.to_pylist()], pa.large_binary())


def wakes_of(values: Any) -> NDArray[np.int64]:
    """Give each value's time; :data:`NEVER` for nulls."""
    heads = pc.fill_null(pc.binary_slice(values, 0, WAKE_BYTES), wake_bytes(NEVER))
    joined = b"".join(heads.to_pylist())
    return (np.frombuffer(joined, ">u8").astype(np.uint64) ^ _SIGN).view(np.int64)
