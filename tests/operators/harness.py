"""A tiny engine in memory: it keeps states by key as bytes, wakes keys, moves the watermark and joins split keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.operators import NEVER, NO_WATERMARK, Groups, Mergeable, Moment, RowCodec, fold
from evenkeel.state import both_hashes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenkeel.operators import Operator, Update

Key = tuple[Any, ...]
END = NEVER - 1
"""A watermark at which every window is over."""


@dataclass
class Outcome:
    """What a run leaves: the states and wishes of keys, and all results in order, each with its key."""

    states: dict[Key, dict[str, Any]] = field(default_factory=dict)
    outputs: list[tuple[Key, dict[str, Any]]] = field(default_factory=list)
    late: int = 0
    wakes: dict[Key, int] = field(default_factory=dict)

    def of(self, *key: Any) -> list[dict[str, Any]]:
        """The results of one key."""
        return [row for k, row in self.outputs if k == key]

    def last(self) -> dict[Key, dict[str, Any]]:
        """The last result of each key."""
        return dict(self.outputs)


def groups_of(
    rows: pa.Table, key: Sequence[str] = ("key",), event_time: str | None = None, now: Moment | None = None
) -> Groups:
    """Group tuples as the engine does."""
    columns = [rows[name] for name in key]
    times = None if event_time is None else microseconds_of(rows[event_time])
    return Groups.of(rows, key, *both_hashes(*columns), times=times, now=now)


def microseconds_of(column: pa.ChunkedArray) -> np.ndarray:
    """Event times as the engine hands them over."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column.cast(pa.int64()).fill_null(NEVER).to_numpy()


class Stage:
    """One keyed stage: states as bytes from batch to batch."""

    def __init__(self, operator: Operator, rows: pa.Schema, key: Sequence[str]) -> None:
        self.operator = operator
        self.schema, self.output_schema = operator.state_schema(rows), operator.output_schema(rows)
        self.codec, self.key_schema = RowCodec(self.schema), pa.schema([rows.field(name) for name in key])
        self.bytes: dict[Key, bytes] = {}
        self.outcome = Outcome()

    def with_due(self, groups: Groups) -> Groups:
        """Add the keys that wanted to be called by now."""
        clocks = {"event_time": groups.now.watermark, "batch": groups.now.batch, "time": groups.now.time}
        there = {tuple(row.values()) for row in groups.keys.to_pylist()}
        due = [
            key
            for key, wake in self.outcome.wakes.items()
            if self.operator.wakes_by and wake <= clocks[self.operator.wakes_by] and key not in there
        ]
        keys = pa.Table.from_pylist(
            [dict(zip(self.key_schema.names, key, strict=True)) for key in due], self.key_schema
        )
        return groups.and_keys(keys, *both_hashes(*keys.columns)) if due else groups

    def states(self, groups: Groups) -> tuple[list[Key], pa.Table]:
        """The states of a batch's keys, nulls where there is none."""
        keys = [tuple(row.values()) for row in groups.keys.to_pylist()]
        return keys, self.codec.decode(pa.array([self.bytes.get(key) for key in keys], pa.large_binary()))

    def apply(self, keys: list[Key], update: Update) -> None:
        """Keep what an update gives, after a look at whether it is what was declared."""
        assert update.states.schema.equals(self.schema), f"{update.states.schema}\nis not\n{self.schema}"
        assert update.outputs.schema.equals(self.output_schema), f"{update.outputs.schema}\nis not {self.output_schema}"
        assert update.states.num_rows == len(keys)
        assert update.late >= 0
        update.states.validate(full=True)
        update.outputs.validate(full=True)
        encoded = self.codec.encode(update.states).to_pylist()
        keep = [True] * len(keys) if update.keep is None else update.keep.tolist()
        wake = [NEVER] * len(keys) if update.wake is None else update.wake.tolist()
        assert self.operator.wakes_by or set(wake) <= {NEVER}, "a wish without a clock"
        for key, state, kept, at, shown in zip(keys, encoded, keep, wake, update.states.to_pylist(), strict=True):
            for held in (self.bytes, self.outcome.states, self.outcome.wakes):
                held.pop(key, None)
            if kept:
                self.bytes[key], self.outcome.states[key] = state, shown
            if kept and at != NEVER:
                self.outcome.wakes[key] = at
        key_of = range(len(keys)) if update.key_of_outputs is None else update.key_of_outputs.tolist()
        rows = update.outputs.to_pylist()
        self.outcome.outputs += [(keys[i], row) for i, row in zip(key_of, rows, strict=True)]
        self.outcome.late += update.late


def moments(batches: list[pa.Table], event_time: str | None, delay: int, flush: bool) -> list[tuple[pa.Table, Moment]]:
    """Each batch and its moment; ``flush`` adds an empty batch at the end of time."""
    watermark, found = NO_WATERMARK, []
    for number, rows in enumerate(batches):
        found.append((rows, Moment(number, watermark, 1_000_000 * number)))
        if event_time is not None:
            times = microseconds_of(rows[event_time])
            times = times[times != NEVER]
            watermark = max(watermark, int(times.max()) - delay) if len(times) else watermark
    if flush:
        found.append((batches[0].slice(0, 0), Moment(len(batches), END, END)))
    return found


def run(
    operator: Operator,
    batches: list[pa.Table],
    key: Sequence[str] = ("key",),
    event_time: str | None = None,
    delay: int = 0,
    *,
    flush: bool = False,
) -> Outcome:
    """Play a stream through one channel."""
    assert batches, "a stream has at least one batch, though perhaps an empty one"
    schema = batches[0].schema
    stage = Stage(operator, schema, key)
    seen = [*key, *(name for name in operator.columns(schema) if name not in key)]
    for rows, now in moments(batches, event_time, delay, flush):
        whole = groups_of(rows, key, event_time, now)
        groups = Groups(
            whole.rows.select(seen), whole.keys, whole.hashes, whole.hashes2, whole.key_of, whole.times, now
        )
        groups = stage.with_due(groups)
        keys, states = stage.states(groups)
        known = np.array([key in stage.bytes for key in keys], bool)
        stage.apply(keys, operator.update(groups, states, known))
    return stage.outcome


def run_split(
    operator: Mergeable,
    batches: list[pa.Table],
    key: Sequence[str] = ("key",),
    event_time: str | None = None,
    delay: int = 0,
    *,
    channels: int = 2,
    every: int = 1,
    seed: int = 0,
    flush: bool = False,
) -> Outcome:
    """Play a stream through several channels per key, which hand partial states on to a merge stage.

    The merge stage sees the watermark of the first batch whose tuples are in what it gets, since tuples of that batch
    may still count for windows that are over by now.
    """
    rng = np.random.default_rng(seed)
    schema = batches[0].schema
    stage = Stage(operator, schema, key)
    partial: list[tuple[pa.Table, Groups]] = []
    since: Moment | None = None
    rounds = moments(batches, event_time, delay, flush)
    for number, (rows, now) in enumerate(rounds):
        since = since or now
        dealt = rng.integers(channels, size=rows.num_rows)
        for channel in range(channels):
            groups = groups_of(rows.filter(pa.array(dealt == channel)), key, event_time, now)
            partial.append((operator.lift(groups), groups))
        if (number + 1) % every and number + 1 < len(rounds):
            continue
        keys = pa.concat_tables([groups.keys for _, groups in partial])
        handed = groups_of(keys, key, now=Moment(now.batch, since.watermark, now.time))
        folded = fold(operator, pa.concat_tables([lifted for lifted, _ in partial]), handed.key_of, len(handed))
        with_due = stage.with_due(handed)
        padding = pa.Table.from_pylist([{}] * (len(with_due) - len(handed)), stage.schema)
        names, states = stage.states(with_due)
        stage.apply(names, operator.settle(with_due, operator.merge(states, pa.concat_tables([folded, padding]))))
        partial, since = [], None
    return stage.outcome
