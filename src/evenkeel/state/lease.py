"""Who is using a checkpoint: so that a second query on it is refused.

Each holder writes files of its own, so no two ever write one file. A newcomer first puts down its own lease and only
then looks for others: of two that come at once, at least one sees the other. A lease that is not whole is one whose
writer has not looked yet, and may be ignored.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenkeel.errors import CheckpointInUseError, CorruptDataError
from evenkeel.state.files import checked_name

if TYPE_CHECKING:
    from evenkeel.state.files import Files

__all__ = ["Lease", "is_alive"]

_LEASE = re.compile(r"lease/(.+)-(\d{9})\.json")


def is_alive(pid: int) -> bool:
    """Say whether a process of this host is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@dataclass(slots=True)
class Lease:
    """The right to use a checkpoint, until it is given up or not renewed for too long.

    Parameters
    ----------
    files
        The checkpoint's files.
    owner
        A unique name, such as the query's run id.
    host, pid
        Where it runs; a holder on the same host whose process is gone has lost its lease at once.
    timeout_seconds
        How old a heartbeat may be before its holder counts as dead.
    """

    files: Files
    owner: str
    host: str
    pid: int
    timeout_seconds: float = 60.0
    renewals: int = 0
    renewed: float = -math.inf

    def acquire(self, now: float) -> Lease:
        """Take the lease at the time ``now`` (seconds), or raise :class:`CheckpointInUseError`."""
        checked_name("owner", self.owner)
        self._write(now)
        for path, other in self._others().items():
            if self._is_live(other, now):
                self.release()
                raise CheckpointInUseError(
                    f"The checkpoint at {self.files.base} is in use by {other['owner']} on {other['host']}, process "
                    f"{other['pid']}, seen {now - other['heartbeat']:.0f} s ago. Stop that query, or use another "
                    f"checkpoint; if it is dead, that will be noticed {self.timeout_seconds:.0f} s after it was seen.",
                    **{name: other[name] for name in ("owner", "host", "pid", "heartbeat")},
                )
            self.files.delete(path)
        return self

    def renew(self, now: float) -> None:
        """Say that the holder is alive; raise :class:`CheckpointInUseError` if the lease was taken over meanwhile.

        Not more often than six times within the timeout: before that, nobody takes it over.
        """
        if 0 <= now - self.renewed < self.timeout_seconds / 6:
            return
        if not any(match and match[1] == self.owner for match in map(_LEASE.fullmatch, self.files.list("lease"))):
            raise CheckpointInUseError(
                f"The lease of {self.owner} on {self.files.base} is gone: it was not renewed for more than "
                f"{self.timeout_seconds:.0f} s and another query took over. This query must stop.",
                owner=self.owner,
            )
        self._write(now)

    def release(self) -> None:
        """Give the lease up."""
        self.renewed = -math.inf
        for path in self.files.list("lease"):
            match = _LEASE.fullmatch(path)
            if match and match[1] == self.owner:
                self.files.delete(path)

    def _path(self) -> str:
        return f"lease/{self.owner}-{self.renewals:09d}.json"

    def _write(self, now: float) -> None:
        """Put down the new lease before the old one goes, so that there is always a whole one."""
        old = self._path()
        self.renewals, self.renewed = self.renewals + 1, now
        body = {"owner": self.owner, "host": self.host, "pid": self.pid, "heartbeat": now}
        self.files.write_document(self._path(), "lease", body)
        self.files.delete(old)

    def _others(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for path in self.files.list("lease"):
            match = _LEASE.fullmatch(path)
            if match and match[1] != self.owner:
                try:
                    found[path] = self.files.read_document(path, "lease")
                except CorruptDataError:
                    continue
        return found

    def _is_live(self, other: dict[str, Any], now: float) -> bool:
        gone = other["host"] == self.host and not is_alive(int(other["pid"]))
        return not gone and now - float(other["heartbeat"]) <= self.timeout_seconds
