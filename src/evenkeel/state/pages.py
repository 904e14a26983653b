"""States read from LMDB's pages as they lie in its file, many at once, with no Python object for any of them.

A read transaction keeps the pages of its version from being used again, so what it sees can be read beside it. Through
LMDB's own cursors each key and value is an object of Python's, which takes longer than to find it: here a look-up costs
a third, and a walk a tenth. It is for the file format that LMDB has had since 2013; a file that is not of that
format, or is not as it should be, is left to the cursors.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import CorruptDataError, InvalidArgumentError
from evenkeel.state.identity import KEY_BYTES, pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import lmdb
    from numpy.typing import NDArray

    from evenkeel.state.environment import SharedEnvironment

__all__ = ["MOST_BYTES", "Pages", "load_loops", "too_many"]

_MOST_ROWS, _FIRST_BYTES, MOST_BYTES = 65_536, 4 << 20, 32 << 20
"""Of what is given at once: the bytes of the first values, and of all that come later."""
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_TREE = np.dtype(
    [
        ("page_bytes", "<u4"),
        ("flags", "<u2"),
        ("depth", "<u2"),
        ("branch_pages", "<u8"),
        ("leaf_pages", "<u8"),
        ("overflow_pages", "<u8"),
        ("entries", "<u8"),
        ("root", "<u8"),
    ]
)
_META = np.dtype(
    [
        *(("header", "V16"), ("magic", "<u4"), ("version", "<u4"), ("address", "<u8"), ("map_bytes", "<u8")),
        *(("free", _TREE), ("main", _TREE), ("last_page", "<u8"), ("txn", "<u8")),
    ]
)
_NO_PAGE = 2**64 - 1
_LEAF, _SUBTREE = 2, 2


@dataclass(frozen=True, slots=True, eq=False)
class Pages:
    """The two trees of a working copy, at the version of a read transaction, which must stay open.

    Parameters
    ----------
    path, data
        The file, and all of it mapped into memory.
    page_bytes
        The size of a page.
    base, recent
        Where the root of each tree begins; below 0 where the tree is empty. What is in ``recent`` wins.
    """

    path: str
    data: NDArray[np.uint8]
    page_bytes: int
    base: int
    recent: int

    @classmethod
    def of(cls, shared: SharedEnvironment, txn: lmdb.Transaction[bytes]) -> Pages | None:
        """Map the file of an environment; None if it is gone, is not of a known format, or was written twice since."""
        path = shared.directory / "data.mdb"
        try:
            with path.open("rb") as file:
                data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        except FileNotFoundError:  # who has it open may go on reading
            return None
        page_bytes = shared.env.stat()["psize"]
        for number in (0, 1):
            start = number * page_bytes
            meta = np.frombuffer(data[start : start + _META.itemsize].tobytes(), _META)
            if len(meta) and (meta[0]["magic"], meta[0]["version"], meta[0]["txn"]) == (_MAGIC, _VERSION, txn.id()):
                trees = _named_trees(data, page_bytes, int(meta[0]["main"]["root"]))
                wanted = {b"base": txn.stat(shared.base), b"recent": txn.stat(shared.recent)}
                if all(name in trees and _is_of(trees[name], stat) for name, stat in wanted.items()):
                    roots = [int(trees[name]["root"]) for name in wanted]
                    starts = (-1 if root == _NO_PAGE else root * page_bytes // 2 for root in roots)
                    return cls(str(path), data[: len(data) // page_bytes * page_bytes], page_bytes, *starts)
        return None

    @property
    def _pairs(self) -> NDArray[np.uint16]:
        return self.data.view("<u2")

    def lookup(self, packed: NDArray[np.bytes_]) -> pa.BinaryArray:
        """Give the value of each key, null where there is none; fastest when the keys ascend."""
        starts, lengths = self._find(self.recent, packed)
        missing = np.flatnonzero(lengths < 0) if self.recent >= 0 else slice(None)
        starts[missing], lengths[missing] = self._find(self.base, packed[missing])
        return self._gathered(starts, lengths)

    def ranges(self, lows: NDArray[np.bytes_], highs: NDArray[np.bytes_]) -> Iterator[tuple[Any, pa.BinaryArray]]:
        """Give keys and values from each low to its high, each key once; many ranges at once, and many values.

        The ranges ascend, and have no key in common: so what they have in one tree and in the other ascends as well.
        """
        newer = [np.empty(0, lows.dtype)]
        for packed, values in self._walk(self.recent, lows, highs, newer[0]):
            newer.append(packed)
            yield packed, values
        yield from self._walk(self.base, lows, highs, np.concatenate(newer))

    def _find(self, root: int, packed: NDArray[np.bytes_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        from evenkeel.state._kernels_pages import BROKEN, find

        starts, lengths = np.zeros(len(packed), np.int64), np.full(len(packed), -1, np.int64)
        if root >= 0 and find(self._pairs, self.page_bytes // 2, root, pairs_of(packed), starts, lengths) == BROKEN:
            raise self._damaged()
        return starts, lengths

    def _walk(
        self, root: int, lows: NDArray[np.bytes_], highs: NDArray[np.bytes_], passed_over: NDArray[np.bytes_]
    ) -> Iterator[tuple[NDArray[np.bytes_], pa.BinaryArray]]:
        from evenkeel.state._kernels_pages import BROKEN, walk

        if root < 0:
            return
        tree = (self._pairs, self.data, self.page_bytes // 2, root)
        asked = (pairs_of(lows), pairs_of(highs), pairs_of(passed_over))
        state, given, room = np.array([0, -1, 0, 0]), 0, _FIRST_BYTES
        while state[0] < len(lows):
            keys, ends = np.empty(_MOST_ROWS, f"S{KEY_BYTES}"), np.empty(_MOST_ROWS + 1, np.int32)
            values = pa.allocate_buffer(max(room, int(state[3])))
            state[3] = 0
            count = walk(*tree, *asked, state, pairs_of(keys), ends, np.frombuffer(values, np.uint8))
            given += max(0, count)
            if count == BROKEN or given * KEY_BYTES > len(self.data):  # more keys than fit: pages that go in a circle
                raise self._damaged()
            if count < _MOST_ROWS:
                room = min(2 * room, MOST_BYTES)
            if count:
                found = [None, pa.py_buffer(ends), values.slice(0, int(ends[count]))]
                yield keys[:count], pa.BinaryArray.from_buffers(pa.binary(), count, found)

    def _damaged(self) -> CorruptDataError:
        return CorruptDataError(
            f"{self.path} is damaged: a page is not what it should be. It is a copy of what the checkpoint has: remove "
            "its directory, and start the query again.",
            path=self.path,
            reason="altered",
        )

    def _gathered(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> pa.BinaryArray:
        from evenkeel.state._kernels_pages import gather

        known = np.maximum(lengths, 0)
        if int(known.sum()) >= 2**31:
            raise too_many(len(lengths))
        ends = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(known, out=ends[1:])
        out = np.empty(int(ends[-1]), np.uint8)
        gather(self.data, starts, lengths, ends, out)
        valid = None
        if (lengths < 0).any():
            valid = pa.py_buffer(np.packbits(lengths >= 0, bitorder="little"))
        return pa.BinaryArray.from_buffers(pa.binary(), len(lengths), [valid, pa.py_buffer(ends), pa.py_buffer(out)])


def load_loops() -> None:
    """Read a leaf with one key, so that what reads pages is loaded, or on a new machine compiled."""
    key = np.array([b"k"], f"S{KEY_BYTES}")
    node = np.array([1, 0, 0, KEY_BYTES], "<u2").tobytes() + key.tobytes() + b"v\0"
    page_bytes = 64
    header = np.array([0, 0, 0, 0, 0, _LEAF, 18, 0, page_bytes - len(node)], "<u2").tobytes()
    page = header.ljust(page_bytes - len(node), b"\0") + node
    pages = Pages("", np.frombuffer(page, np.uint8), page_bytes, 0, 0)
    pages.lookup(key)
    list(pages.ranges(key, key))


def too_many(keys: int) -> InvalidArgumentError:
    """What is said where an array of Arrow's cannot hold all."""
    return InvalidArgumentError(f"The states of these {keys} keys take more than 2 GiB. Ask for fewer keys at a time.")


def _named_trees(data: NDArray[np.uint8], page_bytes: int, number: int) -> dict[bytes, Any]:
    """Read what the main tree, if it is one leaf, says of the trees that have names."""
    page = data[number * page_bytes : (number + 1) * page_bytes].tobytes()
    found: dict[bytes, Any] = {}
    if len(page) < page_bytes:
        return found
    flags, lower = np.frombuffer(page, "<u2", 2, 10).tolist()
    if flags & _LEAF:
        for offset in np.frombuffer(page, "<u2", max(0, min(lower, page_bytes) - 16) // 2, 16).tolist():
            _, _, kind, key_bytes = np.frombuffer(page[offset : offset + 8].ljust(8, b"\0"), "<u2").tolist()
            start = offset + 8 + key_bytes
            if kind & _SUBTREE and start + _TREE.itemsize <= page_bytes:
                found[page[offset + 8 : start]] = np.frombuffer(page, _TREE, 1, start)[0]
    return found


def _is_of(tree: Any, stat: Any) -> bool:
    """Whether this is the tree that LMDB tells of in the transaction."""
    return all(
        tree[name] == stat[name] for name in ("depth", "branch_pages", "leaf_pages", "overflow_pages", "entries")
    )
