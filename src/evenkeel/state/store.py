"""One channel's state on one host: open a version, write the next."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evenkeel.state.checkpoint import file_path
from evenkeel.state.copies import CopyPlace, forget
from evenkeel.state.delta_file import encode
from evenkeel.state.files import checked_name
from evenkeel.state.manifest import (
    EMPTY_TIP,
    AskedSnapshot,
    ChainFile,
    Manifest,
    next_tip,
    snapshot_due,
    trim,
    with_snapshot,
)
from evenkeel.state.opening import open_near, open_version
from evenkeel.state.snapshot import write_snapshot

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from evenkeel.state.checkpoint import Checkpoint
    from evenkeel.state.delta import Delta
    from evenkeel.state.files import StoredFile
    from evenkeel.state.manifest import ManifestRef
    from evenkeel.state.totals import SlotTotals
    from evenkeel.state.view import StateView

__all__ = ["DeltaFile", "StateStore"]

_PATIENCE = 100
"""After so many batches, a snapshot that was asked for is asked for anew: who was to write it may have died."""


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """A written delta, and the state it leads to.

    Parameters
    ----------
    file
        Path, bytes and checksum; None if the batch changed nothing, so that there is no file.
    tip
        The tip of the state with this delta.
    totals
        Keys and bytes of each slot with this delta: what the load snapshot reports.
    """

    file: StoredFile | None
    tip: str
    totals: SlotTotals


class StateStore:
    """The state of one channel of a stage, as a task uses it.

    Parameters
    ----------
    checkpoint
        Where the truth is.
    stage, channel
        Whose state.
    directory
        Where this host keeps working copies; any process of the host may use it at the same time.
    snapshot_every
        How many deltas make a snapshot worth while; see :func:`~evenkeel.state.manifest.snapshot_due`.
    map_bytes
        Address space that a working copy starts with; it grows by itself.

    Notes
    -----
    A task at batch b opens what batch b - 1 committed, reads, and writes a delta. The working copy stays where it is
    until the next opening, so that a task that is retried, doubled or replayed finds what it needs.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        stage: str,
        channel: int,
        directory: str | os.PathLike[str],
        *,
        snapshot_every: int = 50,
        map_bytes: int = 1 << 30,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.checkpoint = checkpoint
        self.stage = checked_name("stage", stage)
        self.channel = channel
        self.directory = directory
        self.snapshot_every = snapshot_every
        self._map_bytes = map_bytes
        self._timer = timer
        self.asked: AskedSnapshot | None = None
        """The snapshot that the manifest written last asks for: :meth:`write_asked` writes it."""

    @property
    def copy_stage(self) -> str:
        """The stage's name among this host's working copies."""
        return f"{self.checkpoint.id}.{self.stage}"

    def open(self, ref: ManifestRef | None, *, after: int = -1) -> StateView:
        """Open the version that a manifest describes; None is the version of a channel that holds nothing.

        Parameters
        ----------
        ref
            What was committed.
        after
            The batch after which the channel holds nothing, if it does. What is left of an earlier attempt, and asks
            for what the channel held before it began anew, does not move this copy on.

        Raises
        ------
        UnrecoverableStateError
            If files are damaged and no good snapshot and deltas suffice; it names them.
        StorageError
            If a disk or file system fails.

        Notes
        -----
        Warm, it reads no file of the checkpoint and takes a fraction of a millisecond.
        """
        view = self._open(partial(open_version, after=after), ref)
        assert view is not None
        return view

    def open_if_near(self, ref: ManifestRef | None) -> StateView | None:
        """Open the version if this host's working copy is at it or a few deltas behind; None where it is not."""
        return self._open(open_near, ref)

    def _open(self, how: Callable[..., StateView | None], ref: ManifestRef | None) -> StateView | None:
        started = self._timer()
        place = CopyPlace.of(self.directory, self.copy_stage, self.channel)
        view = how(self.checkpoint, place, self.copy_stage, self.channel, ref, self._map_bytes)
        if view is not None:
            view.opening = replace(view.opening, took_ms=1000 * (self._timer() - started))
        return view

    def write_delta(self, view: StateView, delta: Delta, *, batch: int, attempt: str) -> DeltaFile:
        """Write what a batch changes; it counts once a committed manifest names it. O(keys touched)."""
        tip = view.ref.tip if view.ref else EMPTY_TIP
        if not delta:
            return DeltaFile(None, tip, view.totals())
        change = view.change_of(delta)
        pending = delta.pending()
        adopted = (rows for source, selection in delta.adopted for rows in source.rows(selection))
        with self.checkpoint.files.writing(self._path(batch, attempt, "delta.arrow")) as stream:
            encode(stream, adopted, pending, delta.dropped.range_list(), change, delta.woken_until)
        file = stream.file
        return DeltaFile(file, next_tip(tip, file.checksum), view.totals() + change)

    def write_manifest(
        self,
        view: StateView,
        delta: DeltaFile,
        *,
        batch: int,
        attempt: str,
        report: dict[str, Any] | None = None,
        snapshot: bool | None = None,
        later: bool = False,
    ) -> ManifestRef:
        """Write the manifest of a batch, for the driver to commit; and a snapshot of the version opened, if due.

        Parameters
        ----------
        view, delta
            What was opened, and what was written.
        batch, attempt
            Which batch, and a name of this attempt that no other attempt has.
        report
            Whatever the driver wants to know; any JSON.
        snapshot
            Whether to write a snapshot; by default when it is worth while.
        later
            Whether to ask for one of the version that this batch leads to, in place of writing one now; not done where
            whoever is to write it would have to go far for the commit.
        """
        before = self.checkpoint.read_manifest(view.ref) if view.ref else None
        chain, asked = (before.chain, before.asked) if before else ((), None)
        if asked and (written := asked.find(self.checkpoint.files)):
            chain, asked = with_snapshot(chain, written), None
        elif asked and batch - asked.version > _PATIENCE:
            asked = None
        if snapshot is None:
            snapshot = snapshot_due(chain, view.totals().total_bytes, self.snapshot_every, self.channel)
        path, self.asked = self._path(batch, attempt, "snapshot.mdb"), None
        if snapshot and chain and later and self.checkpoint.files.near:
            if not asked:
                asked = self.asked = AskedSnapshot(batch, delta.tip, path)
        elif snapshot and view.ref and chain and chain[-1].kind == "delta":
            file = write_snapshot(view.shared, view.txn, self.checkpoint.files, path)
            chain, asked = (*chain, ChainFile("snapshot", view.ref.batch, view.ref.tip, file)), None
        if delta.file:
            chain = (*chain, ChainFile("delta", batch, delta.tip, delta.file))
        manifest = Manifest(self.stage, self.channel, batch, attempt, delta.tip, trim(chain), report or {}, asked)
        return manifest.write(self.checkpoint.files, self._path(batch, attempt, "manifest.json"))

    def write_asked(self, view: StateView) -> None:
        """Write the snapshot that the manifest written last asks for, if it does; that version is open."""
        if self.asked:
            files = self.checkpoint.files
            self.asked.write_note(files, write_snapshot(view.shared, view.txn, files, self.asked.path))

    def forget(self) -> int:
        """Remove this host's working copy of the channel and give the bytes that frees; the checkpoint keeps all."""
        return forget(self.directory, self.copy_stage, self.channel)

    def _path(self, batch: int, attempt: str, kind: str) -> str:
        return file_path(self.stage, batch, self.channel, attempt, kind)
