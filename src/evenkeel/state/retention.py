"""Removing what no kept version needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.errors import CorruptDataError, InvalidArgumentError

if TYPE_CHECKING:
    from evenkeel.state.checkpoint import Checkpoint

__all__ = ["Cleaned", "clean"]

_FILE = re.compile(r"stages/([^/]+)/b(\d+)-c(\d+)-.+\.(manifest\.json|snapshot\.json|delta\.arrow|snapshot\.mdb)")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was removed, and which damaged manifests kept their channel's files from it."""

    removed: tuple[str, ...]
    removed_bytes: int
    unreadable: tuple[str, ...]


def clean(checkpoint: Checkpoint, *, keep: int = 10) -> Cleaned:
    """Remove what none of the last ``keep`` commits needs, and what lost attempts of committed batches left.

    Never removes a file that a kept commit needs, nor anything of a batch that is not committed yet, since its tasks
    may be running. If a kept manifest cannot be read, all files of its channel stay. A crash on the way leaves files
    that the next cleaning removes.

    Notes
    -----
    Lists the checkpoint once and reads ``keep`` × channels manifests.
    """
    if keep < 1:
        raise InvalidArgumentError(f"At least the last commit must be kept; got keep={keep}.")
    last = checkpoint.last_commit()
    if last is None:
        return Cleaned((), 0, ())
    batches = [batch for batch in checkpoint.batches() if batch <= last.batch]
    needed, unreadable, spared = set(), [], set()
    for batch in batches[-keep:]:
        for ref in checkpoint.read_commit(batch).manifests:
            needed.add(ref.file.path)
            try:
                needed |= checkpoint.read_manifest(ref).files
            except CorruptDataError:
                unreadable.append(ref.file.path)
                spared.add((ref.stage, ref.channel))
    files = checkpoint.files.list("stages")
    doomed = [f"commits/b{batch:012d}.json" for batch in batches[:-keep]]
    sizes = checkpoint.files.list("commits") | files
    # Commits go first and data last: what is left when this stops half-way is never named by anything.
    order = {"manifest.json": 0, "snapshot.json": 1, "delta.arrow": 2, "snapshot.mdb": 3}
    found = []
    for path in files:
        match = _FILE.fullmatch(path)
        if match and path not in needed and int(match[2]) <= last.batch and (match[1], int(match[3])) not in spared:
            found.append((order[match[4]], path))
    doomed += [path for _, path in sorted(found)]
    for path in doomed:
        checkpoint.files.delete(path)
    return Cleaned(tuple(doomed), sum(sizes[path] for path in doomed), tuple(unreadable))
