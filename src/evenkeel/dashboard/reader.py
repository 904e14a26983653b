"""Reads a checkpoint as it grows: each look takes in only what is new."""

from __future__ import annotations

import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenkeel.control import DecisionLog, Saved
from evenkeel.dashboard.batches import StageBatch
from evenkeel.dashboard.files import open_files
from evenkeel.dashboard.history import StageHistory
from evenkeel.errors import CorruptDataError, EvenkeelError
from evenkeel.routing import RoutingTable
from evenkeel.state import Checkpoint, StoredFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from evenkeel.state import Commit

__all__ = ["CheckpointReader", "Holder"]

_COMMIT = re.compile(r"commits/b(\d{12,})\.json")
_LEASE = re.compile(r"lease/.+-\d{9}\.json")
_READERS = 8  # files read at once, where reading one takes a journey
_MALFORMED = (KeyError, TypeError, ValueError, OverflowError, AttributeError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class Holder:
    """Who uses the checkpoint, and when it last said so (seconds)."""

    owner: str
    host: str
    pid: int
    heartbeat: float


class CheckpointReader:
    """Everything a checkpoint tells about its query, taken in look by look.

    A checkpoint that is being written or cleaned while it is read is normal: a commit that is not whole yet is left for
    the next look, and a batch whose files have gone meanwhile is passed over. What is damaged is passed over too, and
    said in :attr:`damaged`. Nothing is written, and nothing outside the checkpoint is read.

    Parameters
    ----------
    location
        A directory, or a URI that ``pyarrow.fs`` knows.

    Notes
    -----
    A look that finds nothing new lists two directories and reads two small files. A new batch costs one file per
    channel, a new table and the controller's memory one more each.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._files = open_files(location)
        self._start_anew("")

    def _start_anew(self, identity: str) -> None:
        self.id = identity
        self.job = ""
        self.batch = -1
        self.stages: dict[str, StageHistory] = {}
        self.holder: Holder | None = None
        self.damaged: deque[str] = deque(maxlen=20)
        self._tables: dict[str, RoutingTable] = {}
        self._controllers: dict[str, str] = {}

    def look(self, progress: Callable[[int, int], None] | None = None) -> bool:
        """Take in what is new, and say whether anything was.

        Parameters
        ----------
        progress
            Called after each new commit with how many of how many were read.

        Raises
        ------
        EvenkeelError
            If the checkpoint is gone, or its file system fails; what was read before stays.
        """
        body = self._files.read_document("checkpoint.json", "checkpoint")
        times = self._commit_times()
        if body.get("id") != self.id or max(times, default=-1) < self.batch:
            self._start_anew(str(body.get("id")))  # another checkpoint was put in its place
            self.job = str(body.get("job"))
        checkpoint = Checkpoint(self._files, self.id)
        new = sorted(batch for batch in times if batch > self.batch)
        last: Commit | None = None
        with ThreadPoolExecutor(_READERS) as readers:
            for number, batch in enumerate(new, 1):
                try:
                    commit = checkpoint.read_commit(batch)
                except CorruptDataError as error:
                    if error.reason == "truncated" and batch == new[-1]:
                        break  # It is being written.
                    self._skip(error)
                else:
                    self._take(checkpoint, commit, times[batch], readers)
                    last = commit
                self.batch = batch
                if progress is not None:
                    progress(number, len(new))
        if last is not None:
            self._take_decisions(last)
        holder, self.holder = self.holder, self._find_holder()
        return last is not None or holder != self.holder

    def _commit_times(self) -> dict[int, float | None]:
        found = ((_COMMIT.fullmatch(path), when) for path, when in self._files.commit_times().items())
        return {int(match[1]): when for match, when in found if match}

    def _skip(self, error: EvenkeelError) -> None:
        """Pass something over: silently if it was cleaned away."""
        if error.fields.get("reason") != "missing":
            self.damaged.append(str(error))

    def _take(self, checkpoint: Checkpoint, commit: Commit, ended: float | None, readers: ThreadPoolExecutor) -> None:
        try:
            facts = commit.metadata.get("stages", {})
            manifests = list(readers.map(checkpoint.read_manifest, commit.manifests))
            for stage in dict.fromkeys(ref.stage for ref in commit.manifests):
                reports = [manifest.report for manifest in manifests if manifest.stage == stage]
                batch = StageBatch.of(commit.batch, reports, ended, commit.metadata.get("took_ms"))
                mine = facts.get(stage, {})
                history = self.stages.setdefault(stage, StageHistory(stage))
                history.take(batch, mine, tuple(self._table(mine, name) for name in ("table", "next")))
        except EvenkeelError as error:
            self._skip(error)
        except _MALFORMED as error:
            self.damaged.append(f"The reports of batch {commit.batch} are not what they should be: {error!r}")

    def _table(self, facts: dict[str, Any], name: str) -> RoutingTable | None:
        stored = facts.get("files", {}).get(name)
        if stored is None:
            return None
        file = StoredFile(*stored)
        if file.path not in self._tables:
            try:
                data = pa.ipc.open_stream(self._files.read(file)).read_all()
                self._tables[file.path] = RoutingTable.from_arrow(data)
            except EvenkeelError as error:
                self._skip(error)
                return None
            while len(self._tables) > 4 * max(1, len(self.stages)):
                del self._tables[next(iter(self._tables))]
        return self._tables[file.path]

    def _take_decisions(self, commit: Commit) -> None:
        """Read each stage's controller, if it is another than the one read last."""
        for stage, history in self.stages.items():
            stored = commit.metadata.get("stages", {}).get(stage, {}).get("files", {}).get("controller")
            if stored is None or self._controllers.get(stage) == stored[0]:
                continue
            try:
                saved = Saved.from_arrow(pa.ipc.open_stream(self._files.read(StoredFile(*stored))).read_all())
                if "decisions" not in saved.facts:
                    continue  # A controller of the user's own, which remembers none.
                log = DecisionLog()
                log.restore(saved.part("decisions"))
            except EvenkeelError as error:
                self._skip(error)
                continue
            except _MALFORMED as error:
                self.damaged.append(f"The decisions of {stage} are not what they should be: {error!r}")
                continue
            self._controllers[stage] = stored[0]
            history.take_decisions(log)

    def _find_holder(self) -> Holder | None:
        """Give the newest lease that is whole."""
        found = []
        for path in self._files.list("lease"):
            if _LEASE.fullmatch(path):
                try:
                    body = self._files.read_document(path, "lease")
                    heartbeat = float(body["heartbeat"])
                    found.append(Holder(str(body["owner"]), str(body["host"]), int(body["pid"]), heartbeat))
                except (EvenkeelError, *_MALFORMED):
                    continue  # It is being written, or was given up meanwhile.
        return max(found, key=lambda holder: holder.heartbeat, default=None)
