"""What the sketches accept as arguments, and the errors for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def whole_number(what: str, value: Any, least: int) -> int:
    """Return ``value`` as an int that is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidArgumentError(
            f"{what} must be an integer of at least {least}, got {value!r}.", what=what, value=value
        )
    return int(value)


def fraction(what: str, value: float) -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    if not 0 < value < 1:  # False also for NaN
        raise InvalidArgumentError(f"{what} must lie strictly between 0 and 1, got {value!r}.", what=what, value=value)
    return float(value)


def share(what: str, value: float, least: float) -> float:
    """Return ``value`` as a float between ``least`` and 1."""
    if not least <= value <= 1:
        raise InvalidArgumentError(f"{what} must lie between {least} and 1, got {value!r}.", what=what, value=value)
    return float(value)


def integers(what: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return ``values`` as a one-dimensional array of 64-bit integers, without loss."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64):
        raise InvalidArgumentError(
            f"{what} must be a one-dimensional int64 array, got {array.ndim} dimensions of {array.dtype}. "
            "Hashes that come as uint64 keep their bits under `.view(np.int64)`.",
            what=what,
            dtype=str(array.dtype),
        )
    return _plain(array, np.int64)


def counts_for(what: str, counts: ArrayLike | None, length: int, total: int) -> NDArray[np.int64]:
    """Return ``counts`` as positive integers, one for each of ``length`` items; ones where none are given."""
    if counts is None:
        return np.ones(length, np.int64)
    array = integers(what, counts)
    if len(array) != length:
        raise InvalidArgumentError(f"{what} must be as many as the items, got {len(array)} for {length}.", what=what)
    if length and array.min() < 1:
        raise InvalidArgumentError(f"{what} must be positive, got {array.min()}.", what=what, value=int(array.min()))
    if total + array.sum(dtype=np.float64) >= 2.0**63:
        raise InvalidArgumentError(f"{what} must keep the total below 2**63.", what=what)
    return array


def finite(what: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return ``values`` as a one-dimensional array of finite floats."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise InvalidArgumentError(
            f"{what} must be a one-dimensional array of numbers, got {array.ndim} dimensions of {array.dtype}.",
            what=what,
            dtype=str(array.dtype),
        )
    array = _plain(array, np.float64)
    if not np.isfinite(array).all():
        raise InvalidArgumentError(f"{what} must be finite, got NaN or infinity. Leave missing values out.", what=what)
    return array


def _plain(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    # One array type for all callers: Numba compiles a loop anew for strided and for read-only arrays, and
    # what comes out of Arrow is read-only.
    return np.require(array, dtype, ["C_CONTIGUOUS", "WRITEABLE"])
