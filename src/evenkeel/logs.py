"""What a running query tells: log records, and the numbers of each batch under the names of the metrics.

All records go to the logger ``evenkeel``, which has no handler of its own. Each has its facts as attributes, of which
``event`` says what happened; none has a key in it.

========== ========= ===========================================================================================
event      level     facts
========== ========= ===========================================================================================
resume     INFO      batch
batch      INFO      batch, stage, rows, ms, imbalance, moved_bytes, choice
decision   INFO      batch, stage, choice, reasons, planner, channels, next_channels, predicted, state_bytes;
                     a WARNING if state was lost and recovered, DEBUG if all stays as it is
rerun      WARNING   batch, reason
========== ========= ===========================================================================================
"""

from __future__ import annotations

import itertools
import json
import logging
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from evenkeel.metrics import skewness

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evenkeel.control import Decision
    from evenkeel.routing import RoutingTable

__all__ = ["LOGGER", "JsonFormatter", "StageTeller", "show_logs", "tell"]

LOGGER = logging.getLogger("evenkeel")
LOGGER.addHandler(logging.NullHandler())

_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime"}
_LEVELS = {"stay": logging.DEBUG, "recover": logging.WARNING}
_TEXT = "%(asctime)s %(levelname)s %(message)s"
_SUMMED = {
    "evenkeel_rows_total": "rows",
    "evenkeel_tuples_total": "tuples",
    "evenkeel_late_tuples_total": "late",
    "evenkeel_results_total": "results",
    "evenkeel_moved_state_bytes_total": "imported_bytes",
}


def tell(event: str, message: str, level: int = logging.INFO, **facts: Any) -> None:
    """Log what happened, in words and with its facts."""
    LOGGER.log(level, message, extra={"event": event, **facts}, stacklevel=2)


class StageTeller:
    """Tells of one stage, batch by batch.

    Parameters
    ----------
    stage
        Its name.
    decisions
        Those that were made before, and are not told again.
    """

    def __init__(self, stage: str, decisions: Iterable[Decision]) -> None:
        self.stage = stage
        self._told = _identity(list(decisions)[-1:])
        self._totals: Counter[str] = Counter()
        self._skewness = 1.0

    def tell_decisions(self, decisions: Iterable[Decision]) -> None:
        """Log the decisions that came since the last time."""
        newest_first = reversed(list(decisions))
        new = list(itertools.takewhile(lambda decision: _identity([decision]) != self._told, newest_first))
        self._told = _identity(new[:1]) or self._told
        for decision in reversed(new):
            choice = decision.choice.value
            tell(
                "decision",
                f"batch {decision.batch}, {self.stage}: {choice}. {' '.join(decision.reasons)}",
                _LEVELS.get(choice, logging.INFO),
                batch=decision.batch,
                stage=self.stage,
                choice=choice,
                reasons=list(decision.reasons),
                planner=decision.planner,
                channels=decision.channels,
                next_channels=decision.next_channels,
                predicted=decision.predicted,
                state_bytes=decision.state_bytes,
            )

    def tell_batch(
        self, batch: int, took_ms: float, reports: Sequence[dict[str, Any]], table: RoutingTable, choice: str
    ) -> dict[str, float]:
        """Log a batch, and give its numbers; those that end in ``_total`` count from when the query was started.

        Parameters
        ----------
        batch, took_ms
            The batch, and how long it took in all stages.
        reports
            What each channel reported.
        table
            The routing table that was in force.
        choice
            What was decided after it.
        """
        rows = [report["rows"] for report in reports]
        if any(rows):
            self._skewness = skewness(rows)
        sums = {name: sum(report[part] for report in reports) for name, part in _SUMMED.items()}
        cold = sum(report["opened"] == "rebuilt" for report in reports)
        self._totals.update({**sums, "evenkeel_batches_total": 1, "evenkeel_cold_openings_total": cold})
        moved_bytes, imbalance = sums["evenkeel_moved_state_bytes_total"], skewness(rows)
        tell(
            "batch",
            f"batch {batch}, {self.stage}: {sum(rows):,} rows in {took_ms:,.0f} ms, imbalance {imbalance:.2f}, "
            f"{moved_bytes:,} bytes moved, {choice}",
            batch=batch,
            stage=self.stage,
            rows=sum(rows),
            ms=round(took_ms, 1),
            imbalance=round(imbalance, 4),
            moved_bytes=moved_bytes,
            choice=choice,
        )
        return {
            "evenkeel_skewness": self._skewness,
            "evenkeel_channels": len(reports),
            "evenkeel_table_epoch": table.epoch,
            "evenkeel_table_pins": len(table.pin_hashes),
            "evenkeel_table_split_keys": len(table.split_hashes),
            "evenkeel_state_bytes": sum(sum(report["loads"]["held_bytes"]) for report in reports),
            "evenkeel_state_keys": sum(sum(report["loads"]["held_keys"]) for report in reports),
            "evenkeel_busiest_channel_seconds": max(report["busy_ms"] for report in reports) / 1000,
            **self._totals,
        }


def _identity(decision: Sequence[Decision]) -> tuple[Any, ...]:
    """What a decision is known by, also after it was filled in; nothing for none."""
    return tuple((one.number, one.batch, one.time, one.choice) for one in decision)


class JsonFormatter(logging.Formatter):
    """One line of JSON for each record: time, level, message and facts."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record as JSON."""
        when = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        facts = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        line = {"time": when, "level": record.levelname, "message": record.getMessage(), **facts}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def show_logs(form: Literal["text", "json"], stream: Any = None) -> None:
    """Write the records of a query to a stream, standard error by default: one line each.

    A program that has a logging of its own does not need this: the logger ``evenkeel`` passes its records on.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(_TEXT))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
