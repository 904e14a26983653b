"""A buffer before an operator that brings each key's tuples into event-time order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, KeyFailedError
from evenkeel.operators.base import Operator, Update
from evenkeel.operators.groups import NEVER, NO_WATERMARK, Groups
from evenkeel.operators.ragged import keep_rows, kept_type, spans, starts_of, unnest

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Overflow", "Reordered"]

Overflow = Literal["emit_oldest", "error", "drop_newest"]


@dataclass(frozen=True)
class Reordered(Operator):
    """Give an operator each key's tuples in event-time order, across batches; ties in the order of arrival.

    A tuple waits in its key's buffer until the watermark reaches its time. One that comes when the watermark is past
    its time already, or that has no time, is late: it is counted, and the operator never sees it.

    Parameters
    ----------
    operator
        What gets the ordered tuples. Its results are the results.
    bound
        How many tuples of one key may wait.
    overflow
        What becomes of those beyond ``bound`` when a batch ends: ``"emit_oldest"`` gives the operator the oldest before
        their time (what comes later and is older than they are, is late); ``"drop_newest"`` drops the newest, counted
        as late; ``"error"`` stops the query and names the key.
    overflowed
        If given, the name of one more result column: how many tuples of the key were emitted before their time, or
        dropped, for want of room so far.

    Notes
    -----
    One sort of the touched keys' waiting and new tuples: O(n log n) per batch. The state of a key is its waiting tuples
    and the operator's own. The operator works one batch behind the watermark, so that no tuple which it is given is
    late for it: its watermark is the oldest time given to it, if that is older than the stream's.

    The buffer is the fixed-size, sorted cache of FTLB (§3.1.2), with the watermark to say how long to wait.
    """

    name = "reordered"
    needs_event_time = True
    wakes_by = "event_time"

    operator: Operator
    bound: int = 10_000
    overflow: Overflow = "emit_oldest"
    overflowed: str | None = None

    def __post_init__(self) -> None:
        if self.bound < 1:
            raise InvalidArgumentError(f"The bound of a buffer is at least 1; got {self.bound}.", bound=self.bound)
        if self.overflow not in get_args(Overflow):
            raise InvalidArgumentError(
                f"overflow is one of {', '.join(get_args(Overflow))}; got {self.overflow!r}.", overflow=self.overflow
            )
        if self.operator.wakes_by not in {None, "event_time"}:
            raise InvalidArgumentError(
                f"{self.operator.name} is called by the clock {self.operator.wakes_by!r}, but behind a reorder buffer "
                "there is only event time.",
                operator=self.operator.name,
            )

    def columns(self, rows: pa.Schema) -> list[str]:
        """Those of the operator."""
        return self.operator.columns(rows)

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The waiting tuples, what happened to the buffer, and the operator's own state."""
        inner = self.operator.state_schema(rows)
        waiting = [("time", pa.int64()), *((f"column_{name}", rows.field(name).type) for name in self.columns(rows))]
        return pa.schema(
            [
                ("waiting", kept_type(pa.field(*field) for field in waiting)),
                ("forced_until", pa.int64()),
                ("overflowed", pa.int64()),
                ("inner_known", pa.bool_()),
                ("inner_wake", pa.int64()),
                *((f"inner_{field.name}", field.type) for field in inner),
            ]
        )

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """Those of the operator, and the count of tuples for which there was no room, if it has a name."""
        inner = self.operator.output_schema(rows)
        return inner if self.overflowed is None else inner.append(pa.field(self.overflowed, pa.int64()))

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Sort what waits and what came, and give the operator what is due."""
        assert groups.times is not None
        forced_until = _numbers(states["forced_until"], NO_WATERMARK)
        floor = np.maximum(forced_until, groups.now.watermark)
        late = (groups.times < floor[groups.key_of]) | (groups.times == NEVER)
        owners, waiting = unnest(states["waiting"])
        came = self._as_waiting(groups, waiting.schema)
        key_of = np.concatenate([owners, groups.key_of[~late]])
        rows = pa.concat_tables([waiting, came.filter(pa.array(~late))])
        times = rows["time"].to_numpy()
        order = np.lexsort((times, key_of))
        times, key_of = times[order], key_of[order]

        counts = np.bincount(key_of, minlength=len(groups))
        starts = starts_of(counts)[:-1]
        due = np.bincount(key_of[times <= groups.now.watermark], minlength=len(groups))
        excess = np.maximum(counts - due - self.bound, 0)
        given, dropped = due, np.zeros_like(due)
        if excess.any():
            if self.overflow == "error":
                self._refuse(groups, counts - due)
            elif self.overflow == "emit_oldest":
                given = due + excess
                newest = times[(starts + given - 1)[excess > 0]]
                forced_until[excess > 0] = np.maximum(forced_until[excess > 0], newest)
            else:
                dropped = excess
        left = counts - given - dropped
        out = spans(starts, given)
        inner, called, inner_known = self._inner(groups, states, rows.take(order[out]), key_of[out], times[out])

        inner_states, inner_wake = self._inner_states(states, inner, called, inner_known)
        first = np.full(len(groups), NEVER)
        first[left > 0] = times[(starts + given)[left > 0]]
        held = forced_until > groups.now.watermark
        overflowed = _numbers(states["overflowed"], 0) + excess
        columns = {
            "waiting": keep_rows(rows.take(order[spans(starts + given, left)]), left),
            "forced_until": forced_until,
            "overflowed": overflowed,
            "inner_known": inner_known,
            "inner_wake": inner_wake,
        }
        key_of_outputs = called if inner.key_of_outputs is None else called[inner.key_of_outputs]
        outputs = inner.outputs
        if self.overflowed is not None:
            outputs = outputs.append_column(self.overflowed, pa.array(overflowed[key_of_outputs]))
        return Update(
            pa.table([*(pa.array(c) for c in columns.values()), *inner_states.columns], schema=states.schema),
            outputs,
            key_of_outputs,
            keep=inner_known | (left > 0) | held,
            wake=np.minimum(np.minimum(first, inner_wake), np.where(held, forced_until, NEVER)),
            late=int(late.sum() + dropped.sum()) + inner.late,
        )

    def _as_waiting(self, groups: Groups, schema: pa.Schema) -> pa.Table:
        columns = [groups.rows[name] for name in self.columns(groups.rows.schema)]
        return pa.table([pa.array(groups.times), *columns], schema=schema)

    def _refuse(self, groups: Groups, waiting: NDArray[np.int64]) -> None:
        fullest = int(waiting.argmax())
        key = tuple(groups.keys.slice(fullest, 1).to_pylist()[0].values())
        raise KeyFailedError(
            f"{waiting[fullest]} tuples wait to be put in order, but the buffer's bound is {self.bound}. Raise the "
            "bound, shorten the watermark's delay, or choose another overflow policy.",
            key=key,
        )

    def _inner(
        self,
        groups: Groups,
        states: pa.Table,
        rows: pa.Table,
        key_of: NDArray[np.int64],
        times: NDArray[np.int64],
    ) -> tuple[Update, NDArray[np.int64], NDArray[np.bool_]]:
        """Call the operator for the keys that have tuples now, or that wished to be called by now."""
        watermark = min(groups.now.watermark, int(times.min())) if len(times) else groups.now.watermark
        known = pc.fill_null(states["inner_known"], False).to_numpy()
        has_rows = np.zeros(len(groups), bool)
        has_rows[key_of] = True
        wishes = ~has_rows & known & (_numbers(states["inner_wake"], NEVER) <= watermark)
        with_rows = np.flatnonzero(has_rows)
        by_hash = np.lexsort((groups.hashes2[with_rows], groups.hashes[with_rows]))
        called = np.concatenate([with_rows[by_hash], np.flatnonzero(wishes)])
        place = np.full(len(groups), -1)
        place[called] = np.arange(len(called))

        kept = dict(zip(self.columns(groups.rows.schema), rows.columns[1:], strict=True))
        keys = groups.keys.take(pa.array(key_of))
        columns = kept | {name: keys[name] for name in keys.column_names if name not in kept}
        names = [name for name in groups.rows.column_names if name in columns]
        inner_groups = Groups(
            pa.table({name: columns[name] for name in names}),
            groups.keys.take(pa.array(called)),
            groups.hashes[called],
            groups.hashes2[called],
            place[key_of],
            times,
            replace(groups.now, watermark=watermark),
        )
        inner = self.operator.update(inner_groups, self._own(states).take(pa.array(called)), known[called])
        known = known.copy()
        known[called] = True if inner.keep is None else inner.keep
        return inner, called, known

    def _inner_states(
        self, states: pa.Table, inner: Update, called: NDArray[np.int64], inner_known: NDArray[np.bool_]
    ) -> tuple[pa.Table, NDArray[np.int64]]:
        """Give the operator's states of all keys after the call, and when each wants to be called."""
        wake = _numbers(states["inner_wake"], NEVER)
        wake[called] = NEVER if inner.wake is None else inner.wake
        wake[~inner_known] = NEVER
        place = np.arange(states.num_rows)
        place[called] = states.num_rows + np.arange(len(called))
        own = self._own(states)
        both = pa.concat_tables([own, inner.states.select(own.column_names).cast(own.schema)])
        return both.take(pa.array(place, mask=~inner_known)), wake

    @staticmethod
    def _own(states: pa.Table) -> pa.Table:
        """The operator's columns of the states, under its own names."""
        own = states.drop_columns(["waiting", "forced_until", "overflowed", "inner_known", "inner_wake"])
        return own.rename_columns([name.removeprefix("inner_") for name in own.column_names])


def _numbers(column: pa.ChunkedArray, missing: int) -> NDArray[np.int64]:
    return pc.fill_null(column, missing).to_numpy().astype(np.int64)
