"""Sessions: the tuples of a key with no long gap between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators.base import Update
from evenkeel.operators.durations import Duration, microseconds
from evenkeel.operators.inner import (
    MICROS,
    InEventTime,
    check_inner,
    inner_results,
    inner_state,
    regrouped,
    result_schema,
    wishes,
    with_edges,
)
from evenkeel.operators.mergeable import Mergeable, fold
from evenkeel.operators.ragged import nest, struct_column, table_of, unnest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["Sessions"]


@dataclass(frozen=True)
class Sessions(InEventTime):
    """Compute an operator for each session of a key; one final result when the watermark passes its end.

    A tuple at most ``gap`` before or after a session belongs to it; one that lies between two sessions joins them. A
    session ends ``gap`` after its last tuple, and closes when the watermark reaches that: as Spark's
    ``session_window``. A tuple whose own session, [time, time + gap), is over, and that touches none that is still
    held, neither by itself nor through others of its batch, is dropped and counted as late. (Spark drops it even if it
    touches an open session.) One without an event time is left out.

    Parameters
    ----------
    gap
        How long a key must be silent for its session to end, such as ``"30 minutes"``.
    operator
        What to compute: any mergeable operator that waits for no clock.

    Notes
    -----
    Tuples are sorted by key and time, in O(n) if they come in order within keys; then one compiled pass finds the
    sessions. A key keeps one partial state per open session, and is forgotten when it has none. Where a key is split
    over channels, a tuple whose own session is over is late even if it touches an open one, which its channel may not
    know.
    """

    name = "sessions"
    gap: Duration
    operator: Mergeable

    def __post_init__(self) -> None:
        check_inner(self.operator)
        if self._gap == 0:
            raise InvalidArgumentError("The gap must be longer than nothing.", gap=self.gap)

    @property
    def _gap(self) -> int:
        return microseconds(self.gap)

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The open sessions: their first and last event time, and the state of the operator within."""
        times = [pa.field("start", pa.int64()), pa.field("last", pa.int64())]
        return pa.schema([("sessions", pa.list_(pa.struct([*times, inner_state(self.operator, rows)])))])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """Start and end of the session, and the results of the operator within."""
        return result_schema(self.operator, rows, ("session_start", MICROS), ("session_end", MICROS))

    def last_end(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the end of the session of each tuple alone."""
        return times + self._gap

    def lift(self, groups: Groups) -> pa.Table:
        """Find the sessions of these tuples; tuples whose own sessions are over are left out."""
        rows, sessions, _ = self._sessions(groups, self.in_time(groups)[1])
        return pa.table({"sessions": nest(rows, sessions, len(groups))})

    def _sessions(
        self, groups: Groups, chosen: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], pa.Table, NDArray[np.int64]]:
        """The sessions of some tuples: their keys, themselves, and how many tuples each has."""
        from evenkeel.operators import _kernels

        assert groups.times is not None
        times, key_of = groups.times, groups.key_of
        if not chosen.all():
            times, key_of = times[chosen], key_of[chosen]
        session_of, first, last = _kernels.chain(key_of, times, times, len(groups), self._gap)
        rows = key_of[first]
        lifted = self.operator.lift(regrouped(groups, chosen, session_of, rows))
        sessions = pa.table({"start": times[first], "last": last, "state": struct_column(lifted)})
        return rows, sessions, np.bincount(session_of, minlength=len(first))

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Join the sessions of both."""
        a, b = unnest(left["sessions"]), unnest(right["sessions"])
        rows, sessions, _ = self._joined(np.concatenate([a[0], b[0]]), pa.concat_tables([a[1], b[1]]), left.num_rows)
        return pa.table({"sessions": nest(rows, sessions, left.num_rows)})

    def _joined(
        self, rows: NDArray[np.int64], sessions: pa.Table, count: int
    ) -> tuple[NDArray[np.int64], pa.Table, NDArray[np.int64]]:
        """Join sessions that touch: gives rows and sessions, sorted, and which of these each of the old became."""
        from evenkeel.operators import _kernels

        starts, last = sessions["start"].to_numpy(), sessions["last"].to_numpy()
        became, first, ends = _kernels.chain(rows, starts, last, count, self._gap)
        states = fold(self.operator, table_of(sessions["state"]), became, len(first))
        return rows[first], pa.table({"start": starts[first], "last": ends, "state": struct_column(states)}), became

    def results(self, states: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
        """What the open sessions have so far."""
        return self._results(*unnest(states["sessions"]))

    def _results(self, rows: NDArray[np.int64], sessions: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
        count = len(rows)
        results, of = inner_results(self.operator, table_of(sessions["state"]), np.arange(count), count)
        start, last = sessions["start"].to_numpy()[of], sessions["last"].to_numpy()[of]
        return with_edges("session", start, last + self._gap, results), rows[of]

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Join the sessions of the batch with those that are held, then close what is over."""
        held_rows, held = unnest(states["sessions"])
        came_rows, came, tuples = self._sessions(groups, self.in_time(groups)[0])
        every = pa.concat_tables([held, came.cast(held.schema)])
        rows, sessions, became = self._joined(np.concatenate([held_rows, came_rows]), every, len(groups))
        was_held = np.zeros(len(rows), bool)
        was_held[became[: len(held_rows)]] = True
        late = (sessions["last"].to_numpy() + self._gap <= groups.now.watermark) & ~was_held
        dropped = int(tuples[late[became[len(held_rows) :]]].sum())
        return self._close(rows[~late], sessions.filter(pa.array(~late)), groups, dropped)

    def settle(self, groups: Groups, states: pa.Table) -> Update:
        """Close the sessions that are over."""
        return self._close(*unnest(states["sessions"]), groups, 0)

    def _close(self, rows: NDArray[np.int64], sessions: pa.Table, groups: Groups, late: int) -> Update:
        ends = sessions["last"].to_numpy() + self._gap
        over = ends <= groups.now.watermark
        outputs, key_of = self._results(rows[over], sessions.filter(pa.array(over)))
        keep, wake = wishes(rows[~over], ends[~over], len(groups))
        kept = nest(rows[~over], sessions.filter(pa.array(~over)), len(groups))
        return Update(pa.table({"sessions": kept}), outputs, key_of, keep, wake, late)
