"""What Figures 9 to 11 count: items in the lossy counter, and keys in the explicit hash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenkeel.metrics import tracking_threshold
from evenkeel.sim import Zipf
from evenkeel.sketches import LossyCounting
from experiments.gedik.growing import Growth, grown, profile_of

if TYPE_CHECKING:
    from collections.abc import Iterable

import pyarrow as pa

__all__ = ["ERROR_SHARE", "sizes"]

ERROR_SHARE = 0.1
"""ε as a share of δ; the paper calls 0.1 typical."""


def sizes(settings: Iterable[dict[str, Any]], tuples_per_key: int) -> pa.Table:
    """Count both for each setting: the sketch sees the tuples one by one, redist builds the explicit hash."""
    rows = []
    for one in settings:
        setting = Growth(strategy="redist", **one)
        threshold = tracking_threshold(
            profile_of(setting.resources),
            n_channels=setting.channels,
            n_keys=setting.keys,
            untracked_share=setting.untracked_share,
        )
        sketch = LossyCounting(ERROR_SHARE * threshold)
        stream = Zipf(setting.keys, setting.exponent, tuples=tuples_per_key * setting.keys)
        for part in next(stream.windows()).tuples():
            sketch.observe(part.hashes)
        built = next(grown(setting))
        rows.append(
            {
                "resources": setting.resources,
                "untracked_share": setting.untracked_share,
                "exponent": setting.exponent,
                "channels": setting.channels,
                "threshold": threshold,
                "counted": len(sketch),
                "explicit": built["pins"],
            }
        )
    return pa.Table.from_pylist(rows)
