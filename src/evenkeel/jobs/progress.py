"""What one batch of a running job was like, as far as one wants to watch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evenkeel.control import Decision

__all__ = ["Progress", "progress_of"]


@dataclass(frozen=True, slots=True)
class Progress:
    """One batch.

    Parameters
    ----------
    batch, ms
        Its number and how long it took.
    rows, late
        Tuples that the first stage got, and those of all stages that came too late to count.
    results
        Rows that the last stage gave.
    loads
        Of each stage, the rows that each channel got.
    moved_bytes
        State that was carried between channels.
    choice, reasons
        What was decided after the batch, and why; empty while a statistics window is not over.
    """

    batch: int
    ms: float
    rows: int
    late: int
    results: int
    loads: tuple[tuple[int, ...], ...]
    moved_bytes: int
    choice: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def imbalances(self) -> tuple[float, ...]:
        """Of each stage, the rows of the fullest channel over the average; 1 where there were none."""
        return tuple(max(loads) * len(loads) / sum(loads) if sum(loads) else 1.0 for loads in self.loads)

    @property
    def imbalance(self) -> float:
        """The largest of all stages."""
        return max(self.imbalances)

    def to_json(self) -> dict[str, Any]:
        """Give the facts as plain values."""
        return {
            "batch": self.batch,
            "ms": round(self.ms, 1),
            "rows": self.rows,
            "late": self.late,
            "results": self.results,
            "imbalance": round(self.imbalance, 4),
            "moved_bytes": self.moved_bytes,
            "stages": [
                {"loads": list(loads), "imbalance": round(imbalance, 4)}
                for loads, imbalance in zip(self.loads, self.imbalances, strict=True)
            ],
            "choice": self.choice or None,
            "reasons": list(self.reasons),
        }


def progress_of(entry: dict[str, Any], decisions: Iterable[Decision]) -> Progress:
    """Make it of an entry of the query's history and the decisions, of which the last one of that batch counts."""
    stages = entry["reports"]
    made = [decision for decision in decisions if decision.batch == entry["batch"]]

    def total(reports: list[dict[str, Any]], name: str) -> int:
        return sum(report[name] for report in reports)

    return Progress(
        entry["batch"],
        entry["ms"],
        rows=total(stages[0], "tuples"),
        late=sum(total(reports, "late") for reports in stages),
        results=total(stages[-1], "results"),
        loads=tuple(tuple(report["rows"] for report in reports) for reports in stages),
        moved_bytes=sum(total(reports, "imported_bytes") for reports in stages),
        choice=made[-1].choice.value if made else "",
        reasons=made[-1].reasons if made else (),
    )
