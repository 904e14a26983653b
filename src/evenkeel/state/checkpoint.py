"""The checkpoint: what counts of a query's state, and since when.

::

    checkpoint.json                                   whose checkpoint this is
    commits/b000000000012.json                        batch 12 counts; written last
    stages/<stage>/b000000000012-c00003-<attempt>.manifest.json
    stages/<stage>/b000000000012-c00003-<attempt>.delta.arrow
    stages/<stage>/b000000000012-c00003-<attempt>.snapshot.mdb
    stages/<stage>/b000000000012-c00003-<attempt>.snapshot.json
    lease/<owner>-<n>.json                            who is using it

A batch counts once its commit is there whole. Everything else that is written for a batch, by however many attempts,
is looked at only if that commit names it.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenkeel.errors import (
    CommitConflictError,
    CorruptDataError,
    IncompatibleCheckpointError,
    InvalidArgumentError,
)
from evenkeel.state.files import Files, checked_name
from evenkeel.state.manifest import Manifest, ManifestRef

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Checkpoint", "Commit", "file_path"]

_COMMIT = re.compile(r"commits/b(\d{12,})\.json")
_READERS = 8  # files read at once


def file_path(stage: str, batch: int, channel: int, attempt: str, kind: str) -> str:
    """Give the path of one of a task's files; no two attempts share one."""
    return f"stages/{stage}/b{batch:012d}-c{channel:05d}-{checked_name('attempt', attempt)}.{kind}"


@dataclass(frozen=True, slots=True)
class Commit:
    """That a batch counts, and with what.

    Parameters
    ----------
    batch
        The micro-batch.
    epoch
        Epoch of the routing table that the batch was routed with.
    manifests
        One per stage and channel.
    metadata
        Whatever else the driver must find again: tables, watermark, decisions.
    """

    batch: int
    epoch: int
    manifests: tuple[ManifestRef, ...]
    metadata: dict[str, Any]

    def manifest(self, stage: str, channel: int) -> ManifestRef | None:
        """Give a channel's manifest, or None if the channel held nothing after this batch."""
        found = (ref for ref in self.manifests if (ref.stage, ref.channel) == (stage, channel))
        return next(found, None)

    def to_json(self) -> dict[str, Any]:
        """Give the commit as plain JSON."""
        refs = [ref.to_json() for ref in self.manifests]
        return {"batch": self.batch, "epoch": self.epoch, "manifests": refs, "metadata": self.metadata}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint directory, as drivers and tasks share it.

    Make one with :meth:`open` on the driver; tasks get a copy of it (it pickles if its file system does).

    Parameters
    ----------
    files
        The directory.
    id
        Tells this checkpoint from any other that was ever made, also at the same place.
    """

    files: Files
    id: str

    @classmethod
    def open(cls, filesystem: Any, path: str, *, job: str, run: str, fingerprint: str = "") -> Checkpoint:
        """Open a job's checkpoint, or make a new one.

        Parameters
        ----------
        filesystem, path
            A ``pyarrow.fs.FileSystem`` and a directory in it.
        job
            Name of the job.
        run
            A unique name of this start of it, such as a UUID; a new checkpoint gets it as its id.
        fingerprint
            What must not change between restarts, such as operators, key types and number of slots.

        Raises
        ------
        IncompatibleCheckpointError
            If it belongs to another job, to another shape of the job, or to a newer version of Evenkeel.
        """
        files = Files(filesystem, path)
        try:
            body = files.read_document("checkpoint.json", "checkpoint")
        except CorruptDataError as error:
            # Without any commit there is nothing to protect: a first start may have died while it wrote the file.
            if error.reason not in {"missing", "truncated"} or files.list("commits"):
                raise
            body = {"id": checked_name("run", run), "job": job, "fingerprint": fingerprint}
            files.write_document("checkpoint.json", "checkpoint", body)
        for name, wanted in (("job", job), ("fingerprint", fingerprint)):
            if body[name] != wanted:
                raise IncompatibleCheckpointError(
                    f"The checkpoint at {path} has the {name} {body[name]!r}; this query has {wanted!r}. Use another "
                    "checkpoint directory, or start the query that this one belongs to.",
                    path=path,
                    found=body[name],
                    wanted=wanted,
                )
        return cls(files, body["id"])

    def batches(self) -> list[int]:
        """Give the batches of all commits that are kept, oldest first; the last one may be unfinished."""
        found = (_COMMIT.fullmatch(path) for path in self.files.list("commits"))
        return sorted(int(match[1]) for match in found if match)

    def read_commit(self, batch: int) -> Commit:
        """Read a batch's commit; :class:`CorruptDataError` if it is missing or damaged."""
        path = f"commits/b{batch:012d}.json"
        body = self.files.read_document(path, "commit")
        try:
            refs = tuple(ManifestRef.from_json(ref) for ref in body["manifests"])
            return Commit(body["batch"], body["epoch"], refs, body["metadata"])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(f"{path} is not a commit: {error!r}", path=path, reason="altered") from error

    def is_committed(self, ref: ManifestRef) -> bool:
        """Say whether the batch of a manifest is committed, and with this manifest."""
        try:
            return self.read_commit(ref.batch).manifest(ref.stage, ref.channel) == ref
        except CorruptDataError as error:
            if error.reason == "altered":
                raise
            return False  # not there yet, or not whole

    def last_commit(self) -> Commit | None:
        """Give the last batch that counts, or None.

        A newest commit that ends in the middle was being written when its driver died, and does not count: its batch
        comes again. An altered one is a :class:`CorruptDataError`, and so is an unfinished one that is not the newest.
        Should a finished commit have been cut short afterwards, then the batch that comes next is not the one after the
        last commit, and :meth:`commit` refuses it.
        """
        batches = self.batches()
        if not batches:
            return None
        try:
            return self.read_commit(batches[-1])
        except CorruptDataError as error:
            if error.reason != "truncated":
                raise
        return self.read_commit(batches[-2]) if len(batches) > 1 else None

    def commit(
        self, batch: int, manifests: Iterable[ManifestRef], *, epoch: int = 0, metadata: dict[str, Any] | None = None
    ) -> Commit:
        """Make a batch count.

        Committing the same content again is fine: a driver that is not sure may try again.

        Raises
        ------
        CommitConflictError
            If the batch is committed with other content, or is not the next one.
        StorageError
            If it cannot be written; the batch then does not count.
        """
        refs = tuple(sorted(manifests, key=lambda ref: (ref.stage, ref.channel)))
        if len({(ref.stage, ref.channel) for ref in refs}) != len(refs) or any(ref.batch != batch for ref in refs):
            raise InvalidArgumentError(
                f"A commit of batch {batch} takes one manifest of that batch per stage and channel; "
                f"got {[(ref.stage, ref.channel, ref.batch) for ref in refs]}."
            )
        commit = Commit(batch, epoch, refs, metadata or {})
        last = self.last_commit()
        expected = 0 if last is None else last.batch + 1
        path = f"commits/b{batch:012d}.json"
        if batch == expected:
            self.files.write_document(path, "commit", commit.to_json())
            return commit
        if batch > expected:
            raise CommitConflictError(
                f"Batch {batch} cannot be committed: the next one is {expected}. Either commits were lost, or the "
                "query's own checkpoint and this one do not belong together.",
                batch=batch,
                expected=expected,
            )
        if self.files.same_document(path, "commit", commit.to_json()):
            return commit
        raise CommitConflictError(
            f"Batch {batch} is already committed with other content, or was before it was cleaned away; the last "
            f"commit is {expected - 1}. Two drivers may be writing to {self.files.base}, or the batch's input changed.",
            batch=batch,
            expected=expected,
        )

    def manifests_of(self, stage: str, batch: int, attempts: str) -> list[tuple[ManifestRef, Manifest]]:
        """Find the manifests that were written for a batch by attempts whose names start with ``attempts``."""
        start, end = f"stages/{stage}/b{batch:012d}-c", ".manifest.json"
        paths = [path for path in self.files.list(f"stages/{stage}") if path.startswith(start) and path.endswith(end)]
        mine = [path for path in sorted(paths) if path[len(start) :].partition("-")[2].startswith(attempts)]
        if self.files.near:
            return [Manifest.find(self.files, path) for path in mine]
        with ThreadPoolExecutor(_READERS) as readers:
            return list(readers.map(lambda path: Manifest.find(self.files, path), mine))

    def read_manifest(self, ref: ManifestRef) -> Manifest:
        """Read a manifest, with the report of its batch."""
        return Manifest.read(self.files, ref)
