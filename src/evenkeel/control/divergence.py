"""How far two windows are apart, and how far noise alone would put them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.planning import LoadSnapshot

__all__ = ["Comparison", "compare"]

_OWN_CELL = 0.01
"""Keys with so large a share in both windows are compared by themselves; smaller ones within their slots, since a key
near the tracking limit is not reported in every batch."""
_LEAST_CELL = 8
"""Tuples, of both windows together, that a cell needs; neighbours with fewer are compared as one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two windows differ.

    Parameters
    ----------
    chi_square, cells
        Pearson's statistic of the two windows as a 2 x cells table, and its degrees of freedom plus one.
    tuples
        Of both windows together.
    peak_z
        By how many standard deviations the cell that rose most did so.
    peak_share
        Its share of the newer window, minus that of the older.
    peak
        That cell in words.
    peaks
        How many cells could have been it.
    """

    chi_square: float
    cells: int
    tuples: float
    peak_z: float
    peak_share: float
    peak: str
    peaks: int

    def z(self, dispersion: float = 1.0) -> float:
        """Give the distance in standard deviations of what chance gives (Wilson and Hilferty's cube root)."""
        freedom = self.cells - 1
        if freedom < 1:
            return 0.0
        spread = 2 / (9 * freedom)
        return ((self.chi_square / dispersion / freedom) ** (1 / 3) - 1 + spread) / math.sqrt(spread)

    def share(self, dispersion: float = 1.0) -> float:
        """Give Cramér's V without its noise, from 0 to 1; between like windows at least the share of tuples moved."""
        excess = self.chi_square - dispersion * (self.cells - 1)
        return math.sqrt(max(excess, 0.0) / self.tuples) if self.tuples else 0.0


def compare(older: LoadSnapshot, newer: LoadSnapshot) -> Comparison:
    r"""Compare the tuples per slot, and per heavy key, of two windows; volume does not count, only its distribution.

    With counts a and b out of A and B, :math:`\chi^2 = \sum (a\sqrt{B/A} - b\sqrt{A/B})^2 / (a + b)`: for Poisson
    counts of one distribution its mean is the number of cells - 1 and its variance twice that, whatever the
    distribution. So the noise floor is known in closed form. O(slots + keys · log).
    """
    a, b, names = _cells(older, newer)
    total_a, total_b = float(a.sum()), float(b.sum())
    if total_a == 0 or total_b == 0:
        return Comparison(0.0, 1, total_a + total_b, 0.0, 0.0, "nothing", 1)
    scale = math.sqrt(total_b / total_a)
    both = a + b
    rises = (b / scale - a * scale) / np.sqrt(np.maximum(both, 1e-300))
    top = int(rises.argmax())
    rise = float(b[top] / total_b - a[top] / total_a)
    what = f"slot {names[top]}" if top < older.slots else f"key {names[top]}"
    # Too small cells have no χ² distribution; as groups of neighbours they have.
    _, groups = np.unique(np.floor(np.cumsum(both) / _LEAST_CELL), return_inverse=True)
    a, b = (np.bincount(groups, weights=side).astype(np.float64) for side in (a, b))
    used = a + b > 0
    a, b = a[used], b[used]
    chi_square = float(((a * scale - b / scale) ** 2 / (a + b)).sum())
    return Comparison(
        chi_square=chi_square,
        cells=len(a),
        tuples=total_a + total_b,
        peak_z=float(rises[top]),
        peak_share=rise,
        peak=what,
        peaks=len(both),
    )


def _cells(
    older: LoadSnapshot, newer: LoadSnapshot
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Counts of both windows over the same cells, and the cells' names: slots, then heavy keys apart from them."""
    heavy = [
        window.key_hashes[window.key_counts >= _OWN_CELL * max(window.total("counts"), 1.0)]
        for window in (older, newer)
    ]
    apart = np.intersect1d(heavy[0], heavy[1], assume_unique=True)
    counts = []
    for window in (older, newer):
        own = np.isin(window.key_hashes, apart, assume_unique=True)
        folded = np.bincount(
            window.key_hashes[~own] % window.slots, weights=window.key_counts[~own], minlength=window.slots
        )
        counts.append(np.concatenate([window.slot_counts + folded, window.key_counts[own]]))
    return counts[0], counts[1], np.concatenate([np.arange(older.slots), apart])
