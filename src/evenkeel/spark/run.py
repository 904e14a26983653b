"""One batch of a keyed stage, and what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evenkeel.errors import CorruptDataError
from evenkeel.spark.task import REPORT
from evenkeel.state import ManifestRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from evenkeel.spark.homes import Homes
    from evenkeel.spark.task import StageTask
    from evenkeel.state import Checkpoint

__all__ = ["StageRun"]


@dataclass(slots=True)
class StageRun:
    """One batch on its way through a keyed stage: Spark runs it when somebody reads the results."""

    output: DataFrame
    """The results; if they are kept, the stage runs once, however often this is read."""
    stage: str
    batch: int
    attempts: str
    task: StageTask
    checkpoint: Checkpoint
    homes: Homes
    kept: DataFrame | None = None
    """The results with the channels' reports among them, if they are kept."""
    manifests: list[ManifestRef] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)

    @property
    def switchable_homes(self) -> list[Homes]:
        """The homes of the channels, if copies of what they hold are elsewhere."""
        return [self.homes] if self.task.stops_if_cold else []

    def finish(self) -> bool:
        """Learn what each channel reports; says whether that is certain.

        As a rule, the results have been read by now and each channel left one manifest. Where some did not run, or ran
        more than once, the report beside the results that were kept says which attempt it was that counts. If they
        were not kept, or a channel gave up, it is not certain, and the batch must run again.
        """
        found = self._written()
        if found is None and self.kept is not None:
            found = self._reported(self.kept)
        if found is None:
            return False
        self.manifests, self.reports = [ref for ref, _ in found], [report for _, report in found]
        return True

    def _written(self) -> list[tuple[ManifestRef, dict[str, Any]]] | None:
        try:
            found = self.checkpoint.manifests_of(self.stage, self.batch, self.attempts)
        except CorruptDataError:  # An attempt was ended while it wrote.
            return None
        once = [ref.channel for ref, _ in found] == list(range(self.task.table.channels))
        return [(ref, manifest.report) for ref, manifest in found] if once else None

    def _reported(self, kept: DataFrame) -> list[tuple[ManifestRef, dict[str, Any]]] | None:
        lines = kept.where(f"{REPORT} IS NOT NULL").select(REPORT).collect()
        if len(lines) < self.task.table.channels:
            return None
        refs = [ManifestRef.from_json(json.loads(line[0])) for line in lines]
        return [(ref, self.checkpoint.read_manifest(ref).report) for ref in refs]

    def release(self) -> None:
        """Give up the results that were kept."""
        if self.kept is not None:
            self.kept.unpersist()
