"""The events that rules with the same WHERE see, and the windows and patterns over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.operators.cep.expressions import Events, as_mask, evaluate_column
from evenkeel.operators.cep.matching import Matcher
from evenkeel.operators.cep.rules import PatternRule, Rule, WindowRule
from evenkeel.operators.cep.syntax import columns_of, parse_expression
from evenkeel.operators.cep.terms import Item, Term, terms_of
from evenkeel.operators.cep.windows import Timeline, aggregate
from evenkeel.operators.groups import NEVER
from evenkeel.operators.ragged import after, keep_rows, kept_of, kept_type, one_chunk, spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from evenkeel.operators.cep.windows import WindowFunction

__all__ = ["Alerts", "Stretch", "View"]


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """A batch's events, key after key and in order.

    Parameters
    ----------
    rows, key_of, times
        The events, the key of each, and its time; :data:`NEVER` if it has none.
    keys
        How many keys there are, with and without events.
    watermark
        The event time before which nothing more comes.
    """

    rows: pa.Table
    key_of: NDArray[np.int64]
    times: NDArray[np.int64]
    keys: int
    watermark: int

    def where(self, text: str | None) -> Stretch:
        """The events that meet a condition."""
        if text is None:
            return self
        met = as_mask(parse_expression(text), Events(self.rows))
        chosen = np.asarray(met)
        return Stretch(self.rows.filter(met), self.key_of[chosen], self.times[chosen], self.keys, self.watermark)


@dataclass(frozen=True, slots=True, eq=False)
class Alerts:
    """What one rule found: its columns, and the key and time of each alert."""

    rule: Rule
    columns: dict[str, pa.Array]
    key_of: NDArray[np.int64]
    times: NDArray[np.int64]


class View:
    """Rules that see the same events, and what is kept of those events for all of them.

    Parameters
    ----------
    number
        Tells the state columns of several views apart.
    rules
        They have the same WHERE.
    functions
        The user's own functions over windows, by name.
    """

    def __init__(self, number: int, rules: Sequence[Rule], functions: Mapping[str, WindowFunction]) -> None:
        self.number, self.functions = number, functions
        self.where = rules[0].where
        self.terms = {rule.name: terms_of(rule, functions) for rule in rules}
        self.rules = [rule for rule in rules if isinstance(rule, WindowRule)]
        self.matchers = [Matcher(rule) for rule in rules if isinstance(rule, PatternRule)]
        self.all_terms: list[Term] = list(dict.fromkeys(t for terms in self.terms.values() for t in terms.values()))
        self.items: list[Item] = list(dict.fromkeys(term.item for term in self.all_terms if term.item))
        frames = [term.frame for term in self.all_terms]
        self.rows_back = max((frame.start for frame in frames if frame.kind == "rows"), default=0)
        self.time_back = max((frame.start for frame in frames if frame.kind == "range"), default=None)

    @property
    def needs_event_time(self) -> bool:
        """Whether a window or a pattern goes by time."""
        return self.time_back is not None or any(matcher.within >= 0 for matcher in self.matchers)

    def columns(self) -> set[str]:
        """All columns that the rules look at."""
        texts = [self.where, *(text for rule in self.rules for text in rule.texts)]
        texts += [text for matcher in self.matchers for text in matcher.rule.texts]
        looked_at = (columns_of(parse_expression(text)) for text in texts if text)
        return set().union(*looked_at, *(matcher.columns() for matcher in self.matchers))

    def state_fields(self, rows: pa.Schema) -> list[pa.Field]:
        """The state columns for events of these columns."""
        nothing = rows.empty_table()
        fields = []
        if self.all_terms:
            fields += [(f"history_{self.number}", kept_type(self._items(nothing, np.empty(0, np.int64)).schema))]
            fields += [(f"seen_{self.number}", pa.int64())]
        for i, matcher in enumerate(self.matchers):
            names = (f"{what}_{self.number}_{i}" for what in ("sought", "live", "best"))
            fields += zip(names, matcher.kinds(nothing), strict=True)
        return [pa.field(*field) for field in fields]

    def update(
        self, batch: Stretch, states: list[pa.ChunkedArray]
    ) -> tuple[list[Alerts], list[pa.Array], NDArray[np.bool_], NDArray[np.int64]]:
        """Give the alerts, the new states, which keys hold something, and when each has something to forget."""
        batch = batch.where(self.where)
        holds, wake = np.zeros(batch.keys, bool), np.full(batch.keys, NEVER)
        columns = list(states)
        values: dict[Term, pa.Array] = {}
        if self.all_terms:
            values, kept, seen, last = self._look_back(batch, *states[:2])
            columns[:2] = [kept, pa.array(seen)]
            holds = np.diff(np.asarray(kept.offsets)) > 0
            if self.rows_back == 0 and self.time_back is not None:
                wake[holds] = last[holds] + self.time_back + 1
        alerts = [self._alerts(rule, batch, values) for rule in self.rules]
        for i, matcher in enumerate(self.matchers):
            at = len(states) - 3 * (len(self.matchers) - i)
            scope = self._scope(matcher.rule, batch.rows, values)
            found = matcher.find(scope, batch.key_of, batch.times, states[at : at + 3], batch.watermark)
            alerts.append(Alerts(matcher.rule, found.measures, found.key_of, found.times))
            columns[at : at + 3] = found.states
            holds[found.seeking] = True
            if matcher.within >= 0:
                wake[found.seeking] = np.minimum(wake[found.seeking], found.since + matcher.within + 1)
        return alerts, columns, holds, wake

    def _items(self, rows: pa.Table, times: NDArray[np.int64]) -> pa.Table:
        """What is kept of each event; its time only if a window goes by it, or if there is nothing else."""
        items = {f"item_{i}": item.evaluate(rows, self.functions) for i, item in enumerate(self.items)}
        return pa.table(items if items and self.time_back is None else {"time": pa.array(times), **items})

    def _look_back(
        self, batch: Stretch, history: pa.ChunkedArray, seen: pa.ChunkedArray
    ) -> tuple[dict[Term, pa.Array], pa.ListArray, NDArray[np.int64], NDArray[np.int64]]:
        """Give each term's value for each event; of each key what to keep, how many were seen, and the newest time."""
        from evenkeel.operators.cep import _kernels_windows

        old, before = kept_of(history)
        new = np.bincount(batch.key_of, minlength=batch.keys)
        came = self._items(batch.rows, batch.times).cast(before.schema)
        events, starts = after(before, came, old, new)
        at = spans(starts[:-1] + old, new)
        times = None if self.time_back is None else np.asarray(one_chunk(events["time"]))
        seen_before = np.asarray(one_chunk(seen.fill_null(0)))
        firsts = np.where(old > 0, seen_before - old, 0)
        timeline, seen_after = self._timeline(Timeline(starts, firsts, batch.key_of, at, times), seen_before)
        bounds = {frame: timeline.bounds(frame) for frame in {term.frame for term in self.all_terms}}
        values = {term: self._value(term, events, timeline, bounds[term.frame]) for term in self.all_terms}

        # Events that the next one may look back at.
        keep, last = np.minimum(old + new, self.rows_back), np.full(batch.keys, NEVER)
        if times is not None:
            there = np.flatnonzero(old + new)
            last[there] = times[starts[there + 1] - 1]
            since = np.maximum(last, batch.watermark) - self.time_back
            keep = np.maximum(keep, _kernels_windows.count_since(times, starts, since))
        kept = keep_rows(events.take(pa.array(spans(starts[1:] - keep, keep))), keep)
        return values, kept, seen_after, last

    def _timeline(self, by_key: Timeline, seen: NDArray[np.int64]) -> tuple[Timeline, NDArray[np.int64]]:
        """Tell runs of events apart, number the events of each, and give for each key how many its last run has.

        A run is a key's whole stream; or, if all windows go by time, as much of it as no window can look across. So
        an event has its number whether or not its key was forgotten in between.
        """
        starts, times = by_key.starts, by_key.times
        if self.rows_back or times is None:
            return by_key, by_key.firsts + np.diff(starts)
        begins, there = np.zeros(len(times), bool), np.flatnonzero(np.diff(starts))
        begins[1:] = np.diff(times) > self.time_back
        begins[starts[there]] = True
        run_of, run_starts = np.cumsum(begins) - 1, np.append(np.flatnonzero(begins), len(times))
        firsts = np.zeros(len(run_starts) - 1, np.int64)
        firsts[run_of[starts[there]]] = by_key.firsts[there]
        last_run = run_of[starts[there + 1] - 1]
        seen = seen.copy()
        seen[there] = firsts[last_run] + run_starts[last_run + 1] - run_starts[last_run]
        return Timeline(run_starts, firsts, run_of[by_key.at], by_key.at, times), seen

    def _value(self, term: Term, events: pa.Table, timeline: Timeline, bounds: NDArray[np.int64]) -> pa.Array:
        if term.item is None:
            return pa.array(bounds[1] - bounds[0])
        items = one_chunk(events[f"item_{self.items.index(term.item)}"])
        if term.item.function is not None:
            return self.functions[term.item.function].over(items, timeline.at, bounds)
        return aggregate(term.function, items, timeline, bounds)

    def _scope(self, rule: Rule, rows: pa.Table, values: dict[Term, pa.Array]) -> Events:
        return Events(rows, {text: values[term] for text, term in self.terms[rule.name].items()})

    def _alerts(self, rule: WindowRule, batch: Stretch, values: dict[Term, pa.Array]) -> Alerts:
        scope, key_of, times = self._scope(rule, batch.rows, values), batch.key_of, batch.times
        if rule.when is not None:
            met = as_mask(parse_expression(rule.when), scope)
            chosen = np.asarray(met)
            known = {text: found.filter(met) for text, found in scope.known.items()}
            scope, key_of, times = Events(batch.rows.filter(met), known), key_of[chosen], times[chosen]
        columns = {name: evaluate_column(parse_expression(text), scope) for name, text in rule.select.items()}
        return Alerts(rule, columns, key_of, times)
