"""A manifest: which files make up a channel's state after a batch, and what the batch did.

A manifest names the whole *chain*: the deltas since the last snapshot but one, and both snapshots. So one small file is
enough to open a version, and one damaged snapshot is not yet a loss.

Each point of the chain has a *tip*: a checksum of all deltas up to there. Two states with one tip are one state,
whichever host, attempt or restored backup they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evenkeel.errors import CorruptDataError
from evenkeel.state.files import StoredFile, checksum_of

if TYPE_CHECKING:
    from evenkeel.state.files import Files

__all__ = [
    "EMPTY_TIP",
    "AskedSnapshot",
    "ChainFile",
    "Manifest",
    "ManifestRef",
    "next_tip",
    "snapshot_due",
    "trim",
    "with_snapshot",
]

EMPTY_TIP = ""
"""The tip of a state that nothing was ever written to."""


def next_tip(tip: str, delta_checksum: str) -> str:
    """Give the tip after one more delta."""
    return checksum_of(f"{tip}:{delta_checksum}".encode())


@dataclass(frozen=True, slots=True)
class ChainFile:
    """A delta, or a snapshot, that a state is made of.

    Parameters
    ----------
    kind
        ``"delta"``: what one batch changed; ``"snapshot"``: the whole state.
    version
        The batch whose state this file completes.
    tip
        The tip once the file is applied.
    file
        Where it is, how long, and its checksum.
    """

    kind: Literal["delta", "snapshot"]
    version: int
    tip: str
    file: StoredFile


@dataclass(frozen=True, slots=True)
class AskedSnapshot:
    """A snapshot that somebody was asked to write while the batches after it run.

    Parameters
    ----------
    version, tip
        The batch whose state it is to have, and that state's tip.
    path
        Where it is to be.
    """

    version: int
    tip: str
    path: str

    @property
    def note(self) -> str:
        """The document that is written after it, and says that it is there."""
        return self.path.removesuffix("mdb") + "json"

    def write_note(self, files: Files, file: StoredFile) -> None:
        """Say that it is there."""
        files.write_document(self.note, "snapshot", {"file": file.to_json()})

    def find(self, files: Files) -> ChainFile | None:
        """Give it if it is there."""
        try:
            body = files.read_document(self.note, "snapshot")
        except CorruptDataError:  # not there yet, or not whole
            return None
        return ChainFile("snapshot", self.version, self.tip, StoredFile(*body["file"]))


@dataclass(frozen=True, slots=True)
class ManifestRef:
    """What the driver keeps of a manifest, and gives to the task that opens it: a few hundred bytes."""

    stage: str
    channel: int
    batch: int
    tip: str
    file: StoredFile

    def to_json(self) -> dict[str, Any]:
        """Give the reference as plain JSON."""
        return {
            "stage": self.stage,
            "channel": self.channel,
            "batch": self.batch,
            "tip": self.tip,
            "file": self.file.to_json(),
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> ManifestRef:
        """Read what :meth:`to_json` gave."""
        return cls(body["stage"], body["channel"], body["batch"], body["tip"], StoredFile(*body["file"]))


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a channel's state after a batch, oldest first; the batch's report; a snapshot that was asked for."""

    stage: str
    channel: int
    batch: int
    attempt: str
    tip: str
    chain: tuple[ChainFile, ...]
    report: dict[str, Any]
    asked: AskedSnapshot | None = None

    @property
    def files(self) -> set[str]:
        """The paths of all that it names."""
        asked = {self.asked.path, self.asked.note} if self.asked else set()
        return {link.file.path for link in self.chain} | asked

    def write(self, files: Files, path: str) -> ManifestRef:
        """Write the manifest; the files it names must be there already."""
        body = {
            "stage": self.stage,
            "channel": self.channel,
            "batch": self.batch,
            "attempt": self.attempt,
            "tip": self.tip,
            "chain": [[link.kind, link.version, link.tip, link.file.to_json()] for link in self.chain],
            "report": self.report,
        }
        if self.asked:
            body["asked"] = [self.asked.version, self.asked.tip, self.asked.path]
        stored = files.write_document(path, "manifest", body)
        return ManifestRef(self.stage, self.channel, self.batch, self.tip, stored)

    @classmethod
    def find(cls, files: Files, path: str) -> tuple[ManifestRef, Manifest]:
        """Read the manifest at a path, and give what names it."""
        data = files.read_unchecked(path)
        stored = StoredFile(path, data.size, checksum_of(data))
        found = cls.read(files, ManifestRef("", -1, -1, "", stored))
        return ManifestRef(found.stage, found.channel, found.batch, found.tip, stored), found

    @classmethod
    def read(cls, files: Files, ref: ManifestRef) -> Manifest:
        """Read the manifest that ``ref`` names."""
        body = files.read_document(ref.file.path, "manifest", ref.file)
        try:
            chain = tuple(
                ChainFile(kind, version, tip, StoredFile(*file)) for kind, version, tip, file in body["chain"]
            )
            facts = {name: body[name] for name in ("stage", "channel", "batch", "attempt", "tip", "report")}
            return cls(chain=chain, asked=AskedSnapshot(*body["asked"]) if "asked" in body else None, **facts)
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(
                f"{ref.file.path} is not a manifest: {error!r}", path=ref.file.path, reason="altered"
            ) from error


def trim(chain: tuple[ChainFile, ...]) -> tuple[ChainFile, ...]:
    """Leave out what came before the last snapshot but one."""
    snapshots = [place for place, link in enumerate(chain) if link.kind == "snapshot"]
    return chain[snapshots[-2] :] if len(snapshots) > 1 else chain


def with_snapshot(chain: tuple[ChainFile, ...], snapshot: ChainFile) -> tuple[ChainFile, ...]:
    """Put a snapshot where the chain passes its tip; if that was long ago, it does not."""
    passed = [place for place, link in enumerate(chain, 1) if link.tip == snapshot.tip]
    return (*chain[: passed[-1]], snapshot, *chain[passed[-1] :]) if passed else chain


def snapshot_due(chain: tuple[ChainFile, ...], state_bytes: int, every: int, channel: int) -> bool:
    """Say whether it is time for a snapshot.

    It is after ``every`` deltas once they are worth half the state, so that snapshots cost O(1) per byte written
    however large the state is; and after four times as many in any case, so that a rebuild reads a bounded number of
    files. Channels take turns instead of all writing in the same batch.
    """
    snapshots = [place for place, link in enumerate(chain) if link.kind == "snapshot"]
    deltas = chain[snapshots[-1] + 1 :] if snapshots else chain
    wait = every if snapshots else every + channel % every
    worth = 2 * sum(link.file.size_bytes for link in deltas) >= state_bytes
    return len(deltas) >= 4 * every or (len(deltas) >= wait and worth)
