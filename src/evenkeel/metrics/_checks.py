"""Turn what the caller passed into arrays that the measures can rely on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = "NDArray[np.float64]"
IntArray: TypeAlias = "NDArray[np.int64]"


def as_amounts(name: str, values: ArrayLike, *, ndims: tuple[int, ...] = (1,)) -> FloatArray:
    """Read finite, non-negative numbers, such as loads or bytes of state."""
    try:
        amounts = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name} must be numbers in a rectangular array: {error}.", name=name) from error
    if amounts.ndim not in ndims:
        allowed = " or ".join(f"{ndim}-D" for ndim in ndims)
        raise InvalidArgumentError(
            f"{name} must be {allowed}, got shape {amounts.shape}.", name=name, shape=amounts.shape
        )
    if not np.isfinite(amounts).all():
        raise InvalidArgumentError(f"{name} must be finite, got NaN or infinity.", name=name)
    if (amounts < 0).any():
        raise InvalidArgumentError(
            f"{name} must not be negative, got {amounts.min()}.", name=name, value=float(amounts.min())
        )
    return amounts


def as_loads(name: str, values: ArrayLike, *, ndim: int = 1) -> FloatArray:
    """Read loads with one entry per channel on the last axis, of one channel at least."""
    loads = as_amounts(name, values, ndims=(ndim,))
    if loads.size == 0:
        raise InvalidArgumentError(
            f"{name} must hold at least one channel in each window, got shape {loads.shape}.",
            name=name,
            shape=loads.shape,
        )
    return loads


def scaled_to_unit(loads: FloatArray) -> FloatArray:
    """Scale the fullest channel of the last axis into [1/2, 1), or leave zeros as they are.

    By a power of two, hence without rounding; and no tiny load can vanish in a mean.
    """
    _, exponents = np.frexp(loads.max(axis=-1, keepdims=True))
    scaled: FloatArray = np.ldexp(loads, -exponents)
    return scaled


def as_resource_loads(loads: ArrayLike) -> FloatArray:
    """Read loads of resources x channels."""
    checked = as_loads("loads", loads, ndim=2)
    if len(checked) != 3:
        raise InvalidArgumentError(
            f"loads must have a row each for state, computation and communication, got {len(checked)} rows.",
            shape=checked.shape,
        )
    return checked


def as_integers(name: str, values: ArrayLike, *, length: int | None = None, lowest: int = 0) -> IntArray:
    """Read channels or counts: whole, not below ``lowest``, and ``length`` of them where that is given."""
    integers = np.asarray(values)
    if integers.size == 0:
        integers = integers.astype(np.int64)
    if integers.ndim != 1 or integers.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"{name} must be a 1-D array of integers, got {integers.dtype} of shape {integers.shape}.",
            name=name,
            shape=integers.shape,
        )
    if length is not None and len(integers) != length:
        raise InvalidArgumentError(
            f"{name} must have one entry per item: {length} items, got {len(integers)} entries.",
            name=name,
            expected=length,
            got=len(integers),
        )
    if integers.size and integers.min() < lowest:
        raise InvalidArgumentError(
            f"{name} must not be below {lowest}, got {integers.min()}.", name=name, value=int(integers.min())
        )
    return integers.astype(np.int64, copy=False)


def check_count(name: str, value: int, *, lowest: int = 1) -> None:
    """Refuse a number of channels, keys or windows below ``lowest``."""
    if value < lowest:
        raise InvalidArgumentError(f"{name} must be at least {lowest}, got {value}.", name=name, value=value)


def check_positive(name: str, value: float) -> None:
    """Refuse what is not a finite number above zero."""
    if not (math.isfinite(value) and value > 0):
        raise InvalidArgumentError(f"{name} must be finite and above 0, got {value}.", name=name, value=value)


def check_tolerance(tolerance: float) -> None:
    """Refuse a tolerated ratio of maximum to minimum load that no loads can meet, or that is none."""
    if not 1 <= tolerance < math.inf:
        raise InvalidArgumentError(
            f"tolerance must be a finite ratio of at least 1, got {tolerance}.", tolerance=tolerance
        )
