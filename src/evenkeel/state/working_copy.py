"""The working copy: one channel's state at one version, in LMDB on the host.

Four databases: ``base`` and ``recent`` hold packed key → value, ``timers`` when keys want to be called, ``meta`` says
whose copy this is and what the slots hold. New values go to the small ``recent`` while they are few: keys are hashes,
so the keys of a batch lie scattered over all pages of a large ``base``, and writing there would copy most of it.
``recent`` wins over ``base``; deletes go to both. When ``recent`` has grown to 1/16 of ``base``, it is folded into it.
So a batch costs by the keys it touches, and keys that are touched batch after batch stay together.

Into a large ``base`` it is folded part by part, with each batch as many keys as that batch writes. So no single batch
costs more than by the keys it touches. And LMDB writes the pages that it changes anew, and uses the old ones again two
transactions later: a whole ``base`` that changes at once takes three times the room.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import lmdb

from evenkeel.errors import CorruptDataError, StorageError
from evenkeel.state.environment import boot_id
from evenkeel.state.files import FORMAT
from evenkeel.state.identity import KEY_BYTES, as_list
from evenkeel.state.manifest import EMPTY_TIP
from evenkeel.state.reader import TOTALS, Reader
from evenkeel.state.wakes import NEVER, WAKE_BYTES, wake_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evenkeel.state.delta_file import Changes
    from evenkeel.state.environment import SharedEnvironment

__all__ = ["About", "GrowError", "apply_changes", "begin_reading", "check_about", "read_about", "storing", "take_over"]

T = TypeVar("T")
_FOLD_AT = 16
_LARGE_PAGES, _PARTS = 1 << 14, 16
"""Leaves of ``base``, of 4 KB each, from which on it is large; and in how many parts at least it is folded into."""
_ABOUT, _FOLDED = b"about", b"folded"


class GrowError(Exception):
    """The map is full and cannot grow in place; the copy must be rebuilt elsewhere."""


@dataclass(frozen=True, slots=True)
class About:
    """Whose working copy this is: stage, channel, the version it is at, and that version's tip."""

    stage: str
    channel: int
    version: int = -1
    tip: str = EMPTY_TIP
    format: int = FORMAT
    boot: str = ""


def read_about(txn: lmdb.Transaction, shared: SharedEnvironment) -> About | None:
    """Read whose copy this is; None if it does not say."""
    stored = txn.get(_ABOUT, db=shared.meta)
    try:
        return About(**json.loads(bytes(stored))) if stored else None
    except (ValueError, TypeError):
        return None


def _describe(txn: lmdb.Transaction, shared: SharedEnvironment, about: About) -> None:
    """Write whose copy this is."""
    body = {**asdict(about), "boot": boot_id()}
    txn.put(_ABOUT, json.dumps(body).encode(), db=shared.meta)


def begin_reading(shared: SharedEnvironment) -> lmdb.Transaction[bytes]:
    """Begin a read transaction, following another process that has grown the map."""
    try:
        return shared.env.begin()
    except lmdb.MapResizedError as error:
        if not shared.grow(follow=True):
            raise GrowError from error
        return shared.env.begin()


@contextmanager
def storing(directory: Path) -> Iterator[None]:
    """Say what a full or failing disk means."""
    try:
        yield
    except lmdb.Error as error:
        # LMDB has names for its own troubles; what it has no name for comes from the operating system.
        if isinstance(error, lmdb.DiskError) or type(error) is lmdb.Error:
            raise StorageError(
                f"The working copy in {directory} cannot be written: {error}. It is left as it was. Free space there, "
                "or give another directory.",
                path=str(directory),
            ) from error
        raise


def take_over(shared: SharedEnvironment, about: About) -> None:
    """Make a new environment, or one that was loaded from a snapshot, this host's working copy."""
    with storing(shared.directory), shared.env.begin(write=True) as txn:
        found = read_about(txn, shared)
        if about.tip != EMPTY_TIP and (found is None or found.tip != about.tip):
            raise CorruptDataError(f"{shared.directory} is not the snapshot that it should be.", reason="altered")
        _describe(txn, shared, about)


def apply_changes(shared: SharedEnvironment, changes: Changes, before: About, after: About) -> bool:
    """Bring the copy from one version to the next, whole or not at all.

    Gives False, and does nothing, if the copy is not at ``before`` any more: another process was faster.

    Notes
    -----
    O(keys touched), amortised.
    """

    def write() -> bool:
        with shared.env.begin(write=True) as txn:
            found = read_about(txn, shared)
            if found is None or found.tip != before.tip:
                return False
            _write(txn, shared, changes)
            _describe(txn, shared, after)
        return True

    shared.env.reader_check()  # pages that a killed process was reading can be used again
    if not _growing(shared, write):
        return False
    left = len(changes.keys)
    while left > 0 and (folded := _growing(shared, partial(_fold_part, shared, left))):
        left -= folded
    _growing(shared, shared.pad)
    return True


def _growing(shared: SharedEnvironment, step: Callable[[], T]) -> T:
    """Do a step that writes, whole or not at all; again in a larger map where this one is full."""
    while True:
        try:
            with storing(shared.directory):
                return step()
        except (lmdb.MapFullError, lmdb.MapResizedError) as error:  # noqa: PERF203 - again, in a larger map
            if not shared.grow(follow=isinstance(error, lmdb.MapResizedError)):
                raise GrowError from error


def _write(txn: lmdb.Transaction[bytes], shared: SharedEnvironment, changes: Changes) -> None:
    reader = Reader(txn, shared)
    keys, values = as_list(changes.keys), changes.values.to_pylist()
    for database in (shared.base, shared.recent):
        for low, high in changes.drops:
            _delete_range(txn, database, low, high)
        if changes.values.null_count:
            _delete(txn, database, [key for key, value in zip(keys, values, strict=True) if value is None])
    if changes.values.null_count:
        kept = [place for place, value in enumerate(values) if value is not None]
        keys, values = [keys[place] for place in kept], [values[place] for place in kept]
    target = shared.base
    if _is_large(txn, shared) or (reader.recent_keys + len(keys)) * _FOLD_AT <= reader.base_keys:
        target = shared.recent
    elif reader.recent_keys:
        with txn.cursor(shared.recent) as source, txn.cursor(shared.base) as sink:
            sink.putmulti(source.iternext())
        txn.drop(shared.recent, delete=False)
    with txn.cursor(target) as sink:
        sink.putmulti(zip(keys, values, strict=True), append=target is shared.base and reader.base_keys == 0)
    if changes.woken_until is not None:
        _set_timers(txn, shared, keys, values, changes.woken_until)
    totals = reader.totals() + changes.totals
    txn.put(TOTALS, totals.to_bytes(), db=shared.meta)


def _is_large(txn: lmdb.Transaction[bytes], shared: SharedEnvironment) -> bool:
    return bool(txn.stat(shared.base)["leaf_pages"] >= _LARGE_PAGES)


def _fold_part(shared: SharedEnvironment, most: int) -> int:
    """Bring at most so many keys from ``recent`` to a large ``base``, going on where the part before ended.

    The state stays the same. Gives how many: none if all have been, until ``recent`` has grown large again.
    """
    with shared.env.begin(write=True) as txn:
        reader, start = Reader(txn, shared), txn.get(_FOLDED, db=shared.meta)
        if start is None and (reader.recent_keys * _FOLD_AT <= reader.base_keys or not _is_large(txn, shared)):
            return 0
        with txn.cursor(shared.recent) as source, txn.cursor(shared.base) as sink:
            begins = source.set_range(start or b"\0")
            most = min(most, -(-reader.base_keys // (_FOLD_AT * _PARTS)))
            part = list(islice(source.iternext(), most)) if begins else []
            sink.putmulti(part)
            source.set_range(start or b"\0")
            for _ in part:
                source.delete()
            following = source.key()
        if following:
            txn.put(_FOLDED, following, db=shared.meta)
        else:
            txn.delete(_FOLDED, db=shared.meta)
    return len(part)


def _set_timers(
    txn: lmdb.Transaction[bytes], shared: SharedEnvironment, keys: list[bytes], values: list[bytes], woken_until: int
) -> None:
    """Forget the times that are over, and note what the values that were written want."""
    last = wake_bytes(woken_until) + b"\xff" * KEY_BYTES
    _delete_range(txn, shared.timers, b"", last)
    never = wake_bytes(NEVER)
    wanted = ((value[:WAKE_BYTES], key) for key, value in zip(keys, values, strict=True))
    with txn.cursor(shared.timers) as sink:
        sink.putmulti(((time + key, b"") for time, key in wanted if time != never))


def _delete(txn: lmdb.Transaction[bytes], database: Any, keys: list[bytes]) -> None:
    for key in keys:
        txn.delete(key, db=database)


def _delete_range(txn: lmdb.Transaction[bytes], database: Any, low: bytes, high: bytes) -> None:
    """Delete the keys from ``low`` to ``high``, walking along them: to find each anew takes half as long again."""
    with txn.cursor(database) as cursor:
        key = cursor.set_range(low) and cursor.key()
        while key and key <= high:
            key = cursor.delete() and cursor.key()  # which is the next one; empty after the last


def check_about(about: About | None, stage: str, channel: int, directory: str) -> About:
    """Give ``about`` if it is this stage's and channel's copy, of this format and this start of the host."""
    if about is None or (about.stage, about.channel, about.format) != (stage, channel, FORMAT):
        raise CorruptDataError(f"{directory} is not the working copy of {stage}, channel {channel}.", path=directory)
    if about.boot != boot_id():
        raise CorruptDataError(f"{directory} was written before the host started.", path=directory)
    return about
