"""Parts of keys that arrive where other parts of them are: merged into one state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.operators import NEVER, Groups, fold
from evenkeel.state import Delta, wakes_of, with_wakes, without_wakes

if TYPE_CHECKING:
    from evenkeel.operators import Mergeable, RowCodec
    from evenkeel.state import StateView

__all__ = ["merge_arrivals"]


def merge_arrivals(
    operator: Mergeable, keys: int, codec: RowCodec, arrived: list[pa.RecordBatch], view: StateView, delta: Delta
) -> int:
    """Put into ``delta``, for each part that arrived, the whole of all parts of its key that are here now.

    The first ``keys`` columns of the codec are those of the key. Gives the state bytes of what arrived.
    """
    moved_bytes = delta.import_(arrived)
    if not moved_bytes:
        return 0
    parts = pa.Table.from_batches(arrived)
    hashes, hashes2 = (parts[name].to_numpy() for name in ("hash", "hash2"))
    without = Delta()
    without.drop(delta.dropped)
    groups = Groups.of(parts.select(["slot"]), ["slot"], hashes, hashes2)
    names = (groups.keys["slot"].to_numpy(), groups.hashes, groups.hashes2)
    held = view.get(*names, without)
    values = pa.concat_arrays([parts["value"].combine_chunks().cast(pa.binary()), held])
    key_of = np.concatenate([groups.key_of, np.arange(len(groups))])
    present = values.is_valid().to_numpy(zero_copy_only=False)
    values, key_of = values.filter(pa.array(present)), key_of[present]
    wakes = np.full(len(groups), NEVER)
    if operator.wakes_by is not None:
        np.minimum.at(wakes, key_of, wakes_of(values))
        values = without_wakes(values)
    rows = codec.decode(values)
    whole = fold(operator, rows.select(range(keys, rows.num_columns)), key_of, len(groups))
    last = np.zeros(len(groups), np.int64)
    last[key_of] = np.arange(len(key_of))
    named = rows.select(range(keys)).take(last)
    encoded = codec.encode(pa.table([*named.columns, *whole.columns], schema=codec.schema))
    delta.put(*names, encoded if operator.wakes_by is None else with_wakes(encoded, wakes))
    return moved_bytes
