"""Who a key is: its slot, its Spark hash and a second hash, packed into 20 bytes that sort as the numbers do.

A key is known by 128 bits of hash, so that keys of any type, size or nullness have one fixed-size name. Among a billion
keys the chance that any two share a name is about 10⁻²¹.

======== ===== ==================================================================
bytes    type  meaning
======== ===== ==================================================================
0-3      uint  slot, big-endian
4-11     int   Spark's ``xxhash64`` of the key, big-endian, sign bit flipped
12-19    int   the second hash, likewise
======== ===== ==================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import SPARK_SEED, hash_from, hash_keys

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "KEY_BYTES",
    "SECOND_SEED",
    "as_list",
    "as_values",
    "ascending",
    "both_hashes",
    "count_up_to",
    "locate",
    "pack",
    "pairs_of",
    "unpack",
]

KEY_BYTES = 20
SECOND_SEED = 1780871924896934034
"""Where the second hash starts from: Spark's ``xxhash64(4242L)``."""

_PACKED = np.dtype([("slot", ">u4"), ("hash", ">u8"), ("hash2", ">u8")])
_START = np.dtype({"names": ["start"], "formats": [">u8"], "offsets": [0], "itemsize": KEY_BYTES})
_SIGN = np.uint64(1 << 63)
_FEW = 32
"""Pieces up to which it is quicker to merge them than to sort all."""


def both_hashes(*columns: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hash keys twice: as :func:`~evenkeel.hashing.hash_keys` does, and independently of that.

    Spark's hash skips nulls, so that ``("a", null)`` and ``(null, "a")`` are one to it under every seed. In the second
    each part of a composite key also adds whether it is null. Equal to Spark's ``xxhash64(4242L, columns…,
    isnull(column)…)``, where the marks are left out for a key of one plain column. O(rows).

    >>> import pyarrow as pa
    >>> hashes, hashes2 = both_hashes(pa.array(["a", None]), pa.array([None, "a"]))
    >>> bool(hashes[0] == hashes[1]), bool(hashes2[0] == hashes2[1])
    (True, False)
    """
    arrays = [column if isinstance(column, (pa.Array, pa.ChunkedArray)) else _as_arrow(column) for column in columns]
    hashes, hashes2 = hash_from((SPARK_SEED, SECOND_SEED), *arrays)
    if len(arrays) > 1 or pa.types.is_struct(arrays[0].type):
        hashes2 = hash_keys(*(mark for array in arrays for mark in _null_marks(array)), seed=hashes2)
    return hashes, hashes2


def _as_arrow(column: Any) -> pa.Array:
    return column.to_struct_array() if isinstance(column, (pa.RecordBatch, pa.Table)) else pa.array(column)


def _null_marks(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    marks = [pc.is_null(array)]
    if pa.types.is_struct(array.type):
        for position in range(array.type.num_fields):
            marks += _null_marks(pc.struct_field(array, [position]))
    return marks


def pack(slots: ArrayLike, hashes: ArrayLike, hashes2: ArrayLike) -> NDArray[np.bytes_]:
    """Give each key's 20 bytes; they sort by slot, then hash, then second hash. O(keys), 20 bytes each."""
    columns = [np.asarray(slots), np.asarray(hashes, np.int64), np.asarray(hashes2, np.int64)]
    if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
        raise InvalidArgumentError(
            f"Slots, hashes and second hashes must have one length; got {[column.shape for column in columns]}."
        )
    if len(columns[0]) and not 0 <= columns[0].min() <= columns[0].max() < 2**31:
        raise InvalidArgumentError(f"Slots are numbers from 0 to 2³¹ - 1; got {columns[0].min()}…{columns[0].max()}.")
    packed = np.empty(len(columns[0]), _PACKED)
    packed["slot"] = columns[0]
    packed["hash"] = columns[1].view(np.uint64) ^ _SIGN
    packed["hash2"] = columns[2].view(np.uint64) ^ _SIGN
    return packed.view(f"S{KEY_BYTES}")


def unpack(packed: NDArray[np.bytes_]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Give slots, hashes and second hashes of packed keys; undoes :func:`pack`."""
    fields = packed.view(_PACKED)
    hashes, hashes2 = ((fields[name].astype(np.uint64) ^ _SIGN).view(np.int64) for name in ("hash", "hash2"))
    return fields["slot"].astype(np.int32), hashes, hashes2


def ascending(packed: NDArray[np.bytes_]) -> NDArray[np.int64] | None:
    """Give the places of packed keys in ascending order; equal ones stay as they are. None if they ascend already.

    By the first eight bytes of each, as one number, which takes a third of the time; the rest of a key is looked at
    only where these are the same. A few pieces that ascend, such as what was read along trees, are only merged.
    O(keys · log pieces).
    """
    starts = _starts(packed)
    falls = np.count_nonzero(starts[1:] < starts[:-1])
    order = np.argsort(starts, kind="stable" if falls < _FEW else None) if falls else np.arange(len(starts))
    if falls:
        starts = starts[order]
    if (starts[1:] == starts[:-1]).any():
        from evenkeel.state._kernels_order import order_alike

        if not order_alike(starts, order, pairs_of(packed)):
            order = np.argsort(packed, kind="stable")
        elif not falls and (order[1:] > order[:-1]).all():
            return None
    elif not falls:
        return None
    return order


def pairs_of(packed: NDArray[np.bytes_]) -> NDArray[np.uint16]:
    """Give packed keys as compiled loops read them: pairs of bytes, one behind another."""
    return np.ascontiguousarray(packed).view("<u2")


def as_list(packed: NDArray[np.bytes_]) -> list[bytes]:
    """Give packed keys as ``bytes``; through ``V20``, since NumPy cuts the zeros off the end of an ``S20``."""
    listed: list[bytes] = packed.view(f"V{KEY_BYTES}").tolist()
    return listed


def as_values(hashes: NDArray[np.int64], hashes2: NDArray[np.int64]) -> pa.Array:
    """Give what tells one key from another as one value each: both hashes, as Arrow compares them."""
    both = np.column_stack([hashes, hashes2])
    return pa.Array.from_buffers(pa.binary(16), len(both), [None, pa.py_buffer(both)])


def locate(members: NDArray[np.bytes_], wanted: NDArray[np.bytes_]) -> NDArray[np.int64]:
    """Give the place of each wanted key among the ascending ``members``, or -1. O(wanted · log members)."""
    if len(members) == 0:
        return np.full(len(wanted), -1, np.int64)
    starts, numbers = _starts(members), _starts(wanted)
    places = np.minimum(np.searchsorted(starts, numbers), len(members) - 1)
    equal = members[places] == wanted
    unclear = np.flatnonzero(~equal & (starts[places] == numbers))  # others begin alike
    places[unclear] = np.minimum(np.searchsorted(members, wanted[unclear]), len(members) - 1)
    equal[unclear] = members[places[unclear]] == wanted[unclear]
    return np.where(equal, places, -1)


def count_up_to(members: NDArray[np.bytes_], limits: NDArray[np.bytes_]) -> NDArray[np.int64]:
    """Give how many of the ascending ``members`` are not above each limit. O(limits · log members)."""
    if len(members) == 0:
        return np.zeros(len(limits), np.int64)
    starts, numbers = _starts(members), _starts(limits)
    counts = np.searchsorted(starts, numbers, side="right")
    unclear = np.flatnonzero((counts > 0) & (starts[counts - 1] == numbers))
    counts[unclear] = np.searchsorted(members, limits[unclear], side="right")
    return counts


def _starts(packed: NDArray[np.bytes_]) -> NDArray[np.uint64]:
    """Give the first eight bytes of packed keys as numbers, which NumPy compares in a fraction of the time."""
    return np.ascontiguousarray(packed).view(_START)["start"].astype(np.uint64)
