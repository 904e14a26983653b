"""How Figures 12 to 14 take the time of a construction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from experiments.gedik.growing import Growth, grown

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["TIMED", "times"]

TIMED = ("scan", "redist", "readj", "consistent")


def times(settings: Iterable[dict[str, Any]], repeats: int) -> pa.Table:
    """Take the least of some repeats for each setting, after one that is not counted; in milliseconds."""
    rows = []
    warm: set[str] = set()
    for one in settings:
        setting = Growth(**one)
        if setting.strategy not in warm:
            next(grown(replace(setting, keys=1000, channels=3, slots=1 << 12)))
            warm.add(setting.strategy)
        measured = [next(grown(setting)) for _ in range(repeats)]
        rows.append(
            {**one, "explicit": measured[0]["pins"], "milliseconds": 1e3 * min(row["seconds"] for row in measured)}
        )
    return pa.Table.from_pylist(rows)
