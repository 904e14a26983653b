"""LMDB environments: one per process and directory, growing when they are full.

LMDB allows a process to open an environment only once, so views of one process share it. Pages are not synced: the
working copy is a cache, a killed process cannot harm it, and after a crash of the whole host it is not trusted
(see :func:`boot_id`). Memory is not mapped for writing, because a full disk would then kill the process
instead of raising an error.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from functools import cache
from pathlib import Path

import lmdb

from evenkeel.errors import CorruptDataError

__all__ = ["SharedEnvironment", "boot_id"]

_open: dict[tuple[int, str], SharedEnvironment] = {}
_guard = threading.RLock()


class SharedEnvironment:
    """An open LMDB environment with its databases; close it as often as it was opened.

    Parameters
    ----------
    directory
        Where it is, or is to be made.
    map_bytes
        At least this much address space; it costs nothing until it is used.
    """

    def __init__(self, directory: Path, map_bytes: int) -> None:
        self.directory = directory
        self.users = 0
        data = directory / "data.mdb"
        size = data.stat().st_size if data.exists() else 0
        self.env = lmdb.open(
            str(directory),
            map_size=max(map_bytes, 2 * size),
            max_dbs=4,
            max_readers=1024,
            sync=False,
            metasync=False,
            meminit=False,
            readahead=False,
        )
        try:
            self._check_size(data)
            names = (b"base", b"recent", b"meta", b"timers")
            self.base, self.recent, self.meta, self.timers = (self.env.open_db(name) for name in names)
        except BaseException:
            self.env.close()
            raise

    def _check_size(self, data: Path) -> None:
        """Find out before any page is read: one beyond the end of a file that was cut short kills the process."""
        size, wanted = data.stat().st_size, self._wanted_bytes()
        if size < wanted:
            raise CorruptDataError(
                f"{data} is damaged: it has {size} bytes instead of {wanted}.", path=str(data), reason="truncated"
            )

    def _wanted_bytes(self) -> int:
        return (self.env.info()["last_pgno"] + 1) * self.env.stat()["psize"]

    def pad(self) -> None:
        """Make the file as long as it says it is: LMDB leaves out pages at its end that are free."""
        data = self.directory / "data.mdb"
        if data.stat().st_size < self._wanted_bytes():
            with self.env.begin(write=True):  # keeps other processes from writing
                os.truncate(data, max(data.stat().st_size, self._wanted_bytes()))

    @classmethod
    def open(cls, directory: Path, map_bytes: int) -> SharedEnvironment:
        """Open an environment, or join those of this process that did."""
        name = (os.getpid(), str(directory))
        with _guard:
            if name not in _open:
                _open[name] = cls(directory, map_bytes)
            shared = _open[name]
            shared.users += 1
            return shared

    def close(self) -> None:
        """Leave; the last one out closes."""
        with _guard:
            self.users -= 1
            if self.users == 0:
                del _open[os.getpid(), str(self.directory)]
                self.env.close()

    def grow(self, *, follow: bool = False) -> bool:
        """Double the map, or follow a process that has; not while this process has other views: it would break them."""
        with _guard:
            if self.users > 1:
                return False
            self.env.set_mapsize(0 if follow else 2 * self.env.info()["map_size"])
            return True


@cache
def boot_id() -> str:
    """Name this start of the host's operating system; empty where that cannot be known.

    Unsynced pages survive the death of a process but not that of the kernel, and LMDB cannot tell. A copy that was
    written before the host started is therefore rebuilt.
    """
    if sys.platform == "darwin":
        size = ctypes.c_size_t(64)
        text = ctypes.create_string_buffer(size.value)
        failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", text, ctypes.byref(size), None, 0)
        return "" if failed else text.value.decode()
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
