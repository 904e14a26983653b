"""A delta as bytes: an Arrow IPC stream, compressed where Arrow can.

One row per key written, in ascending order of packed keys:

======= ============= ==========================================
column  type          meaning
======= ============= ==========================================
slot    int32         the key's slot
hash    int64         its hash
hash2   int64         its second hash
value   large_binary  its new state; null deletes it
======= ============= ==========================================

The schema's metadata holds the format, the dropped ranges (lowest and highest packed key of each, 40 bytes), the
change of each slot's keys and bytes and, where values begin with times, up to when keys have been called. Drops come
first, so a key that is dropped and written is there afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenkeel.errors import CorruptDataError, IncompatibleCheckpointError
from evenkeel.state.files import FORMAT
from evenkeel.state.identity import KEY_BYTES, pack, unpack
from evenkeel.state.totals import SlotTotals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evenkeel.state.delta import Pending

__all__ = ["ROWS", "Changes", "decode", "encode"]

ROWS = pa.schema(
    [
        pa.field("slot", pa.int32(), nullable=False),
        pa.field("hash", pa.int64(), nullable=False),
        pa.field("hash2", pa.int64(), nullable=False),
        pa.field("value", pa.large_binary()),
    ]
)
_ROWS_PER_BATCH = 1 << 20
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
"""Two fifths less to write, and to take the checksum of: which is worth the time."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What a delta file says: ranges to drop, then keys to write, and what that does to the slots' totals.

    Where values begin with times, ``woken_until`` says up to when keys have been called.
    """

    drops: list[tuple[bytes, bytes]]
    keys: NDArray[np.bytes_]
    values: Any
    totals: SlotTotals
    woken_until: int | None = None


def encode(
    pending: Pending, drops: list[tuple[bytes, bytes]], totals: SlotTotals, woken_until: int | None = None
) -> Any:
    """Give the bytes of a delta file as an Arrow buffer. O(keys written + ranges)."""
    slots, hashes, hashes2 = unpack(pending.keys)
    metadata = {
        "evenkeel.delta": str(FORMAT),
        "drops": b"".join(low + high for low, high in drops),
        "totals": totals.to_bytes(),
    }
    if woken_until is not None:
        metadata["woken_until"] = str(woken_until)
    table = pa.table([slots, hashes, hashes2, pending.values], schema=ROWS.with_metadata(metadata))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table, max_chunksize=_ROWS_PER_BATCH)
    return sink.getvalue()


def decode(data: Any, path: str) -> Changes:
    """Read what :func:`encode` gave; ``path`` is for the error's sake."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        metadata = table.schema.metadata or {}
        if int(metadata[b"evenkeel.delta"]) > FORMAT:
            raise IncompatibleCheckpointError(
                f"{path} has format {int(metadata[b'evenkeel.delta'])}; this version of Evenkeel reads up to {FORMAT}. "
                "Use the version that wrote it, or a newer one.",
                path=path,
            )
        ends = metadata[b"drops"]
        drops = [
            (ends[start : start + KEY_BYTES], ends[start + KEY_BYTES : start + 2 * KEY_BYTES])
            for start in range(0, len(ends), 2 * KEY_BYTES)
        ]
        keys = pack(*(table[name].to_numpy() for name in ("slot", "hash", "hash2")))
        totals = SlotTotals.from_bytes(metadata[b"totals"])
        woken = metadata.get(b"woken_until")
        return Changes(drops, keys, table["value"], totals, None if woken is None else int(woken))
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise CorruptDataError(f"{path} is not a delta: {error}", path=path, reason="altered") from error
