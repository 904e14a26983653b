"""A running query as a stream to advise on: what its channels reported of the last batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.control import DecisionLog, Saved
from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.routing import RoutingTable
from evenkeel.sim.advice.profile import FOLDED
from evenkeel.sim.workloads import Histograms
from evenkeel.state import Checkpoint, Files, StoredFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.control import Decision
    from evenkeel.state import Commit

__all__ = ["Observed", "is_checkpoint", "observe_checkpoint"]


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """What a checkpoint tells.

    Parameters
    ----------
    workload
        A window per batch that is kept. Heavy keys are named; the rest of each slot is one bucket, whose hash is the
        slot's number.
    stage, channels, slots, router
        The stage, how many channels and slots it has, and what routes: a router, or None for a table.
    decisions
        What its controller decided so far.
    ms_per_tuple
        How long the channels worked on a tuple, on average.
    keys_held
        Of how many keys there is state.
    combined
        How many tuples a row was made of before the shuffle, on average.
    """

    workload: Histograms
    stage: str
    channels: int
    slots: int
    router: str | None
    decisions: tuple[Decision, ...]
    ms_per_tuple: float
    keys_held: int
    combined: float

    def notes(self) -> tuple[str, ...]:
        """Say what is known of the query, in words."""
        moved = [decision for decision in self.decisions if decision.changes]
        first = (
            f"Stage {self.stage!r} runs on {self.channels} channels by {self.router or 'a routing table'}, holds state "
            f"of {self.keys_held:,} keys and works {1e3 * self.ms_per_tuple:.1f} µs on a tuple."
        )
        second = f"Its controller remembers {len(self.decisions)} decisions, {len(moved)} of them to move state."
        if self.decisions:
            second += f" The last: {self.decisions[-1]}"
        if self.combined > 1:
            return (
                first,
                second,
                f"Tuples are combined before the shuffle, {self.combined:.1f} to a row: rows are counted.",
            )
        return first, second


def is_checkpoint(path: str | Path) -> bool:
    """Say whether a directory is the checkpoint of a query."""
    filesystem, base = _located(str(path))
    from pyarrow import fs

    return filesystem.get_file_info(f"{base}/checkpoint.json").type == fs.FileType.File


def observe_checkpoint(path: str | Path, stage: str | None = None) -> Observed:
    """Read what a query's channels and controller left of the last batches; the query may go on meanwhile.

    Parameters
    ----------
    path
        The checkpoint: a directory, or a URI that ``pyarrow.fs`` knows.
    stage
        Which keyed stage; the first by default.
    """
    files = Files(*_located(str(path)))
    checkpoint = Checkpoint(files, files.read_document("checkpoint.json", "checkpoint")["id"])
    last = checkpoint.last_commit()
    if last is None:
        raise InvalidArgumentError(f"No batch is committed at {path} yet; there is nothing to advise on.")
    stages = last.metadata["stages"]
    chosen = next(iter(stages)) if stage is None else stage
    if chosen not in stages:
        raise UnknownNameError("stage", chosen, stages)
    facts = stages[chosen]
    table = RoutingTable.from_arrow(_stored(files, facts["files"]["table"]))
    log = DecisionLog()
    log.restore(Saved.from_arrow(_stored(files, facts["files"]["controller"])).part("decisions"))
    commits = [checkpoint.read_commit(batch) for batch in checkpoint.batches() if batch < last.batch] + [last]
    batches = [_reports(checkpoint, commit, chosen) for commit in commits]
    batches = [reports for reports in batches if reports]
    reports = [report for batch in batches for report in batch]
    rows = sum(report["rows"] for report in reports)
    return Observed(
        workload=_histograms(batches, table.slots),
        stage=chosen,
        channels=table.channels,
        slots=table.slots,
        router=facts["router"],
        decisions=tuple(log),
        ms_per_tuple=sum(report["busy_ms"] for report in reports) / max(rows, 1),
        keys_held=sum(sum(report["loads"]["held_keys"]) for report in batches[-1]),
        combined=sum(report["tuples"] for report in reports) / max(rows, 1),
    )


def _located(location: str) -> tuple[Any, str]:
    from pyarrow import fs

    if "://" in location:
        found: tuple[Any, str] = fs.FileSystem.from_uri(location)
        return found
    return fs.LocalFileSystem(), str(Path(location).absolute())


def _stored(files: Files, stored: list[Any]) -> pa.Table:
    return pa.ipc.open_stream(files.read(StoredFile(*stored))).read_all()


def _reports(checkpoint: Checkpoint, commit: Commit, stage: str) -> list[dict[str, Any]]:
    return [checkpoint.read_manifest(ref).report for ref in commit.manifests if ref.stage == stage]


def _histograms(batches: list[list[dict[str, Any]]], slots: int) -> Histograms:
    """A window per batch: the heavy keys, and what is left of each slot."""
    if slots > FOLDED:
        raise InvalidArgumentError(f"A table of {slots} slots is too fine to advise on; {FOLDED} are the most.")
    known: dict[int, int] = {}  # state of the keys that were reported so far
    parts = []
    for window, reports in enumerate(batches):
        keys, places = np.unique(_joined(reports, "keys"), return_inverse=True)  # a split key is on several channels
        key_counts, key_bytes = (
            np.bincount(places, _joined(reports, name), len(keys)).astype(np.int64)
            for name in ("key_counts", "key_bytes")
        )
        known |= dict(zip(keys.tolist(), key_bytes.tolist(), strict=True))
        counts = _by_slot(reports, "slots", "slot_counts", slots) - np.bincount(keys % slots, key_counts, slots)
        named = np.fromiter(known, np.int64, len(known))
        sizes = np.fromiter(known.values(), np.int64, len(known))
        held = _by_slot(reports, "held_slots", "held_bytes", slots) - np.bincount(named % slots, sizes, slots)
        rest = np.flatnonzero((counts > 0) | (held > 0))
        parts.append(
            pa.table(
                {
                    "window": np.full(len(keys) + len(rest), window),
                    "hash": np.concatenate([keys, rest]),
                    "count": np.concatenate([key_counts, np.maximum(counts[rest], 0).astype(np.int64)]),
                    "state_bytes": np.concatenate([key_bytes, np.maximum(held[rest], 0).astype(np.int64)]),
                }
            )
        )
    return Histograms(pa.concat_tables(parts))


def _joined(reports: list[dict[str, Any]], name: str) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *(np.array(report["loads"][name], np.int64) for report in reports)])


def _by_slot(reports: list[dict[str, Any]], names: str, values: str, slots: int) -> NDArray[np.float64]:
    return np.bincount(_joined(reports, names), _joined(reports, values), slots).astype(np.float64)
