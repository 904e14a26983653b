"""A histogram that shapes itself to the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.sketches._arrow import check_laws, pack, unpack
from evenkeel.sketches._checks import counts_for, finite, whole_number

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

KIND = "streaming histogram"


class StreamingHistogram:
    r"""A sketch of how numbers are spread, for quantiles and for the splits of decision trees.

    The stream is held as at most :math:`B` bins :math:`(p_i, m_i)`, a centre and a count. A value that is a
    centre adds to its bin; another one becomes a bin, and if that is one too many, the two neighbours with the
    smallest gap, the lowest such pair, become one at their centroid.

    Total and mean are kept exactly (the mean up to rounding), and so is every count of a stream with no more
    than :math:`B` different values. Beyond that there is no bound on the error of :meth:`sum`. It is small where
    values are spread smoothly over their range, and large where they are not: far outliers take most bins, so
    of a heavy tail (lognormal with sigma 3, say) observe the logarithms.

    Two things differ from the paper. Its Sum is defined between the outer centres only; here the ends are closed
    by bins of no mass at the least and the greatest value, which are kept exactly. And a centroid is computed
    from shares instead of products, so that large values do not overflow.

    Time is O(B) per value that is no centre; memory is 16 bytes per bin.

    Parameters
    ----------
    bins
        :math:`B`, at least 1.

    References
    ----------
    Y. Ben-Haim, E. Tom-Tov, "A streaming parallel decision tree algorithm", JMLR 11 (2010), section 2.1:
    Update, Merge, Sum and Uniform (algorithms 1-4).

    Examples
    --------
    >>> import numpy as np
    >>> histogram = StreamingHistogram(bins=32)
    >>> histogram.observe(np.random.default_rng(7).normal(size=100_000))
    >>> np.round(histogram.sum([-1.0, 0.0, 1.0]) / histogram.total, 2).tolist()
    [0.16, 0.5, 0.84]
    >>> np.round(histogram.uniform(4), 1).tolist()
    [-0.7, -0.0, 0.7]
    """

    def __init__(self, bins: int) -> None:
        self.bins = whole_number("bins", bins, 1)
        self.minimum = np.inf
        self.maximum = -np.inf
        self._size = 0
        # One place more than bins, for the newcomer.
        self._centres = np.zeros(self.bins + 1)
        self._counts = np.zeros(self.bins + 1, np.int64)

    @property
    def total(self) -> int:
        """Values observed so far."""
        return int(self.counts.sum())

    @property
    def centres(self) -> NDArray[np.float64]:
        """The bins' centres, rising."""
        return self._centres[: self._size].copy()

    @property
    def counts(self) -> NDArray[np.int64]:
        """The bins' counts."""
        return self._counts[: self._size].copy()

    def __len__(self) -> int:
        return self._size

    @property
    def size_bound(self) -> int:
        """The most bins there can be."""
        return self.bins

    def observe(self, values: ArrayLike, counts: ArrayLike | None = None) -> None:
        """Add these values, in this order, each once or as often as its positive count says."""
        from evenkeel.sketches._kernels import observe_histogram

        points = finite("values", values)
        weights = counts_for("counts", counts, len(points), self.total)
        self._size = observe_histogram(self._centres, self._counts, self._size, self.bins, points, weights)
        self.minimum = min(self.minimum, points.min(initial=np.inf))
        self.maximum = max(self.maximum, points.max(initial=-np.inf))

    def merge(self, other: StreamingHistogram) -> StreamingHistogram:
        """Return a histogram of both streams, with the smaller number of bins of the two."""
        from evenkeel.sketches._kernels import join_closest

        merged = StreamingHistogram(min(self.bins, other.bins))
        centres, inverse = np.unique(np.concatenate([self.centres, other.centres]), return_inverse=True)
        counts = np.zeros(len(centres), np.int64)
        np.add.at(counts, inverse, np.concatenate([self.counts, other.counts]))
        for size in range(len(centres), merged.bins, -1):
            join_closest(centres, counts, size)
        merged._size = min(len(centres), merged.bins)
        merged._centres[: merged._size] = centres[: merged._size]
        merged._counts[: merged._size] = counts[: merged._size]
        merged.minimum = min(self.minimum, other.minimum)
        merged.maximum = max(self.maximum, other.maximum)
        return merged

    def _curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return points, the mass at each, and how many values are estimated up to each."""
        points, masses = self.centres, self.counts.astype(np.float64)
        if self.minimum < points[0]:
            points, masses = np.append(self.minimum, points), np.append(0.0, masses)
        if self.maximum > points[-1]:
            points, masses = np.append(points, self.maximum), np.append(masses, 0.0)
        return points, masses, np.cumsum(masses) - masses / 2

    def sum(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated number of values up to each point.

        Half of a bin lies on each side of its centre, and between two centres the density changes evenly. The
        estimate never falls as the point rises; it is 0 below the least value and the total from the greatest.
        """
        at = finite("points", points)
        if not self._size:
            return np.zeros(len(at))
        knots, masses, below = self._curve()
        inner = np.clip(at, knots[0], knots[-1])
        left = np.clip(np.searchsorted(knots, inner, side="right") - 1, 0, max(0, len(knots) - 2))
        right = np.minimum(left + 1, len(knots) - 1)
        # Halved before subtracting, since the ends of the range of floats are further apart than its largest.
        width = np.maximum(knots[right] / 2 - knots[left] / 2, np.finfo(np.float64).tiny)
        part = (inner / 2 - knots[left] / 2) / width
        density = masses[left] + (masses[right] - masses[left]) * part
        estimate = below[left] + (masses[left] + density) / 2 * part
        return np.where(at < knots[0], 0.0, np.where(at >= knots[-1], float(self.total), estimate))

    def uniform(self, parts: int) -> NDArray[np.float64]:
        """Return the ``parts - 1`` points that cut the values into parts estimated to be of equal number."""
        parts = whole_number("parts", parts, 1)
        if not self._size:
            raise InvalidArgumentError("An empty histogram cannot be cut; observe some values first.")
        knots, masses, below = self._curve()
        targets = np.clip(np.arange(1, parts) / parts * self.total, below[0], below[-1])
        left = np.clip(np.searchsorted(below, targets, side="right") - 1, 0, max(0, len(knots) - 2))
        right = np.minimum(left + 1, len(knots) - 1)
        missing = targets - below[left]
        # The root of the paper's quadratic in the form that also serves where the density does not change.
        root = np.sqrt(np.maximum(masses[left] ** 2 + 2 * (masses[right] - masses[left]) * missing, 0.0))
        slope = masses[left] + root
        part = np.clip(np.divide(2 * missing, slope, out=np.zeros_like(slope), where=slope > 0), 0.0, 1.0)
        return knots[left] * (1 - part) + knots[right] * part

    def to_arrow(self) -> pa.RecordBatch:
        """Return all of the histogram, as columns ``centre`` and ``count``."""
        scalars = {"bins": self.bins, "minimum": float(self.minimum), "maximum": float(self.maximum)}
        return pack(KIND, scalars, {"centre": self.centres, "count": self.counts})

    @classmethod
    def from_arrow(cls, batch: pa.RecordBatch) -> StreamingHistogram:
        """Return the histogram that :meth:`to_arrow` gave; CorruptDataError if it cannot be one."""
        scalars, columns = unpack(
            batch,
            KIND,
            {"bins": int, "minimum": float, "maximum": float},
            {"centre": np.float64, "count": np.int64},
        )
        centres, counts = columns["centre"], columns["count"]
        bins, minimum, maximum = scalars["bins"], scalars["minimum"], scalars["maximum"]
        within = minimum <= centres[0] and centres[-1] <= maximum if len(centres) else minimum > maximum
        check_laws(
            KIND,
            {
                "there are no more bins than allowed": len(centres) <= bins,
                "there is at least one bin to fill": bins > 0,
                "centres are finite and rise": np.isfinite(centres).all() and (np.diff(centres) > 0).all(),
                "counts are positive": (counts > 0).all(),
                "the centres lie between the least and the greatest value": within,
            },
        )
        histogram = cls(bins)
        histogram._size = len(centres)
        histogram._centres[: len(centres)] = centres
        histogram._counts[: len(centres)] = counts
        histogram.minimum, histogram.maximum = minimum, maximum
        return histogram
