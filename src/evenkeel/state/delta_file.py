"""A delta as bytes: an Arrow IPC stream, compressed where Arrow can.

One row per key written:

======= ============= ==========================================
column  type          meaning
======= ============= ==========================================
slot    int32         the key's slot
hash    int64         its hash
hash2   int64         its second hash
value   large_binary  its new state; null deletes it
======= ============= ==========================================

Keys ascend (format 1). What was adopted from other channels comes before that, in runs as it was read, and a later row
of a key replaces an earlier one (format 2): to put it in order takes longer than to write it, and who applies the delta
has more time.

The schema's metadata holds the format, the dropped ranges (lowest and highest packed key of each, 40 bytes), the
change of each slot's keys and bytes and, where values begin with times, up to when keys have been called. Drops come
first, so a key that is dropped and written is there afterwards.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import CorruptDataError, IncompatibleCheckpointError
from evenkeel.state.files import FORMAT
from evenkeel.state.identity import KEY_BYTES, ascending, pack, unpack
from evenkeel.state.totals import SlotTotals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from evenkeel.state.delta import Pending
    from evenkeel.state.files import Sealing

__all__ = ["ROWS", "Changes", "decode", "encode"]

_IN_RUNS = 2
"""The format of a delta in several runs; else it is that of the checkpoint."""

ROWS = pa.schema(
    [
        pa.field("slot", pa.int32(), nullable=False),
        pa.field("hash", pa.int64(), nullable=False),
        pa.field("hash2", pa.int64(), nullable=False),
        pa.field("value", pa.large_binary()),
    ]
)
_ROWS_PER_BATCH, _GATHERED_BYTES = 1 << 20, 1 << 20
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
    stream: Sealing,
    adopted: Iterable[tuple[NDArray[np.bytes_], Any]],
    pending: Pending,
    drops: list[tuple[bytes, bytes]],
    totals: SlotTotals,
    woken_until: int | None = None,
) -> None:
    """Write a delta: keys and values that were adopted, as they come, and then the delta's own. O(keys + ranges)."""
    runs = iter(adopted)
    first = next(runs, None)
    metadata = {
        "evenkeel.delta": str(FORMAT if first is None else _IN_RUNS),
        "drops": b"".join(low + high for low, high in drops),
        "totals": totals.to_bytes(),
    }
    if woken_until is not None:
        metadata["woken_until"] = str(woken_until)
    schema = ROWS.with_metadata(metadata)
    with (
        pa.BufferedOutputStream(pa.PythonFile(stream, mode="w"), _GATHERED_BYTES) as gathered,
        pa.ipc.new_stream(gathered, schema, options=_COMPRESSED) as writer,
    ):
        for keys, values in [] if first is None else itertools.chain([first], runs):
            writer.write_batch(pa.record_batch([*unpack(keys), values.cast(pa.large_binary())], schema=schema))
        own = pa.table([*unpack(pending.keys), pending.values], schema=schema)
        writer.write_table(own, max_chunksize=_ROWS_PER_BATCH)


def decode(data: Any, path: str) -> Changes:
    """Read what :func:`encode` wrote; ``path`` is for the error's sake."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        metadata = table.schema.metadata or {}
        written_as = int(metadata[b"evenkeel.delta"])
        if written_as not in (FORMAT, _IN_RUNS):
            raise IncompatibleCheckpointError(
                f"{path} has format {written_as}; this version of Evenkeel reads up to {_IN_RUNS}. "
                "Use the version that wrote it, or a newer one.",
                path=path,
            )
        ends = metadata[b"drops"]
        drops = [
            (ends[start : start + KEY_BYTES], ends[start + KEY_BYTES : start + 2 * KEY_BYTES])
            for start in range(0, len(ends), 2 * KEY_BYTES)
        ]
        keys, values = pack(*(table[name].to_numpy() for name in ("slot", "hash", "hash2"))), table["value"]
        if written_as == _IN_RUNS:
            rows = _last_rows(keys)
            keys, values = keys[rows], values.take(pa.array(rows))
        totals = SlotTotals.from_bytes(metadata[b"totals"])
        woken = metadata.get(b"woken_until")
        return Changes(drops, keys, values, totals, None if woken is None else int(woken))
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise CorruptDataError(f"{path} is not a delta: {error}", path=path, reason="altered") from error


def _last_rows(keys: NDArray[np.bytes_]) -> NDArray[np.int64]:
    """Give the place of the last row of each key, in ascending order of keys."""
    order = ascending(keys)
    if order is None:
        order = np.arange(len(keys))
    keys = keys[order]
    return order[np.append(keys[1:] != keys[:-1], True)]
