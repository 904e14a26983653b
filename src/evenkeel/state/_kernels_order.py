"""Compiled loops over packed keys that are in order already but where their first eight bytes are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenkeel._kernels.compile import compiled
from evenkeel.state._kernels_pages import _KEY, Ints, Pairs, compare

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LONGEST = 64


@compiled
def order_alike(starts: NDArray[np.uint64], order: Ints, keys: Pairs) -> bool:
    """Put those that begin alike in the order of their keys, and equal ones in that of their places.

    ``starts`` has their first eight bytes, in ascending order, and ``order`` their places. Gives no where so many begin
    alike that all had better be sorted by their keys.
    """
    begin = 0
    for end in range(1, len(starts) + 1):
        if end < len(starts) and starts[end] == starts[begin]:
            continue
        if end - begin > _LONGEST:
            return False
        for one in range(begin + 1, end):
            place, at = order[one], one
            while at > begin:
                found = compare(keys, order[at - 1] * _KEY, keys, place * _KEY)
                if found < 0 or (found == 0 and order[at - 1] < place):
                    break
                order[at] = order[at - 1]
                at -= 1
            order[at] = place
        begin = end
    return True
