"""Files of a checkpoint: written whole, named with size and checksum, and never trusted without both.

Nothing here relies on an atomic rename, on appending or on locks, so local disks, HDFS and object stores serve alike: a
file counts only when another one, written later, names it.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs as arrow_fs

from evenkeel.errors import CorruptDataError, IncompatibleCheckpointError, InvalidArgumentError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FORMAT", "Files", "Sealing", "StoredFile", "checked_name", "checksum_of"]

FORMAT = 1
"""Version of everything that is written below a checkpoint."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_CHUNK_BYTES = 4 << 20


def checksum_of(data: Any) -> str:
    """Give the checksum of some bytes: 128 bits of BLAKE2b. About 1 GB/s."""
    return _digest(data).hexdigest()


def _digest(data: Any = b"") -> hashlib.blake2b:
    return hashlib.blake2b(data, digest_size=16)


def checked_name(what: str, name: str) -> str:
    """Give ``name`` back if it can be part of a file name everywhere."""
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise InvalidArgumentError(
            f"The {what} becomes part of a file name: letters, digits, '.', '_' and '-', at most 100; got {name!r}."
        )
    return name


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file's path below the checkpoint, its size and its checksum."""

    path: str
    size_bytes: int
    checksum: str

    def to_json(self) -> list[Any]:
        """Give the three facts as a list."""
        return [self.path, self.size_bytes, self.checksum]


class Sealing:
    """A file that is being written: counts the bytes, and takes their checksum on the way."""

    closed = False

    def __init__(self, path: str, stream: Any) -> None:
        self._path = path
        self._stream = stream
        self._digest = _digest()
        self._size = 0

    def write(self, data: Any) -> int:
        """Write some more."""
        self._digest.update(data)
        written = memoryview(data).nbytes
        self._size += written
        self._stream.write(data)
        return written

    def flush(self) -> None:
        """Do nothing: all is written at once."""

    def close(self) -> None:
        """Do nothing: who opened the file closes it."""

    @property
    def file(self) -> StoredFile:
        """What has been written so far."""
        return StoredFile(self._path, self._size, self._digest.hexdigest())


@dataclass(frozen=True, slots=True)
class Files:
    """The files below one directory of a ``pyarrow.fs`` file system.

    Parameters
    ----------
    filesystem
        Any ``pyarrow.fs.FileSystem``.
    base
        The directory; all paths are relative to it, so a checkpoint may be copied elsewhere.
    """

    filesystem: Any
    base: str

    @property
    def near(self) -> bool:
        """Whether reading a file takes no journey, so that several threads at it are only in each other's way."""
        return bool(self.filesystem.type_name == "local")

    def _full(self, path: str) -> str:
        return f"{self.base.rstrip('/')}/{path}" if self.base.rstrip("/") else path

    def write(self, path: str, data: Any) -> StoredFile:
        """Write a file whole; if that fails, remove what there is of it and raise :class:`StorageError`."""
        with self.writing(path) as stream:
            stream.write(data)
        return stream.file

    @contextmanager
    def writing(self, path: str) -> Iterator[Sealing]:
        """Give a file to write to; see :meth:`write` for what happens when it fails."""
        try:
            with self._create(self._full(path)) as stream:
                yield Sealing(path, stream)
        except (OSError, pa.ArrowException) as error:
            with suppress(OSError, pa.ArrowException):
                self.filesystem.delete_file(self._full(path))
            raise StorageError(
                f"Cannot write {self._full(path)}: {error} What was committed before is untouched. "
                "Free space or repair the file system; the batch can then run again.",
                path=self._full(path),
            ) from error

    def _create(self, full: str) -> Any:
        try:
            return self.filesystem.open_output_stream(full)
        except FileNotFoundError:
            # Object stores have no directories; file systems want them first. Asked only then: it costs a round trip.
            self.filesystem.create_dir(full.rpartition("/")[0], recursive=True)
            return self.filesystem.open_output_stream(full)

    def read(self, file: StoredFile) -> Any:
        """Give a file's bytes as an Arrow buffer, after checking size and checksum."""
        data = self.read_unchecked(file.path)
        self._compare(StoredFile(file.path, data.size, checksum_of(data)), file)
        return data

    def download(self, file: StoredFile, sink: Any) -> None:
        """Copy a file into a writable ``sink`` piece by piece, checking size and checksum on the way."""
        copy = Sealing(file.path, sink)
        with self._reading(file.path) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                copy.write(chunk)
        self._compare(copy.file, file)

    def _compare(self, found: StoredFile, file: StoredFile) -> None:
        if found.size_bytes != file.size_bytes:
            self._damaged(file.path, f"it has {found.size_bytes} bytes instead of {file.size_bytes}", "truncated")
        if found.checksum != file.checksum:
            self._damaged(file.path, "its checksum differs from the one it was written with", "altered")

    def read_unchecked(self, path: str) -> Any:
        """Give a file's bytes as they are."""
        with self._reading(path) as stream:
            return stream.read_buffer()

    @contextmanager
    def _reading(self, path: str) -> Iterator[Any]:
        try:
            with self.filesystem.open_input_stream(self._full(path)) as stream:
                yield stream
        except FileNotFoundError:
            self._damaged(path, "it does not exist", "missing")
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"Cannot read {self._full(path)}: {error}", path=self._full(path)) from error

    def _damaged(self, path: str, why: str, reason: str) -> None:
        raise CorruptDataError(f"{self._full(path)} is damaged: {why}.", path=self._full(path), reason=reason)

    def list(self, directory: str) -> dict[str, int]:
        """Give path and size of every file below a directory; nothing if there is no such directory."""
        selector = arrow_fs.FileSelector(self._full(directory), recursive=True, allow_not_found=True)
        try:
            found = self.filesystem.get_file_info(selector)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"Cannot list {self._full(directory)}: {error}", path=self._full(directory)) from error
        start = len(self._full(directory)) - len(directory)
        return {info.path[start:]: info.size for info in found if info.type == arrow_fs.FileType.File}

    def delete(self, path: str) -> None:
        """Remove a file; that it is gone already is fine."""
        try:
            self.filesystem.delete_file(self._full(path))
        except FileNotFoundError:
            pass
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"Cannot remove {self._full(path)}: {error}", path=self._full(path)) from error

    # -- documents: one line of JSON, and one line that says how long it is and what it hashes to -------------------

    def write_document(self, path: str, kind: str, body: dict[str, Any]) -> StoredFile:
        """Write a JSON document with its own checksum."""
        text = _canonical({"evenkeel": kind, "format": FORMAT, **body})
        seal = json.dumps({"bytes": len(text), "checksum": checksum_of(text)}).encode()
        return self.write(path, text + b"\n" + seal + b"\n")

    def read_document(self, path: str, kind: str, file: StoredFile | None = None) -> dict[str, Any]:
        """Read what :meth:`write_document` wrote.

        Raises
        ------
        CorruptDataError
            With ``reason`` "missing", "truncated" (its last line is not whole: a writer died) or "altered".
        IncompatibleCheckpointError
            If a newer version of Evenkeel wrote it.
        """
        data = (self.read(file) if file else self.read_unchecked(path)).to_pybytes()
        text, _, seal = data.partition(b"\n")
        if not seal.endswith(b"}\n"):
            self._damaged(path, f"it ends after {len(data)} bytes, in the middle of a line", "truncated")
        try:
            if checksum_of(text) != json.loads(seal)["checksum"]:
                raise ValueError("its checksum differs from the one it was written with")  # noqa: TRY301 - one way out
            body: dict[str, Any] = json.loads(text)
        except (ValueError, KeyError, TypeError) as error:
            self._damaged(path, str(error), "altered")
            raise AssertionError from error
        if body["format"] > FORMAT:
            raise IncompatibleCheckpointError(
                f"{self._full(path)} has format {body['format']}; this version of Evenkeel reads up to {FORMAT}. "
                "Use the version that wrote it, or a newer one.",
                path=self._full(path),
            )
        if body["evenkeel"] != kind:
            self._damaged(path, f"it is a {body['evenkeel']}, not a {kind}", "altered")
        return body

    def same_document(self, path: str, kind: str, body: dict[str, Any]) -> bool:
        """Say whether a document is there and says just this."""
        try:
            found = self.read_document(path, kind)
        except CorruptDataError as error:
            if error.reason == "missing":
                return False
            raise
        return _canonical(found) == _canonical({"evenkeel": kind, "format": found["format"], **body})


def _canonical(body: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"Reports and metadata must be JSON: {error}") from error
    return text.encode()


def _plain(value: Any) -> Any:
    """NumPy's scalars and arrays as plain Python."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in JSON.")
