"""Lengths of time, said in words."""

from __future__ import annotations

import re
from datetime import timedelta

from evenkeel.errors import InvalidArgumentError

__all__ = ["Duration", "microseconds"]

Duration = str | timedelta
_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(rf"(\d+)\s*({'|'.join(_UNITS)})s?", re.IGNORECASE)


def microseconds(duration: Duration) -> int:
    """Give a length of time in microseconds.

    Parameters
    ----------
    duration
        A ``timedelta``, or words such as ``"10 seconds"``, ``"5 minutes"``, ``"1 hour 30 minutes"`` or
        ``"100 milliseconds"``: whole numbers of microseconds to weeks. Months and years have no fixed length.

    Raises
    ------
    InvalidArgumentError
        For anything else, and for less than nothing.

    Examples
    --------
    >>> microseconds("1 hour 30 minutes")
    5400000000
    """
    if isinstance(duration, timedelta):
        length = duration // timedelta(microseconds=1)
    elif re.fullmatch(rf"\s*({_PART.pattern}\s*)+", str(duration), re.IGNORECASE):
        length = sum(int(number) * _UNITS[unit.lower()] for number, unit in _PART.findall(duration))
    else:
        raise InvalidArgumentError(
            f"{duration!r} is not a length of time. Say a whole number and a unit, such as '10 seconds' or '1 hour 30 "
            f"minutes', or give a timedelta. Units: {', '.join(f'{unit}s' for unit in _UNITS)}.",
            duration=duration,
        )
    if length < 0:
        raise InvalidArgumentError(f"A length of time cannot be negative; got {duration!r}.", duration=duration)
    return length
