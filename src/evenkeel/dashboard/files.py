"""The files of a checkpoint for one who only looks: nothing is written, and no path leads out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from evenkeel.errors import CorruptDataError, EvenkeelError, InvalidArgumentError
from evenkeel.state import Files

__all__ = ["ReadOnlyFiles", "open_files"]


class ReadOnlyFiles(Files):
    """The files below a checkpoint, to be read only.

    A commit names the files that belong to it. One that was tampered with could name others: paths that leave the
    directory, also by a symbolic link, count as damage.
    """

    __slots__ = ()

    def _full(self, path: str) -> str:
        parts = path.split("/")
        full = f"{self.base.rstrip('/')}/{path}"
        outside = not all(parts) or ".." in parts or "\\" in path or "\0" in path
        if not outside and isinstance(self.filesystem, fs.LocalFileSystem):
            outside = not Path(full).resolve().is_relative_to(Path(self.base).resolve())
        if outside:
            raise CorruptDataError(
                f"A file of {self.base} names {path[:100]!r}, which is not below it. It was not read.",
                path=path,
                reason="altered",
            )
        return full

    def _create(self, full: str) -> Any:
        raise EvenkeelError(f"{full} was opened to be read only.")

    def delete(self, path: str) -> None:
        """Refuse."""
        raise EvenkeelError(f"{path} was opened to be read only.")

    def commit_times(self) -> dict[str, float | None]:
        """Give the paths of all commits and when each was written, in seconds; None where the store does not say."""
        selector = fs.FileSelector(self._full("commits"), allow_not_found=True)
        try:
            found = self.filesystem.get_file_info(selector)
        except (OSError, pa.ArrowException) as error:
            raise EvenkeelError(f"Cannot list the commits in {self.base}: {error}") from error
        return {
            f"commits/{info.base_name}": None if info.mtime_ns is None else info.mtime_ns / 1e9
            for info in found
            if info.type == fs.FileType.File
        }


def open_files(location: str) -> ReadOnlyFiles:
    """Find a checkpoint: a directory, or a URI that ``pyarrow.fs`` knows.

    Raises
    ------
    InvalidArgumentError
        If there is none; it names one that is near.
    """
    try:
        if "://" in location:
            filesystem, base = fs.FileSystem.from_uri(location)
        else:
            filesystem, base = fs.LocalFileSystem(), str(Path(location).absolute())
        files = ReadOnlyFiles(filesystem, base)
        there = filesystem.get_file_info(f"{base.rstrip('/')}/checkpoint.json").type == fs.FileType.File
    except (OSError, pa.ArrowException, ValueError) as error:
        raise InvalidArgumentError(f"{location} cannot be opened: {error}", location=location) from error
    if not there:
        raise InvalidArgumentError(
            f"There is no checkpoint of Evenkeel at {location}: it has no checkpoint.json.{_near(location)} "
            "Give the directory that the query was started with: start(…, checkpoint=…).",
            location=location,
        )
    return files


def _near(location: str) -> str:
    """A hint, where the directory above or one just below is a checkpoint."""
    if "://" in location:
        return ""
    here = Path(location).absolute()
    with suppress(OSError):
        near = [here.parent, *(sorted(here.iterdir())[:1000] if here.is_dir() else [])]
        found = next((path for path in near if (path / "checkpoint.json").is_file()), None)
        return f" Did you mean {found}?" if found else ""
    return ""
