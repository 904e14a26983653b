"""Event times of tuples, and the watermark that the driver keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators import NEVER, NO_WATERMARK

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LATE", "TIME", "check_event_time", "event_times", "next_watermark"]

TIME = "__evenkeel_time"
"""Event times that the engine itself passes on, in microseconds."""

LATE = "__evenkeel_late"
"""How many tuples came too late before the shuffle."""


def check_event_time(rows: pa.Schema, column: str) -> None:
    """Complain about a column that is missing or holds no times."""
    if column not in rows.names:
        raise InvalidArgumentError(
            f"There is no event-time column {column!r}. Columns: {', '.join(rows.names)}.", column=column
        )
    kind = rows.field(column).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind) or column == TIME):
        raise InvalidArgumentError(
            f"The event-time column {column!r} has type {kind}; it must be a timestamp or a date. Convert it first, "
            "for example with Spark's to_timestamp or timestamp_micros.",
            column=column,
        )


def event_times(rows: pa.Table, column: str | None) -> NDArray[np.int64] | None:
    """Give each tuple's event time in microseconds; :data:`NEVER` for null. ``None`` without a column."""
    if column is None:
        return None
    times = rows[column]
    if column != TIME:
        times = pc.cast(times, pa.timestamp("us", getattr(times.type, "tz", None))).cast(pa.int64())
    return pc.fill_null(times, NEVER).to_numpy()


def next_watermark(watermark: int, newest: list[int], delay_us: int) -> int:
    """Give the watermark after a batch: the newest event time less the delay; it never falls."""
    return max([watermark, *(max(time - delay_us, NO_WATERMARK) for time in newest)])
