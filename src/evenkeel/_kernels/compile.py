"""The one way in which Evenkeel compiles a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def compiled(function: F) -> F:
    """Compile ``function`` on its first call, and keep the machine code on disk for the next process.

    Where no folder can be written (a locked-down Spark executor without a home), the code is compiled anew in
    each process instead of failing.
    """
    try:
        return cast("F", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # Numba found no folder for its cache.
        return cast("F", numba.njit(nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """Compile a small helper that is called from other compiled loops."""
    return cast("F", numba.njit(inline="always", nogil=True, error_model="numpy")(function))
