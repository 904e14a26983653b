"""Row patterns over the events of many keys, and what alerts tell about the matched ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators.cep.expressions import Events, as_mask, evaluate_column
from evenkeel.operators.cep.row_patterns import Program, compile_pattern
from evenkeel.operators.cep.syntax import DIALECT, columns_of, parse_expression, walk
from evenkeel.operators.cep.windows import AGGREGATES, Timeline, aggregate
from evenkeel.operators.durations import microseconds
from evenkeel.operators.ragged import after, keep_rows, kept_of, kept_type, one_chunk, spans, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.cep.rules import PatternRule

__all__ = ["Found", "Matcher"]

_ENDS = {"first": "firstvalue", "last": "lastvalue"}


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a batch brought: alerts, and what is still sought, to be kept with each key.

    Parameters
    ----------
    measures, key_of, times
        The alerts' columns, keys and times.
    states
        The state columns.
    seeking, since
        The keys in which a match is in the making, and the times of the events from which it is sought.
    """

    measures: dict[str, pa.Array]
    key_of: NDArray[np.int64]
    times: NDArray[np.int64]
    states: list[pa.Array]
    seeking: NDArray[np.int64]
    since: NDArray[np.int64]


class Matcher:
    """A pattern rule at work.

    Parameters
    ----------
    rule
        What to look for.
    """

    def __init__(self, rule: PatternRule) -> None:
        self.rule = rule
        self.program: Program = compile_pattern(rule.pattern)
        self.within = -1 if rule.within is None else microseconds(rule.within)
        # What has to be kept of an event, so that measures can be told once it is matched.
        self.arguments = sorted({_bare(part) for text in rule.measures.values() for part in _measured(text)} - {"*"})

    def columns(self) -> set[str]:
        """The columns that measures look at."""
        return set().union(*(columns_of(parse_expression(text)) for text in self.arguments))

    def kinds(self, rows: pa.Table) -> list[pa.DataType]:
        """The types of the state columns: events of a match in the making, live states, and the best so far."""
        kept = self._kept(Events(rows), np.empty(0, np.int64), np.empty(0, np.int64))
        return [kept_type(kept.schema), pa.list_(pa.int16()), pa.int64()]

    def masks(self, scope: Events) -> NDArray[np.int64]:
        """Which variables each event may stand for, one bit each."""
        bits = np.zeros(len(scope), np.int64)
        for number, variable in enumerate(self.program.variables):
            text = self.rule.define.get(variable, "TRUE")
            bits |= np.asarray(as_mask(parse_expression(text), scope)).astype(np.int64) << number
        return bits

    def find(
        self,
        scope: Events,
        key_of: NDArray[np.int64],
        times: NDArray[np.int64],
        states: list[pa.ChunkedArray],
        watermark: int,
    ) -> Found:
        """Look at a batch's events, which lie key after key and in order."""
        from evenkeel.operators.cep import _kernels_patterns

        keys = len(states[0])
        waiting, before = kept_of(states[0])
        new = np.bincount(key_of, minlength=keys)
        came = self._kept(scope, self.masks(scope), times).cast(before.schema)
        rows, starts = after(before, came, waiting, new)
        lives = one_chunk(states[1])
        live_counts = np.asarray(lives.value_lengths().fill_null(0)).astype(np.int64)
        automaton = (self.program.variable_of, self.program.next_starts, self.program.next_states)
        masks, all_times = np.asarray(one_chunk(rows["mask"])), np.asarray(one_chunk(rows["time"]))
        matches, sought, best, live_starts, live = _kernels_patterns.find_matches(
            masks,
            all_times,
            starts,
            waiting,
            np.asarray(one_chunk(states[2].fill_null(0))),
            starts_of(live_counts),
            np.asarray(lives.flatten()).astype(np.int64),
            *automaton,
            self.within,
            watermark,
            self.rule.skip == "to next row",
        )
        variables = _kernels_patterns.classify(masks, matches, *automaton)
        left = starts[1:] - sought
        seeking = np.flatnonzero(left)
        return Found(
            self._measures(rows, matches, variables),
            np.searchsorted(starts, matches[:, 0], side="right") - 1,
            all_times[matches.sum(axis=1) - 1],
            [
                keep_rows(rows.take(pa.array(spans(sought, left))), left),
                pa.ListArray.from_arrays(pa.array(live_starts, pa.int32()), pa.array(live, pa.int16())),
                pa.array(best),
            ],
            seeking,
            all_times[sought[seeking]],
        )

    def _kept(self, scope: Events, masks: NDArray[np.int64], times: NDArray[np.int64]) -> pa.Table:
        arguments = [evaluate_column(parse_expression(text), scope) for text in self.arguments]
        names = [f"value_{i}" for i in range(len(arguments))]
        return pa.table([pa.array(times), pa.array(masks), *arguments], names=["time", "mask", *names])

    def _measures(
        self, rows: pa.Table, matches: NDArray[np.int64], variables: NDArray[np.int64]
    ) -> dict[str, pa.Array]:
        matched = _Matched(self, rows, matches, variables)
        return {name: evaluate_column(parse_expression(text), matched) for name, text in self.rule.measures.items()}


class _Matched:
    """The matches as rows: columns and aggregates are over the events of each."""

    def __init__(
        self, matcher: Matcher, rows: pa.Table, matches: NDArray[np.int64], variables: NDArray[np.int64]
    ) -> None:
        self.matcher, self.rows, self.variables = matcher, rows, variables
        self.match_of = np.repeat(np.arange(len(matches)), matches[:, 1])
        self.events = spans(matches[:, 0], matches[:, 1])
        self.matches = len(matches)

    def __len__(self) -> int:
        return self.matches

    def find(self, node: Any) -> pa.Array | None:
        if node.key == "column":
            return self._over(node, "lastvalue")
        if node.key in _ENDS or node.key in AGGREGATES:
            return self._over(node.this, _ENDS.get(node.key, node.key))
        return None

    def _over(self, argument: Any, function: str) -> pa.Array:
        chosen = np.ones(len(self.events), bool)
        named = {part.table for part in walk(argument, "column")}
        if len(named) > 1:
            raise InvalidArgumentError(f"This looks at events of more than one variable: {argument.sql(DIALECT)}")
        if any(named):
            chosen = self.variables == self.matcher.program.variables.index(named.pop())
        counts = np.bincount(self.match_of[chosen], minlength=self.matches)
        if argument.key == "star" or argument.name == "*":
            return pa.array(counts)
        items = one_chunk(self.rows[f"value_{self.matcher.arguments.index(_bare(argument))}"])
        starts, every = starts_of(counts), np.arange(self.matches)
        timeline = Timeline(starts, np.zeros(self.matches, np.int64), every, starts[:-1])
        bounds = np.stack([starts[:-1], starts[1:]])
        return aggregate(function, items.take(pa.array(self.events[chosen])), timeline, bounds)


def _measured(text: str) -> list[Any]:
    """The parts of a measure that look at events: arguments of aggregates, and columns outside of them."""
    found, stack = [], [parse_expression(text)]
    while stack:
        node: Any = stack.pop()
        if node.key in _ENDS or node.key in AGGREGATES:
            found.append(node.this)
        elif node.key == "column":
            found.append(node)
        else:
            stack += node.iter_expressions()
    return found


def _bare(argument: Any) -> str:
    """An argument's text without the names of variables."""
    bare = argument.copy()
    for part in walk(bare, "column"):
        part.set("table", None)
    return str(bare.sql(DIALECT))
