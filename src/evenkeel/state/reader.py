"""Reading a working copy at one version."""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Any

from evenkeel.state.identity import KEY_BYTES
from evenkeel.state.totals import SlotTotals
from evenkeel.state.wakes import WAKE_BYTES, wake_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import lmdb

    from evenkeel.state.environment import SharedEnvironment

__all__ = ["TOTALS", "Reader", "chunks"]

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
        self.base_keys = txn.stat(shared.base)["entries"]
        self.recent_keys = txn.stat(shared.recent)["entries"]

    def totals(self) -> SlotTotals:
        """Give keys and bytes per slot."""
        return SlotTotals.from_bytes(self._txn.get(TOTALS, b"", db=self._shared.meta))

    def lookup(self, keys: list[bytes]) -> list[bytes | None]:
        """Give the value of each key, or None; fastest when the keys ascend. O(keys · log keys held)."""
        if not self.recent_keys:
            with self._txn.cursor(self._shared.base) as cursor:
                return list(map(cursor.get, keys))
        with self._txn.cursor(self._shared.recent) as cursor:
            values = list(map(cursor.get, keys))
        missing = [place for place, value in enumerate(values) if value is None]
        with self._txn.cursor(self._shared.base) as cursor:
            for place in missing:
                values[place] = cursor.get(keys[place])
        return values

    def timers(self, until: int) -> list[bytes]:
        """Give the keys of which some value, now or before, wanted to be called by ``until``. O(keys given)."""
        last = wake_bytes(until) + b"\xff" * KEY_BYTES
        found = chunks(self._txn, self._shared.timers, b"", last, values=False)
        return [entry[WAKE_BYTES:] for entries, _ in found for entry in entries]

    def ranges(self, ranges: list[tuple[bytes, bytes]]) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Give keys and values of some ranges, each key once, in no order. O(keys given)."""
        for low, high in ranges:
            overlaid: set[bytes] = set()
            if self.recent_keys:
                for keys, values in chunks(self._txn, self._shared.recent, low, high):
                    overlaid.update(keys)
                    yield keys, values
            for keys, values in chunks(self._txn, self._shared.base, low, high):
                if overlaid:
                    kept = [place for place, key in enumerate(keys) if key not in overlaid]
                    yield [keys[place] for place in kept], [values[place] for place in kept]
                else:
                    yield keys, values
