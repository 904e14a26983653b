"""Hashing: keys per second on one core."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import time_together
from evenkeel.hashing import hash_keys


def run(quick: bool) -> list[dict[str, object]]:
    rows = 1_000_000 if quick else 10_000_000
    rng = np.random.default_rng(0)
    longs = rng.integers(-(2**63), 2**63 - 1, rows)
    ranks = pa.array(np.minimum(rng.zipf(1.3, rows), 99_999))
    words = pc.binary_join_element_wise("word", pc.cast(ranks, pa.string()), "")
    timings = time_together(
        5,
        **{
            "hash_keys, int64": lambda: hash_keys(longs),
            "hash_keys, short strings (5-9 bytes)": lambda: hash_keys(words),
            "hash_keys, composite (string, int64)": lambda: hash_keys(words, longs),
            "peer: copy the int64 array": longs.copy,
        },
    )
    peer = timings.pop("peer: copy the int64 array")
    targets = {"hash_keys, int64": 20.0, "hash_keys, short strings (5-9 bytes)": 10.0}
    return [
        {
            "what": what,
            "value": rows / timing.median / 1e6,
            "unit": "M keys/s",
            "target": f">= {targets[what]:g}" if what in targets else "",
            "met": rows / timing.median / 1e6 >= targets[what] if what in targets else None,
            "ratio": timing.median / peer.median,
            "peer": "time of a plain copy of the int64 array",
            **timing.repeated,
        }
        for what, timing in timings.items()
    ]
