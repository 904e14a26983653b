"""Where a host keeps its working copies.

::

    <directory>/<checkpoint id>.<stage>/c00003/CURRENT          names the copy that is in use
    <directory>/<checkpoint id>.<stage>/c00003/copy-<pid>-<n>/  an LMDB environment

A copy that must be rebuilt is built in a fresh directory and then named in ``CURRENT``; processes that are reading the
old one keep their open files. This is the host's own disk, where a rename is atomic.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evenkeel.errors import StorageError
from evenkeel.state.lease import is_alive

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["CopyPlace", "HeldCopy", "forget", "forget_others", "held_copies", "remove_copy"]

_CHANNEL = re.compile(r"c(\d+)")
_COPY = re.compile(r"copy-(\d+)-\d+")
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class HeldCopy:
    """A working copy on this host: of which stage (its id and its checkpoint's) and channel, and how large."""

    stage: str
    channel: int
    size_bytes: int
    path: Path


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """The place of one channel's working copy."""

    path: Path

    @classmethod
    def of(cls, directory: str | os.PathLike[str], stage: str, channel: int) -> CopyPlace:
        """Give the place of a stage's channel below the host's directory."""
        return cls(Path(directory) / stage / f"c{channel:05d}")

    def current(self) -> Path | None:
        """Give the directory of the copy in use, or None."""
        try:
            name = (self.path / "CURRENT").read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            return None
        return self.path / name if _COPY.fullmatch(name) and (self.path / name / "data.mdb").is_file() else None

    def fresh(self) -> Path:
        """Make a directory for a copy that is about to be built."""
        path = self.path / f"copy-{os.getpid()}-{next(_numbers)}"
        try:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
        except OSError as error:
            raise StorageError(
                f"Cannot make a working copy in {path}: {error}. Give a directory that can be written.", path=str(path)
            ) from error
        return path

    def publish(self, copy: Path) -> None:
        """Make a finished copy the one in use; remove the one before, and what dead processes left."""
        old = self.current()
        pointer = self.path / f"CURRENT-{copy.name}"
        try:
            pointer.write_text(copy.name, encoding="ascii")
            pointer.replace(self.path / "CURRENT")
        except OSError as error:
            raise StorageError(f"Cannot write {pointer}: {error}.", path=str(pointer)) from error
        for other in self.path.iterdir():
            match = _COPY.fullmatch(other.name)
            if match and other != copy and (other == old or not is_alive(int(match[1]))):
                remove_copy(other)


def remove_copy(path: Path) -> None:
    """Remove a copy, its data before its locks: so that no two processes ever have the same data under two locks."""
    with suppress(OSError):
        (path / "data.mdb").unlink()
    shutil.rmtree(path, ignore_errors=True)


def held_copies(directory: str | os.PathLike[str]) -> list[HeldCopy]:
    """Give all working copies below a directory, also those of stages that are no more. O(copies)."""
    found = []
    for path in sorted(Path(directory).glob("*/c*")):
        match = _CHANNEL.fullmatch(path.name)
        if match and path.is_dir():
            size = sum(_size(copy / "data.mdb") for copy in _copies(path))
            found.append(HeldCopy(path.parent.name, int(match[1]), size, path))
    return found


def _copies(place: Path) -> list[Path]:
    with suppress(FileNotFoundError):  # another process removes it right now
        return list(place.glob("copy-*"))
    return []


def _size(file: Path) -> int:
    with suppress(FileNotFoundError):
        return file.stat().st_size
    return 0


def forget(directory: str | os.PathLike[str], stage: str, channel: int | None = None) -> int:
    """Remove a channel's working copy, or all of a stage, and give how many bytes that frees.

    Nothing is lost: the checkpoint has it all. Processes that are reading a copy can finish.
    """
    freed = 0
    for held in held_copies(directory):
        if held.stage == stage and channel in {None, held.channel}:
            freed += held.size_bytes
            for copy in _copies(held.path):
                remove_copy(copy)
            shutil.rmtree(held.path, ignore_errors=True)
    with suppress(OSError):  # not empty, or gone already
        (Path(directory) / stage).rmdir()
    return freed


def forget_others(directory: str | os.PathLike[str], stage: str, channels: Collection[int]) -> None:
    """Remove the working copies of a stage but for those of some channels."""
    for held in held_copies(directory):
        if held.stage == stage and held.channel not in channels:
            forget(directory, stage, held.channel)
