"""Opening a version: from the working copy if it is near, else from the checkpoint.

There are several places to start from: the working copy where it stands, each snapshot of the chain, and, if the chain
goes back to the first batch, nothing at all. The nearest is tried first; one that turns out damaged, or whose deltas
are, is left for the next. Only if none leads to the version asked for is the state lost, and then that is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import lmdb

from evenkeel.errors import CorruptDataError, UnrecoverableStateError
from evenkeel.state.copies import remove_copy
from evenkeel.state.delta_file import decode
from evenkeel.state.environment import SharedEnvironment
from evenkeel.state.manifest import EMPTY_TIP
from evenkeel.state.snapshot import load_snapshot
from evenkeel.state.view import Opening, StateView
from evenkeel.state.working_copy import (
    About,
    GrowError,
    apply_changes,
    begin_reading,
    check_about,
    read_about,
    storing,
    take_over,
)

if TYPE_CHECKING:
    from evenkeel.state.checkpoint import Checkpoint
    from evenkeel.state.copies import CopyPlace
    from evenkeel.state.manifest import ChainFile, ManifestRef

__all__ = ["open_near", "open_version"]

_BROKEN_COPY = (lmdb.Error, CorruptDataError, GrowError, OSError)


def open_near(
    checkpoint: Checkpoint, place: CopyPlace, stage: str, channel: int, ref: ManifestRef | None, map_bytes: int
) -> StateView | None:
    """Open a version from this host's working copy, or not at all."""
    return _Opener(checkpoint, place, stage, channel, ref, map_bytes).open_current()


def open_version(
    checkpoint: Checkpoint,
    place: CopyPlace,
    stage: str,
    channel: int,
    ref: ManifestRef | None,
    map_bytes: int,
    after: int = -1,
) -> StateView:
    """Open the version that ``ref`` names; see :meth:`~evenkeel.state.store.StateStore.open`."""
    opener = _Opener(checkpoint, place, stage, channel, ref, map_bytes, after)
    return opener.open_current() or opener.rebuild()


@dataclass(slots=True)
class _Opener:
    checkpoint: Checkpoint
    place: CopyPlace
    stage: str
    channel: int
    ref: ManifestRef | None
    map_bytes: int
    after: int = -1
    applied: int = 0
    read_bytes: int = 0
    damaged: list[str] = field(default_factory=list)
    _chain: tuple[ChainFile, ...] | None = None

    @property
    def tip(self) -> str:
        return self.ref.tip if self.ref else EMPTY_TIP

    @property
    def chain(self) -> tuple[ChainFile, ...]:
        """The files of the version; read only when they are needed, which a warm opening does not."""
        if self._chain is None:
            self._chain = self.checkpoint.read_manifest(self.ref).chain if self.ref else ()
        return self._chain

    def open_current(self, *, only_if_near: bool = True) -> StateView | None:
        """Start from the working copy; None if there is none of use, or it is further back than the last snapshot."""
        path = self.place.current()
        if path is None:
            return None
        try:
            shared = SharedEnvironment.open(path, self.map_bytes)
        except _BROKEN_COPY:
            return None
        view = None
        try:
            with begin_reading(shared) as txn:
                about = check_about(read_about(txn, shared), self.stage, self.channel, str(path))
            if self._is_near(about, only_if_near) and self._advance(shared, about):
                view = self._view(shared, "caught up" if self.applied else "warm")
        except _BROKEN_COPY:
            pass
        finally:
            if view is None:
                shared.close()
        return view

    def rebuild(self) -> StateView:
        """Start from the newest snapshot that serves, else from nothing, else from wherever the working copy is."""
        snapshots: list[ChainFile | None] = [link for link in reversed(self.chain) if link.kind == "snapshot"]
        if not self.chain or self.chain[0].kind == "delta":
            snapshots.append(None)
        for start in snapshots:
            view = self._rebuild_from(start)
            if view:
                return view
        view = self.open_current(only_if_near=False)
        if view:
            return view
        damaged = list(dict.fromkeys(self.damaged))
        raise UnrecoverableStateError(
            f"The state of {self.stage}, channel {self.channel}, after batch {self.ref.batch if self.ref else -1} "
            f"cannot be restored: no good snapshot and deltas suffice. Damaged: {', '.join(damaged)}. Restore these "
            "files from a backup, or go back to an earlier checkpoint.",
            damaged=damaged,
            stage=self.stage,
            channel=self.channel,
        )

    def _rebuild_from(self, snapshot: ChainFile | None) -> StateView | None:
        about = About(self.stage, self.channel, -1 if self.ref else self.after)
        if snapshot:
            about = About(self.stage, self.channel, snapshot.version, snapshot.tip)
        if any(link.file.path in self.damaged for link in self._deltas_after(about)):
            return None
        path = self.place.fresh()
        shared = view = None
        done = False
        try:
            if snapshot:
                load_snapshot(self.checkpoint.files, snapshot.file, path)
                self.read_bytes += snapshot.file.size_bytes
            with storing(path):
                shared = SharedEnvironment.open(path, self.map_bytes)
            take_over(shared, about)
            if self._advance(shared, about):
                # Looked at first and shown to others second: they may move the copy on at once.
                view = self._view(shared, "rebuilt" if self.chain else "new")
                self.place.publish(path)
                done = True
        except CorruptDataError:
            if snapshot:
                self.damaged.append(snapshot.file.path)
        finally:
            if not done:
                if view:
                    view.close()
                elif shared:
                    shared.close()
                remove_copy(path)
        return view if done else None

    def _is_near(self, about: About, strict: bool) -> bool:
        """Whether the chain passes where a copy is and, if strict, has no snapshot after it."""
        if about.tip == self.tip:
            return True
        after = self._after(about)
        return after is not None and not (strict and any(link.kind == "snapshot" for link in self.chain[after:]))

    def _after(self, about: About) -> int | None:
        """Where the chain goes on from where a copy is; None if it does not pass there.

        A copy of nothing may be of a channel that began anew: it does not go on with what came before that.
        """
        if about.tip == EMPTY_TIP:
            first = self.chain[0] if self.chain else None
            return 0 if first and first.kind == "delta" and first.version > about.version else None
        passed = [number for number, link in enumerate(self.chain) if link.tip == about.tip]
        return passed[-1] + 1 if passed else None

    def _deltas_after(self, about: About) -> list[ChainFile]:
        after = self._after(about)
        return [] if after is None else [link for link in self.chain[after:] if link.kind == "delta"]

    def _advance(self, shared: SharedEnvironment, about: About) -> bool:
        """Apply deltas until the copy is at the version wanted; no if one is damaged, or the copy is elsewhere."""
        while about.tip != self.tip:
            deltas = self._deltas_after(about)
            if not deltas:
                return False
            link = deltas[0]
            try:
                data = self.checkpoint.files.read(link.file)
                changes = decode(data, link.file.path)
            except CorruptDataError:
                self.damaged.append(link.file.path)
                return False
            after = About(self.stage, self.channel, link.version, link.tip)
            if apply_changes(shared, changes, about, after):
                self.applied += 1
                self.read_bytes += link.file.size_bytes
                about = after
            else:
                # Another process of this host was faster, and is at this version, or at another one.
                with begin_reading(shared) as txn:
                    about = check_about(read_about(txn, shared), self.stage, self.channel, str(shared.directory))
        return True

    def _view(self, shared: SharedEnvironment, how: Literal["warm", "caught up", "rebuilt", "new"]) -> StateView | None:
        """A view at the version wanted; None if another process has moved the copy on in the meantime."""
        txn = begin_reading(shared)
        about = read_about(txn, shared)
        if about is None or about.tip != self.tip:
            txn.abort()
            return None
        return StateView(shared, txn, self.ref, Opening(how, self.applied, self.read_bytes, 0.0, tuple(self.damaged)))
