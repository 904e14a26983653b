"""Lossy counting over about the last so many items."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.sketches import lossy_counting
from evenkeel.sketches._arrow import check_laws, pack, unpack
from evenkeel.sketches._checks import integers, whole_number
from evenkeel.sketches.lossy_counting import LossyCounting

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

    from evenkeel.sketches.heavy_keys import HeavyKeys

KIND = "sliding lossy counting"


class SlidingLossyCounting:
    r"""Frequent keys among about the last ``window`` items, by staggered :class:`LossyCounting`.

    Every :math:`W/(x-1)` items a counter starts, and counts all that follows. There are at most :math:`x`: the
    oldest answers, and is dropped when one more starts.

    The counter in use holds, once :math:`W` items were seen, the last :math:`n` of them with
    :math:`W \le n \le W (1 + \frac{1}{x-1})`; before that, all. Its answers have the guarantees of
    :class:`LossyCounting` over those :math:`n` items. Where :math:`x - 1` does not divide :math:`W` the starts
    are at :math:`\lfloor j W/(x-1) \rfloor`, and the range still holds.

    Time is O(x) per item, and O(x) Python calls per start. Memory is that of :math:`x` counters, each of at
    most :math:`W (1 + \frac{1}{x-1})` items.

    Parameters
    ----------
    window
        :math:`W`, in items; at least ``counters - 1``.
    epsilon
        The error allowed, as a fraction of the items covered.
    counters
        :math:`x`, at least 2. More of them follow a true sliding window more closely, and cost as much more.

    References
    ----------
    B. Gedik, "Partitioning functions for stateful data parallelism in stream processing", VLDB Journal 2014,
    section 4.1.2 and figure 2.

    Examples
    --------
    >>> import numpy as np
    >>> sketch = SlidingLossyCounting(window=1000, epsilon=0.01)
    >>> sketch.observe(np.full(5000, 1))
    >>> sketch.observe(np.full(1600, 2))
    >>> sketch.total, sketch.covered
    (6600, 1100)
    >>> sketch.frequent(delta=0.1).keys.tolist()
    [2]
    """

    def __init__(self, window: int, epsilon: float, counters: int = 3) -> None:
        self.counters = whole_number("counters", counters, 2)
        self.window = whole_number("window", window, self.counters - 1)
        self.total = 0
        self._counters = deque([LossyCounting(epsilon)], maxlen=self.counters)

    @property
    def epsilon(self) -> float:
        """The error allowed, as a fraction of the items covered."""
        return self.in_use.epsilon

    @property
    def in_use(self) -> LossyCounting:
        """The oldest counter, which answers; to be read and merged, but not fed."""
        return self._counters[0]

    @property
    def covered(self) -> int:
        """How many of the last items the answers are about."""
        return self.in_use.total

    def __len__(self) -> int:
        return sum(len(counter) for counter in self._counters)

    @property
    def error_bound(self) -> int:
        """The most by which any count is too low, also that of a key without an entry."""
        return self.in_use.error_bound

    @property
    def size_bound(self) -> int:
        """The most entries there can be now, in all counters."""
        return sum(counter.size_bound for counter in self._counters)

    def observe(self, keys: ArrayLike) -> None:
        """Count these keys, in this order, in every counter that has started."""
        items = integers("keys", keys)
        while len(items):
            next_start = self._start(self._newest() + 1)
            piece, items = np.split(items, [next_start - self.total])
            for counter in self._counters:
                counter.observe(piece)
            self.total += len(piece)
            if self.total == next_start:
                self._counters.append(LossyCounting(self.epsilon))

    def _start(self, number: int) -> int:
        """Return after how many items counter ``number``, counted from 0, starts."""
        return number * self.window // (self.counters - 1)

    def _newest(self) -> int:
        """Return the number of the last counter with ``_start(number) <= total``."""
        return ((self.total + 1) * (self.counters - 1) - 1) // self.window

    def estimate(self, keys: ArrayLike) -> NDArray[np.int64]:
        """Return the count of each key among the covered items.

        It is never too high, and too low by at most :attr:`error_bound`.
        """
        return self.in_use.estimate(keys)

    def frequent(self, delta: float) -> HeavyKeys:
        """Return every key that is more than ``delta`` of the covered items, and none below ``delta - epsilon``."""
        return self.in_use.frequent(delta)

    def heavy_keys(self, threshold: int) -> HeavyKeys:
        """Return the entries that may have been seen ``threshold`` times among the covered items."""
        return self.in_use.heavy_keys(threshold)

    def merge(self, other: SlidingLossyCounting) -> LossyCounting:
        """Return what both cover, as one sketch that no longer slides.

        Two streams share no order, so there is no last item of both from which a common window could slide.
        Three and more are merged by ``a.merge(b).merge(c.in_use)``.
        """
        return self.in_use.merge(other.in_use)

    def to_arrow(self) -> pa.RecordBatch:
        """Return all of the sketch, as columns ``counter`` (its number), ``key``, ``count`` and ``error``."""
        scalars = {
            "window": self.window,
            "epsilon": self.epsilon,
            "counters": self.counters,
            "total": self.total,
        }
        first = self._newest() + 1 - len(self._counters)
        numbers = np.arange(first, self._newest() + 1).repeat([len(counter) for counter in self._counters])
        keys, counts, errors = map(np.concatenate, zip(*(counter.entries() for counter in self._counters), strict=True))
        return pack(KIND, scalars, {"counter": numbers, "key": keys, "count": counts, "error": errors})

    @classmethod
    def from_arrow(cls, batch: pa.RecordBatch) -> SlidingLossyCounting:
        """Return the sketch that :meth:`to_arrow` gave; CorruptDataError if it cannot be one."""
        scalars, columns = unpack(
            batch,
            KIND,
            {"window": int, "epsilon": float, "counters": int, "total": int},
            dict.fromkeys(("counter", "key", "count", "error"), np.int64),
        )
        check_laws(
            KIND,
            {
                "epsilon lies between 0 and 1": 0 < scalars["epsilon"] < 1,
                "there are at least two counters": scalars["counters"] >= 2,
                "the window can be cut": scalars["window"] >= scalars["counters"] - 1,
                "the total is not negative": scalars["total"] >= 0,
            },
        )
        sketch = cls(scalars["window"], scalars["epsilon"], scalars["counters"])
        sketch.total = scalars["total"]
        newest = sketch._newest()
        numbers = range(max(0, newest + 1 - sketch.counters), newest + 1)
        number = columns.pop("counter")
        check_laws(KIND, {"every row belongs to a counter": np.isin(number, numbers).all()})
        sketch._counters.clear()
        for one in numbers:
            seen = sketch.total - sketch._start(one)
            own = {"epsilon": scalars["epsilon"], "total": seen, "merged_entries": 0, "merged_total": 0}
            rows = {name: column[number == one] for name, column in columns.items()}
            sketch._counters.append(LossyCounting.from_arrow(pack(lossy_counting.KIND, own, rows)))
        return sketch
