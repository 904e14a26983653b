"""Joining two streams by key and nearness in event time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators.base import Operator, Update
from evenkeel.operators.durations import Duration, microseconds
from evenkeel.operators.groups import NEVER, NO_WATERMARK
from evenkeel.operators.ragged import kept_type, nest, one_chunk, spans, starts_of, unnest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["WindowJoin"]

Columns = Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class WindowJoin(Operator):
    """Pair each left with each right tuple of the same key that is at most ``within`` away in event time.

    Both streams come as one, told apart by a column. Each pair comes out exactly once, in the batch in which the second
    of the two arrives, in whichever order they do. Tuples older than the watermark, and those without a time, are late:
    they are counted and find no partners. Over the others, the result is that of a batch join, whatever the batches.

    Parameters
    ----------
    left, right
        The columns of each side that go into the results: names, which become ``left_…`` and ``right_…``; or a mapping
        of names to the names that they shall have.
    within
        How far apart the two tuples of a pair may be, such as ``"5 minutes"``; exactly so far is near enough.
    side
        The column that tells the streams apart: ``"left"`` or ``"right"``, or a boolean that is true for the left.

    Notes
    -----
    Tuples that can still find a partner (those within ``within`` of the watermark) are the state. Each new tuple finds
    its partners by binary search: O(n log n + pairs + kept tuples of touched keys) per batch.

    Partial states do not merge: a pair needs both of its tuples in one place.
    """

    name = "window_join"
    needs_event_time = True
    wakes_by = "event_time"

    left: Columns
    right: Columns
    within: Duration
    side: str = "side"

    def __post_init__(self) -> None:
        for given in (self.left, self.right):
            if isinstance(given, str):
                raise InvalidArgumentError(f"Columns come as a list or a mapping; got {given!r}.", columns=given)
        microseconds(self.within)
        names = [name for side in ("left", "right") for name in self._names(side).values()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidArgumentError(f"Two result columns would be called {twice[0]!r}.", column=twice[0])

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """Those of both sides, and the one that tells them apart."""
        return list(dict.fromkeys([*self._names("left"), *self._names("right"), self.side]))

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The tuples of each side that can still find a partner."""
        for name in self.columns(rows):
            if name not in rows.names:
                raise UnknownNameError("column", name, rows.names)
        kind = rows.field(self.side).type
        if not (pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise UnsupportedTypeError(
                f"Column {self.side!r} has type {kind}; to tell the sides apart it has to be text or boolean.",
                column=self.side,
            )
        return pa.schema([(side, kept_type(self._kept(side, rows))) for side in ("left", "right")])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """The chosen columns of the left, then of the right."""
        return pa.schema([field for side in ("left", "right") for field in self._kept(side, rows)[1:]])

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Find the partners of the new tuples, and keep what can still find some."""
        assert groups.times is not None
        within, watermark = microseconds(self.within), groups.now.watermark
        late = (groups.times < watermark) | (groups.times == NEVER)
        is_left = self._is_left(groups.rows)
        left = self._side("left", groups, states, is_left & ~late)
        right = self._side("right", groups, states, ~is_left & ~late)
        # Pairs of a new left with any right, and of a new right with a left kept from before.
        lefts, rights = left.select(left.new).pairs(right, within)
        new_rights, old_lefts = right.select(right.new).pairs(left.select(~left.new), within)
        lefts = np.concatenate([np.flatnonzero(left.new)[lefts], np.flatnonzero(~left.new)[old_lefts]])
        rights = np.concatenate([rights, np.flatnonzero(right.new)[new_rights]])
        columns = [*left.rows.take(pa.array(lefts)).columns[1:], *right.rows.take(pa.array(rights)).columns[1:]]

        # A new tuple is never older than the watermark: what is further behind that than `within` finds no partner.
        oldest = watermark if watermark == NO_WATERMARK else watermark - within
        left_kept, right_kept = left.select(left.times >= oldest), right.select(right.times >= oldest)
        newest = np.full(len(groups), NO_WATERMARK)
        for kept in (left_kept, right_kept):
            np.maximum.at(newest, kept.key_of, kept.times)
        holds = newest != NO_WATERMARK
        return Update(
            pa.table([left_kept.as_state(), right_kept.as_state()], schema=states.schema),
            pa.table(columns, schema=self.output_schema(groups.rows.schema)),
            left.key_of[lefts],
            keep=holds,
            wake=np.where(holds, newest + within + 1, NEVER),
            late=int(late.sum()),
        )

    def _names(self, side: str) -> dict[str, str]:
        columns: Columns = self.left if side == "left" else self.right
        return dict(columns) if isinstance(columns, Mapping) else {name: f"{side}_{name}" for name in columns}

    def _kept(self, side: str, rows: pa.Schema) -> list[pa.Field]:
        """The event time, and the columns by the names of the results."""
        columns = [pa.field(called, rows.field(name).type) for name, called in self._names(side).items()]
        return [pa.field("@time", pa.int64()), *columns]

    def _is_left(self, rows: pa.Table) -> NDArray[np.bool_]:
        side = one_chunk(rows[self.side])
        if not pa.types.is_boolean(side.type):
            wrong = pc.invert(pc.is_in(side, pa.array(["left", "right"], side.type)))
            if pc.any(wrong).as_py():
                value = side.filter(wrong)[0].as_py()
                raise InvalidArgumentError(
                    f"Column {self.side!r} says {value!r}; allowed are 'left' and 'right'.", column=self.side
                )
            side = pc.equal(side, "left")
        elif side.null_count:
            raise InvalidArgumentError(f"Column {self.side!r} has a null; it is true or false.", column=self.side)
        return side.to_numpy(zero_copy_only=False)

    def _side(self, side: str, groups: Groups, states: pa.Table, chosen: NDArray[np.bool_]) -> _Side:
        """One side's kept and new tuples, sorted by key and time."""
        owners, kept = unnest(states[side])
        columns = [pa.array(groups.times), *(groups.rows[name] for name in self._names(side))]
        came = pa.table(columns, schema=kept.schema).filter(pa.array(chosen))
        key_of = np.concatenate([owners, groups.key_of[chosen]])
        rows = pa.concat_tables([kept, came])
        order = np.lexsort((rows["@time"].to_numpy(), key_of))
        return _Side(rows.take(pa.array(order)), key_of[order], order >= len(kept), len(groups))


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """Tuples of one side, sorted by key and time, and which of them are new."""

    rows: pa.Table
    key_of: NDArray[np.int64]
    new: NDArray[np.bool_]
    keys: int

    @property
    def times(self) -> NDArray[np.int64]:
        return self.rows["@time"].to_numpy()

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.bincount(self.key_of, minlength=self.keys)

    def select(self, chosen: NDArray[np.bool_]) -> _Side:
        return _Side(self.rows.filter(pa.array(chosen)), self.key_of[chosen], self.new[chosen], self.keys)

    def pairs(self, other: _Side, within: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every pair of a tuple of this side and one of the other: their positions."""
        from evenkeel.operators import _kernels_join

        first, count = _kernels_join.ranges_within(
            self.key_of, self.times, within, starts_of(other.counts), other.times
        )
        return np.repeat(np.arange(len(self.key_of)), count), spans(first, count)

    def as_state(self) -> pa.Array:
        return nest(self.key_of, self.rows, self.keys)
