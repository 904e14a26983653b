"""Space-saving: the heaviest keys in a fixed number of counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.sketches._arrow import check_laws, pack, unpack
from evenkeel.sketches._checks import counts_for, integers, share, whole_number
from evenkeel.sketches.heavy_keys import HeavyKeys, add_up

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

KIND = "space-saving"


class SpaceSaving:
    r"""Counts of the heaviest keys, never too low, in ``capacity`` entries.

    A key that has an entry adds its weight to the entry's count. Another one takes a free entry or, when there
    is none, that of the key with the least count, the lowest key among equals: it inherits that count,
    remembers it as its error, and adds its own weight.

    Guarantees, with :math:`f` a key's true weight, :math:`n` the total weight, :math:`m` the capacity and
    :math:`u` the ``error_bound``, the count of the last entry that was replaced (0 if none was):

    - an entry has count - error :math:`\le f \le` count, and error :math:`\le u`;
    - a key without an entry has :math:`f \le u`;
    - the counts add up to :math:`n` at most, so a full sketch has :math:`u \le` least count :math:`\le n/m`.

    Hence every key with :math:`f > n/m` has an entry.

    A merged sketch keeps them all. A key that one side does not hold counts there as :math:`u_j` with error
    :math:`u_j`; the :math:`m` largest counts stay, lower keys first among equals, and :math:`u` becomes the
    largest count dropped, or :math:`u_1 + u_2` if none was. The first two lines follow at once. For the third,
    let :math:`l_j` be the least count of a full side, 0 of another; :math:`u_j \le l_j`. What exceeds
    :math:`l_j` in side :math:`j` adds up to at most :math:`n_j - m l_j`, and the merged counts are at most
    :math:`l_1 + l_2` plus the excess of both sides. So the :math:`m` largest add up to at most
    :math:`m (l_1 + l_2) + (n_1 - m l_1) + (n_2 - m l_2) = n`. Sketches may be merged in any order or shape.

    Time is O(1) for a key with a large count and O(log m) for any other, whatever the weights. Memory is fixed:
    32 bytes for each entry and 12 for each place of a hash map that is between a quarter and half full.

    Parameters
    ----------
    capacity
        How many keys to hold, at least 1.

    References
    ----------
    A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k elements in data
    streams", ICDT 2005, section 3; P. K. Agarwal et al., "Mergeable summaries", PODS 2012, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> sketch = SpaceSaving(capacity=100)
    >>> sketch.observe(np.random.default_rng(7).zipf(1.5, size=100_000))
    >>> keys, counts, errors = sketch.frequent(delta=0.1)
    >>> keys.tolist(), errors.tolist()
    ([1, 2], [0, 0])
    >>> sketch.error_bound <= 100_000 / 100
    True
    """

    def __init__(self, capacity: int) -> None:
        from evenkeel.sketches._kernels import space_saving_arrays

        self.capacity = whole_number("capacity", capacity, 1)
        none = np.empty(0, np.int64)
        # Laid out as evenkeel.sketches._kernels says, for compiled loops that call its `observe_one`.
        self._arrays = space_saving_arrays(self.capacity, none, none, none, 0, 0)

    @property
    def total(self) -> int:
        """Weight observed so far."""
        return int(self._arrays[-1][1])

    def __len__(self) -> int:
        return int(self._arrays[-1][0])

    @property
    def error_bound(self) -> int:
        """The most by which any count is too high, and the most that a key without an entry can weigh."""
        return int(self._arrays[-1][2])

    @property
    def size_bound(self) -> int:
        """The most entries there can be."""
        return self.capacity

    def observe(self, keys: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Count these keys, in this order, each once or with its positive integer weight."""
        from evenkeel.sketches._kernels import observe_space_saving

        items = integers("keys", keys)
        observe_space_saving(*self._arrays, items, counts_for("weights", weights, len(items), self.total))

    def entries(self) -> HeavyKeys:
        """Return all entries, in no particular order."""
        return HeavyKeys(*(column[: len(self)].copy() for column in self._arrays[2:5]))

    def estimate(self, keys: ArrayLike) -> NDArray[np.int64]:
        """Return the count of each key: never too low, and too high by at most :attr:`error_bound`."""
        from evenkeel.sketches._kernels import look_up

        map_keys, map_slots, _, counts, *_ = self._arrays
        return look_up(map_keys, map_slots, counts, integers("keys", keys), self.error_bound)

    def frequent(self, delta: float) -> HeavyKeys:
        """Return the entries that may be ``delta`` of the total weight or more.

        No key that is so heavy is missing, if ``delta`` exceeds ``1 / capacity``.
        """
        entries = self.entries()
        return entries.where(entries.counts >= share("delta", delta, 0) * self.total).ranked()

    def heavy_keys(self, threshold: int) -> HeavyKeys:
        """Return the entries that may weigh ``threshold`` or more.

        No key that does is missing, if ``threshold`` exceeds :attr:`error_bound`.
        """
        entries = self.entries()
        return entries.where(entries.counts >= whole_number("threshold", threshold, 1)).ranked()

    def merge(self, other: SpaceSaving) -> SpaceSaving:
        """Return a sketch of both streams, with the smaller capacity of the two."""
        from evenkeel.sketches._kernels import space_saving_arrays

        merged = SpaceSaving(min(self.capacity, other.capacity))
        one, two = self.error_bound, other.error_bound
        both = add_up(self.entries(), (one, one), other.entries(), (two, two)).ranked()
        dropped = both.counts[merged.capacity :]
        bound = int(dropped[0]) if len(dropped) else one + two
        kept = both.top(merged.capacity)
        merged._arrays = space_saving_arrays(merged.capacity, *kept, self.total + other.total, bound)
        return merged

    def to_arrow(self) -> pa.RecordBatch:
        """Return all of the sketch, as columns ``key``, ``count`` and ``error``."""
        scalars = {"capacity": self.capacity, "total": self.total, "bound": self.error_bound}
        keys, counts, errors = self.entries()
        return pack(KIND, scalars, {"key": keys, "count": counts, "error": errors})

    @classmethod
    def from_arrow(cls, batch: pa.RecordBatch) -> SpaceSaving:
        """Return the sketch that :meth:`to_arrow` gave; CorruptDataError if it cannot be one."""
        from evenkeel.sketches._kernels import space_saving_arrays

        scalars, columns = unpack(
            batch,
            KIND,
            {"capacity": int, "total": int, "bound": int},
            dict.fromkeys(("key", "count", "error"), np.int64),
        )
        keys, counts, errors = columns.values()
        capacity, total, bound = scalars["capacity"], scalars["total"], scalars["bound"]
        check_laws(
            KIND,
            {
                "there are no more entries than the capacity": len(keys) <= capacity,
                "the capacity is positive": capacity > 0,
                "keys differ": len(np.unique(keys)) == len(keys),
                "counts are above errors": (counts > errors).all(),
                "errors are within their bound": ((errors >= 0) & (errors <= bound)).all(),
                "counts are not below the bound": bound >= 0 and (counts >= bound).all(),
                "only a full sketch has a bound": bound == 0 or len(keys) == capacity,
                "counts add up to no more than the total": counts.sum() <= total < 2**63,
            },
        )
        sketch = cls(capacity)
        sketch._arrays = space_saving_arrays(capacity, keys, counts, errors, total, bound)
        return sketch
