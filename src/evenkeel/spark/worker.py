"""Spark's Python workers, kept from waits that are no part of any work, and longer than the work of a small batch.

Spark sends a worker what to do, and then the rows. The system holds the second back until the first is acknowledged,
which the worker's side puts off by 40 ms, in the hope of an answer to send along. So it is the other way round, with
results and the word that they were all, unless the worker's side is told to hold nothing back. And after each task
Spark's daemon has the worker look for garbage among all that was ever imported, on a core that others wait for.
"""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import stat
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

__all__ = ["promptly"]

_OPEN_FILES = Path("/proc/self/fd")
_ACKNOWLEDGE = getattr(socket, "TCP_QUICKACK", None)
"""Asks for an acknowledgement at once, for a while; only Linux has it."""
_modules = 0
"""How many were imported when last all that there was was kept from the search for garbage."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _LARGEST_KEPT = 16 << 20, 32 << 20


def promptly(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give what Spark sends to a task, without the waits."""
    global _modules  # noqa: PLW0603 - of each worker
    if _modules == 0:
        keep_memory()
    if len(sys.modules) > _modules:  # A task before imported and loaded what others need too, and was cleaned up after.
        _modules = len(sys.modules)
        gc.freeze()
    with ExitStack() as stack:
        connections = [stack.enter_context(connection) for connection in _connections()]
        _set(connections, socket.TCP_NODELAY)
        _acknowledge(connections)
        for batch in batches:
            yield batch
            _acknowledge(connections)


def keep_memory() -> None:
    """Keep what is freed for the next batch, up to 16 MB: for the system to give a page costs as much as to fill it.

    Otherwise columns of more than 128 KB, of which a batch has dozens, go back to the system one by one.
    """
    with suppress(AttributeError, OSError):  # a C library without such settings
        c_library = ctypes.CDLL(None)
        c_library.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
        c_library.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def _connections() -> Iterator[socket.socket]:
    """Give handles of this process's TCP connections: of a worker's only one, to Spark."""
    if _ACKNOWLEDGE is None:
        return
    for number in [int(path.name) for path in _OPEN_FILES.iterdir()]:
        with suppress(OSError):  # what listed the files is closed by now
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                connection = socket.socket(fileno=os.dup(number))
                if connection.proto == socket.IPPROTO_TCP:
                    yield connection
                else:
                    connection.close()


def _acknowledge(connections: list[socket.socket]) -> None:
    if _ACKNOWLEDGE is not None:
        _set(connections, _ACKNOWLEDGE)


def _set(connections: list[socket.socket], option: int) -> None:
    for connection in connections:
        with suppress(OSError):  # it does not connect, but listens
            connection.setsockopt(socket.IPPROTO_TCP, option, 1)
