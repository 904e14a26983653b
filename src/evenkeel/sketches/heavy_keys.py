"""What a frequency sketch answers, and how two answers add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class HeavyKeys(NamedTuple):
    """Keys with their counts and error bounds, by falling count and then by rising key.

    Examples
    --------
    >>> from evenkeel.sketches import SpaceSaving
    >>> sketch = SpaceSaving(capacity=2)
    >>> sketch.observe([7, 7, 7, 5, 7])
    >>> keys, counts, errors = sketch.heavy_keys(threshold=1)
    >>> keys.tolist(), counts.tolist(), errors.tolist()
    ([7, 5], [4, 1], [0, 0])
    """

    keys: NDArray[np.int64]
    counts: NDArray[np.int64]
    errors: NDArray[np.int64]

    def where(self, chosen: NDArray[np.bool_]) -> HeavyKeys:
        """Return the chosen ones, in the same order."""
        return HeavyKeys(self.keys[chosen], self.counts[chosen], self.errors[chosen])

    def top(self, many: int) -> HeavyKeys:
        """Return the first ``many``, or all where there are fewer."""
        return HeavyKeys(self.keys[:many], self.counts[:many], self.errors[:many])

    def ranked(self) -> HeavyKeys:
        """Sort by falling count, and by rising key among equals."""
        order = np.lexsort((self.keys, -self.counts))
        return HeavyKeys(self.keys[order], self.counts[order], self.errors[order])


def add_up(one: HeavyKeys, one_absent: tuple[int, int], two: HeavyKeys, two_absent: tuple[int, int]) -> HeavyKeys:
    """Return counts and errors of all keys of both, in rising key order.

    A key that one side does not hold has there the ``(count, error)`` given as absent.
    """
    keys, inverse = np.unique(np.concatenate([one.keys, two.keys]), return_inverse=True)
    counts = np.full(len(keys), one_absent[0] + two_absent[0])
    errors = np.full(len(keys), one_absent[1] + two_absent[1])
    of_one, of_two = inverse[: len(one.keys)], inverse[len(one.keys) :]
    for side, absent, places in ((one, one_absent, of_one), (two, two_absent, of_two)):
        counts[places] += side.counts - absent[0]
        errors[places] += side.errors - absent[1]
    return HeavyKeys(keys, counts, errors)
