"""Lossy counting: frequent keys in logarithmic space."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.sketches._arrow import check_laws, pack, unpack
from evenkeel.sketches._checks import fraction, integers, share, whole_number
from evenkeel.sketches.heavy_keys import HeavyKeys, add_up

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

KIND = "lossy counting"
FIRST_ROOM = 1024


class LossyCounting:
    r"""Counts of frequent keys, each too low by at most ``epsilon`` of the stream.

    The stream is cut into windows of :math:`w = \lceil 1/\epsilon \rceil` items. A key without an entry
    enters in window :math:`i` with count 1 and error :math:`i - 1`; when window :math:`i` closes, every entry
    with count + error :math:`\le i` leaves. (Gedik's text calls this count :math:`c_f` once; it is
    :math:`c_a`.)

    Guarantees, with :math:`f` a key's true count among :math:`n` items and :math:`b = \lfloor n/w \rfloor`
    windows closed:

    - an entry has count :math:`\le f \le` count + error, and error :math:`\le b \le \epsilon n`;
    - a key without an entry has :math:`f \le b`; so every key with :math:`f > \delta n` is in
      ``frequent(delta)``, and no key with :math:`f < (\delta - \epsilon) n` is;
    - there are at most :math:`w \ln(b + 1)` entries, and one more for each item of the open window. (An entry
      of the :math:`i`-th last closed window was seen :math:`i + 1` times since, or it would have left; those
      :math:`i` windows have :math:`i w` items; so the entries are at most
      :math:`\sum_{i=1}^{b} w/(i+1) \le w \ln(b+1)`.)

    A merged sketch keeps the first two: where one side does not hold a key, its error grows by that side's
    :math:`b`, and :math:`\lfloor n_1/w \rfloor + \lfloor n_2/w \rfloor \le \lfloor (n_1+n_2)/w \rfloor`.
    Its entries are at most those of both sides, and from then on new ones by the formula above.

    Time is O(1) per item while entries are O(:math:`w`), for the close of a window visits each of them once.
    Memory is 24 bytes for each entry there is room for, at most twice the most there ever were or 1024, and
    12 for each place of a hash map that is between a quarter and half full.

    Parameters
    ----------
    epsilon
        The error allowed, as a fraction of the stream; strictly between 0 and 1.

    References
    ----------
    G. S. Manku, R. Motwani, "Approximate frequency counts over data streams", VLDB 2002, section 4.2;
    B. Gedik, "Partitioning functions for stateful data parallelism in stream processing", VLDB Journal 2014,
    section 4.1.2.

    Examples
    --------
    >>> import numpy as np
    >>> sketch = LossyCounting(epsilon=0.01)
    >>> sketch.observe(np.random.default_rng(7).zipf(1.5, size=100_000))
    >>> keys, counts, errors = sketch.frequent(delta=0.1)
    >>> keys.tolist(), errors.tolist()
    ([1, 2], [0, 0])
    >>> sketch.error_bound, len(sketch)
    (1000, 16)
    """

    def __init__(self, epsilon: float) -> None:
        from evenkeel.sketches._kernels import lossy_arrays

        self.epsilon = fraction("epsilon", epsilon)
        self._width = math.ceil(1 / self.epsilon)
        none = np.empty(0, np.int64)
        self._arrays = lossy_arrays(FIRST_ROOM, none, none, none, 0)
        # What the last merge brought, for the bound on the number of entries.
        self._merged_entries = 0
        self._merged_total = 0

    @property
    def total(self) -> int:
        """Items observed so far."""
        return int(self._arrays[-1][1])

    def __len__(self) -> int:
        return int(self._arrays[-1][0])

    @property
    def error_bound(self) -> int:
        """The most by which any count is too low, also that of a key without an entry."""
        return self.total // self._width

    @property
    def size_bound(self) -> int:
        """The most entries there can be now."""
        closed = self.error_bound - self._merged_total // self._width
        still_open = min(self.total % self._width, self.total - self._merged_total)
        return self._merged_entries + int(self._width * math.log(closed + 1)) + still_open

    def observe(self, keys: ArrayLike) -> None:
        """Count these keys, in this order."""
        from evenkeel.sketches._kernels import lossy_arrays, observe_lossy

        items = integers("keys", keys)
        done = observe_lossy(*self._arrays, self._width, items, 0)
        while done < len(items):
            self._arrays = lossy_arrays(2 * len(self._arrays[2]), *self.entries(), self.total)
            done = observe_lossy(*self._arrays, self._width, items, done)

    def entries(self) -> HeavyKeys:
        """Return all entries, in the order in which they came."""
        return HeavyKeys(*(column[: len(self)].copy() for column in self._arrays[2:5]))

    def estimate(self, keys: ArrayLike) -> NDArray[np.int64]:
        """Return the count of each key: never too high, and too low by at most :attr:`error_bound`."""
        from evenkeel.sketches._kernels import look_up

        map_keys, map_slots, _, counts, *_ = self._arrays
        return look_up(map_keys, map_slots, counts, integers("keys", keys), 0)

    def frequent(self, delta: float) -> HeavyKeys:
        """Return every key that is more than ``delta`` of the stream, and none below ``delta - epsilon``.

        ``delta`` lies between ``epsilon`` and 1: what is rarer than ``epsilon`` may have been forgotten.
        """
        least = (share("delta", delta, self.epsilon) - self.epsilon) * self.total
        entries = self.entries()
        return entries.where(entries.counts >= least).ranked()

    def heavy_keys(self, threshold: int) -> HeavyKeys:
        """Return the entries that may have been seen ``threshold`` times.

        No key that has been is missing, if ``threshold`` exceeds :attr:`error_bound`.
        """
        entries = self.entries()
        may_reach = entries.counts + entries.errors >= whole_number("threshold", threshold, 1)
        return entries.where(may_reach).ranked()

    def merge(self, other: LossyCounting) -> LossyCounting:
        """Return a sketch of both streams, with the larger ``epsilon`` of the two."""
        from evenkeel.sketches._kernels import lossy_arrays

        merged = LossyCounting(max(self.epsilon, other.epsilon))
        total = self.total + other.total
        both = add_up(self.entries(), (0, self.error_bound), other.entries(), (0, other.error_bound))
        both = both.where(both.counts + both.errors > total // merged._width)
        merged._arrays = lossy_arrays(max(FIRST_ROOM, len(both.keys)), *both, total)
        merged._merged_entries = len(merged)
        merged._merged_total = total
        return merged

    def to_arrow(self) -> pa.RecordBatch:
        """Return all of the sketch, as columns ``key``, ``count`` and ``error``."""
        scalars = {
            "epsilon": self.epsilon,
            "total": self.total,
            "merged_entries": self._merged_entries,
            "merged_total": self._merged_total,
        }
        keys, counts, errors = self.entries()
        return pack(KIND, scalars, {"key": keys, "count": counts, "error": errors})

    @classmethod
    def from_arrow(cls, batch: pa.RecordBatch) -> LossyCounting:
        """Return the sketch that :meth:`to_arrow` gave; CorruptDataError if it cannot be one."""
        from evenkeel.sketches._kernels import lossy_arrays

        scalars, columns = unpack(
            batch,
            KIND,
            {"epsilon": float, "total": int, "merged_entries": int, "merged_total": int},
            dict.fromkeys(("key", "count", "error"), np.int64),
        )
        keys, counts, errors = columns.values()
        check_laws(
            KIND,
            {
                "epsilon lies between 0 and 1": 0 < scalars["epsilon"] < 1,
                "keys differ": len(np.unique(keys)) == len(keys),
                "counts are positive": (counts > 0).all(),
                "errors are not negative": (errors >= 0).all(),
                "counts add up to no more than the total": counts.sum() <= scalars["total"],
                "no more was merged than there is": 0 <= scalars["merged_total"] <= scalars["total"] < 2**63,
            },
        )
        sketch = cls(scalars["epsilon"])
        sketch._arrays = lossy_arrays(max(FIRST_ROOM, len(keys)), keys, counts, errors, scalars["total"])
        sketch._merged_entries = scalars["merged_entries"]
        sketch._merged_total = scalars["merged_total"]
        check_laws(
            KIND,
            {
                "errors are within their bound": (errors <= sketch.error_bound).all(),
                "entries are within their bound": len(keys) <= sketch.size_bound,
            },
        )
        return sketch
