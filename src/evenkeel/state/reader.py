"""Reading a working copy at one version."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.state.identity import KEY_BYTES, as_list
from evenkeel.state.pages import MOST_BYTES, Pages, too_many
from evenkeel.state.totals import SlotTotals
from evenkeel.state.wakes import WAKE_BYTES, wake_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import lmdb
    from numpy.typing import NDArray

    from evenkeel.state.environment import SharedEnvironment

__all__ = ["TOTALS", "Cursors", "Reader", "chunks"]

TOTALS = b"totals"
_FIRST_CHUNK, _LAST_CHUNK = 64, 8192


def chunks(
    txn: lmdb.Transaction[bytes], database: Any, low: bytes, high: bytes, *, values: bool = True
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Give keys and values from ``low`` to ``high``, up to some thousands at a time."""
    with txn.cursor(database) as names, txn.cursor(database) as contents:
        if not (names.set_range(low) and contents.set_range(low)):
            return
        # Two cursors, since pairs of key and value would cost four times as much.
        each_name, each_content = names.iternext(values=False), contents.iternext(keys=False)
        size = _FIRST_CHUNK
        while keys := list(islice(each_name, size)):
            inside = bisect_right(keys, high)
            size = min(2 * size, _LAST_CHUNK)
            if inside:
                yield keys[:inside], list(islice(each_content, inside)) if values else []
            if inside < len(keys):
                return


class Reader:
    """Reads a working copy within one transaction, and so at one version, whatever others apply meanwhile."""

    def __init__(self, txn: lmdb.Transaction[bytes], shared: SharedEnvironment) -> None:
        self._txn = txn
        self._shared = shared
        self._reads_by: Pages | Cursors | None = None
        self.base_keys = txn.stat(shared.base)["entries"]
        self.recent_keys = txn.stat(shared.recent)["entries"]

    def totals(self) -> SlotTotals:
        """Give keys and bytes per slot."""
        return SlotTotals.from_bytes(self._txn.get(TOTALS, b"", db=self._shared.meta))

    def lookup(self, packed: NDArray[np.bytes_]) -> pa.BinaryArray:
        """Give the value of each key, null where there is none; fastest when the keys ascend. O(keys · log held)."""
        return self._states.lookup(packed)

    def timers(self, until: int) -> list[bytes]:
        """Give the keys of which some value, now or before, wanted to be called by ``until``. O(keys given)."""
        last = wake_bytes(until) + b"\xff" * KEY_BYTES
        found = chunks(self._txn, self._shared.timers, b"", last, values=False)
        return [entry[WAKE_BYTES:] for entries, _ in found for entry in entries]

    def ranges(
        self, lows: NDArray[np.bytes_], highs: NDArray[np.bytes_]
    ) -> Iterator[tuple[NDArray[np.bytes_], pa.BinaryArray]]:
        """Give keys and values from each low to its high, each key once, in no order. O(keys given).

        The ranges ascend, and have no key in common.
        """
        return self._states.ranges(lows, highs)

    @property
    def _states(self) -> Pages | Cursors:
        """What reads keys and values; only in a transaction that does not write."""
        if self._reads_by is None:
            self._reads_by = Pages.of(self._shared, self._txn) or Cursors(self._txn, self._shared)
        return self._reads_by


@dataclass(frozen=True, slots=True)
class Cursors:
    """Keys and values by way of LMDB's cursors, for files whose pages are not known: slower, and the same."""

    txn: lmdb.Transaction[bytes]
    shared: SharedEnvironment

    def lookup(self, packed: NDArray[np.bytes_]) -> pa.BinaryArray:
        """Give the value of each key, null where there is none."""
        keys = as_list(packed)
        with self.txn.cursor(self.shared.recent) as recent, self.txn.cursor(self.shared.base) as base:
            values = [
                base.get(key) if value is None else value
                for key, value in zip(keys, map(recent.get, keys), strict=True)
            ]
        return _array(values)

    def ranges(
        self, lows: NDArray[np.bytes_], highs: NDArray[np.bytes_]
    ) -> Iterator[tuple[NDArray[np.bytes_], pa.BinaryArray]]:
        """Give keys and values from each low to its high, each key once."""
        for low, high in zip(as_list(lows), as_list(highs), strict=True):
            overlaid: set[bytes] = set()
            for database in (self.shared.recent, self.shared.base):
                for keys, values in chunks(self.txn, database, low, high):
                    kept = [place for place, key in enumerate(keys) if key not in overlaid]
                    for part in _parts(kept, values):
                        packed = np.frombuffer(b"".join(keys[place] for place in part), f"S{KEY_BYTES}")
                        yield packed, _array([values[place] for place in part])
                    overlaid.update(keys if database is self.shared.recent else ())


def _parts(places: list[int], values: list[bytes]) -> Iterator[list[int]]:
    """Deal out places so that the values of none take too much room; a chunk has few of them."""
    part: list[int] = []
    size = 0
    for place in places:
        if part and size + len(values[place]) > MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(place)
        size += len(values[place])
    if part:
        yield part


def _array(values: list[bytes | None]) -> pa.BinaryArray:
    found = pa.array(values, pa.binary())
    if isinstance(found, pa.ChunkedArray):
        raise too_many(len(values))
    return found
