"""Snapshots: a compact LMDB copy of one version, as a file of the checkpoint.

Written and read as whole pages, without looking at a single key: the cost is that of copying the bytes.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import lmdb

from evenkeel.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from evenkeel.state.environment import SharedEnvironment
    from evenkeel.state.files import Files, StoredFile

__all__ = ["load_snapshot", "write_snapshot"]

_CHUNK_BYTES = 1 << 20


def write_snapshot(shared: SharedEnvironment, txn: lmdb.Transaction[bytes], files: Files, path: str) -> StoredFile:
    """Stream the version that ``txn`` sees into a file. O(bytes held), in constant memory."""
    source, sink = os.pipe()
    failures: list[Exception] = []

    def copy() -> None:
        try:
            shared.env.copyfd(sink, compact=True, txn=txn)
        except lmdb.Error as error:
            failures.append(error)
        finally:
            os.close(sink)

    copier = threading.Thread(target=copy, daemon=True)
    try:
        with files.writing(path) as stream:
            copier.start()
            while chunk := os.read(source, _CHUNK_BYTES):
                stream.write(chunk)
            copier.join()
            if failures:
                raise OSError(f"the working copy could not be read: {failures[0]}")
    finally:
        # Without a reader the copier's next write fails, and it ends too.
        os.close(source)
        if copier.ident is None:
            os.close(sink)
        else:
            copier.join()
    return stream.file


def load_snapshot(files: Files, file: StoredFile, directory: Path) -> None:
    """Make a fresh directory into a working copy. Its size and checksum are checked; nothing opens it before."""
    target = directory / "data.mdb"
    try:
        with target.open("wb") as sink:
            files.download(file, sink)
    except OSError as error:
        raise StorageError(f"Cannot write {target}: {error}. Free space there.", path=str(target)) from error
