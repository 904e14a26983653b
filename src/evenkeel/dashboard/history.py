"""A stage as far as it was read: its last batch, and what is kept of those before."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evenkeel.dashboard.movements import Movement

if TYPE_CHECKING:
    from evenkeel.control import Decision, DecisionLog
    from evenkeel.dashboard.batches import StageBatch
    from evenkeel.routing import RoutingTable

__all__ = ["StageHistory", "Summary"]

_KEPT_BATCHES, _KEPT_MOVEMENTS = 1000, 50


@dataclass(frozen=True, slots=True)
class Summary:
    """What is kept of a batch when the next one has come."""

    batch: int
    ended: float | None
    took_ms: float | None
    busiest_ms: float
    rows: int
    skewness: float
    state_bytes: int
    moved_bytes: int
    moved_items: int
    cold: int
    late: int
    epoch: int
    channels: int


@dataclass(slots=True)
class StageHistory:
    """A stage as far as it was read.

    Parameters
    ----------
    name
        The stage.
    last, loaded
        The last batch, and the last one in which anything came.
    table, following
        The tables of the last batch and of the next one, where they could be read.
    facts
        What else the last commit says of the stage: router, splits, watermark.
    summaries, movements
        Of the batches read so far, oldest first.
    decisions
        Those that the controller remembers, oldest first.
    totals
        Sums over all batches read so far; ``("choice", …)`` and ``("items", …)`` count decisions and moved items.
    """

    name: str
    last: StageBatch | None = None
    loaded: StageBatch | None = None
    table: RoutingTable | None = None
    following: RoutingTable | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    summaries: deque[Summary] = field(default_factory=lambda: deque(maxlen=_KEPT_BATCHES))
    movements: deque[Movement] = field(default_factory=lambda: deque(maxlen=_KEPT_MOVEMENTS))
    decisions: tuple[Decision, ...] = ()
    totals: Counter[str | tuple[str, str]] = field(default_factory=Counter)

    def take(self, batch: StageBatch, facts: dict[str, Any], tables: tuple[RoutingTable | None, ...]) -> None:
        """Go on by one batch."""
        table, following = tables
        movement = None
        if table is not None and self.table is not None and table.epoch != self.table.epoch:
            movement = Movement.between(self.table, table, batch.batch)
            self.movements.append(movement)
        self.last, self.facts, self.table, self.following = batch, facts, table, following
        if batch.rows.any() or self.loaded is None:
            self.loaded = batch
        moved = movement.items if movement else {}
        self.summaries.append(
            Summary(
                batch.batch,
                batch.ended,
                batch.took_ms,
                float(batch.busy_ms.max()),
                int(batch.rows.sum()),
                batch.skewness,
                int(batch.state_bytes.sum()),
                int(batch.imported_bytes.sum()),
                sum(moved.values()),
                batch.cold,
                batch.late,
                -1 if table is None else table.epoch,
                len(batch.channels),
            )
        )
        self.totals.update({("items", action): number for action, number in moved.items()})
        self.totals.update(
            batches=1,
            rows=int(batch.rows.sum()),
            tuples=int(batch.tuples.sum()),
            late=batch.late,
            results=batch.results,
            moved_bytes=int(batch.imported_bytes.sum()),
            cold=batch.cold,
        )

    def take_decisions(self, log: DecisionLog) -> None:
        """Put the controller's log in the place of the one before."""
        known = self.decisions[-1].number if self.decisions else -1
        self.totals.update(("choice", decision.choice.value) for decision in log if decision.number > known)
        self.decisions = tuple(log)
