"""Complex event processing: rules over each key's events, many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators.base import Operator, Update
from evenkeel.operators.cep.language import parse_rule
from evenkeel.operators.cep.view import Stretch, View
from evenkeel.operators.groups import NEVER, NO_WATERMARK
from evenkeel.operators.ragged import one_chunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.cep.rules import Rule
    from evenkeel.operators.cep.view import Alerts
    from evenkeel.operators.cep.windows import WindowFunction
    from evenkeel.operators.groups import Groups

__all__ = ["Detector"]


@dataclass(frozen=True)
class Detector(Operator):
    """Look at each key's events by rules; each result is an alert.

    Parameters
    ----------
    rules
        A mapping of names to SQL; or a list of rules and of SQL, whose names are then ``rule_1``, ``rule_2`` and so on.
    functions
        Functions of one's own over windows, for use in the rules.
    rule_column, time_column
        Names of the first two result columns: the rule, and the time of the event that completed the alert (null if the
        stream has no event time). Then follow the columns of all rules, null for a rule that has no such column.

    Notes
    -----
    Without windows or WITHIN by time, events are taken in the order of arrival. Otherwise they are taken in event-time
    order: those of a batch are sorted, and one that is older than the watermark, or than its key's newest event of
    earlier batches, is late and left out. Put the detector behind ``Reordered`` to wait for stragglers.

    The state of a key is what windows look back at, of each event only the values that are aggregated; and for patterns
    the events of the match that is sought, with the automaton's live states. Cost per event: O(log of the window) for
    each aggregate, O(states) for each pattern.

    Partial states do not merge: a window or a match needs all events of its key, in order.
    """

    name = "detector"

    rules: Mapping[str, str] | Sequence[Rule | str]
    functions: Sequence[WindowFunction] = ()
    rule_column: str = "rule"
    time_column: str = "time"

    def __post_init__(self) -> None:
        if isinstance(self.rules, Mapping):
            rules = [parse_rule(name, text) for name, text in self.rules.items()]
        else:
            named = ((f"rule_{i}", rule) for i, rule in enumerate(self.rules, 1))
            rules = [parse_rule(name, rule) if isinstance(rule, str) else rule for name, rule in named]
        names = [rule.name for rule in rules]
        if not rules or len(set(names)) < len(names):
            raise InvalidArgumentError(f"A detector has rules, each with a name of its own; got {names}.", rules=names)
        object.__setattr__(self, "rules", tuple(rules))
        object.__setattr__(self, "functions", tuple(self.functions))
        by_time = any(view.needs_event_time for view in self._views)
        object.__setattr__(self, "needs_event_time", by_time)
        object.__setattr__(self, "wakes_by", "event_time" if by_time else None)

    def columns(self, rows: pa.Schema) -> list[str]:
        """All columns that a rule looks at."""
        looked_at = set().union(*(view.columns() for view in self._views))
        for name in sorted(looked_at):
            if name not in rows.names:
                raise UnknownNameError("column", name, rows.names)
        return [name for name in rows.names if name in looked_at]

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The time of the newest event, if it matters, and what the windows and patterns of all rules keep."""
        fields = [field for view in self._views for field in view.state_fields(rows)]
        self.output_schema(rows)  # complains about what alerts cannot contain
        return pa.schema([pa.field("last_time", pa.int64()), *fields])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """The rule, the time, and the columns of all rules."""
        if rows not in self._output_schemas:
            self._output_schemas[rows] = self._tried_on(rows)
        return self._output_schemas[rows]

    @cached_property
    def _output_schemas(self) -> dict[pa.Schema, pa.Schema]:
        return {}

    def _tried_on(self, rows: pa.Schema) -> pa.Schema:
        """The output schema, found by running the rules over no events."""
        nothing = Stretch(rows.empty_table(), _none(), _none(), 0, NO_WATERMARK)
        kinds: dict[str, pa.DataType] = {self.rule_column: pa.string(), self.time_column: pa.timestamp("us", "UTC")}
        of: dict[str, str] = {}
        for view in self._views:
            states = [pa.chunked_array([], field.type) for field in view.state_fields(rows)]
            for found in view.update(nothing, states)[0]:
                for name, column in found.columns.items():
                    self._check_column(name, column.type, found.rule.name, kinds, of)
        return pa.schema(list(kinds.items()))

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Run all rules over the batch."""
        schema = self.output_schema(groups.rows.schema)
        batch, late = self._in_order(groups, states)
        holds, wake = np.zeros(len(groups), bool), np.full(len(groups), NEVER)
        alerts: list[Alerts] = []
        last = _numbers(states["last_time"], NO_WATERMARK)
        if self.needs_event_time:
            np.maximum.at(last, batch.key_of, batch.times)
            holds = last > batch.watermark
            wake[holds] = last[holds]
        columns = [pa.array(last, mask=last == NO_WATERMARK)]
        for view in self._views:
            fields = view.state_fields(groups.rows.schema)
            found, kept, view_holds, view_wake = view.update(batch, [states[field.name] for field in fields])
            alerts += found
            columns += [one_chunk(column) for column in kept]
            holds |= view_holds
            wake = np.minimum(wake, view_wake)
        return Update(
            pa.table(columns, schema=states.schema),
            self._outputs(alerts, schema),
            np.concatenate([found.key_of for found in alerts]),
            keep=holds,
            wake=wake if self.needs_event_time else None,
            late=late,
        )

    def __reduce__(self) -> tuple[type[Detector], tuple[Any, ...]]:
        # Without the views, which are built anew.
        return type(self), (self.rules, self.functions, self.rule_column, self.time_column)

    @cached_property
    def _views(self) -> list[View]:
        functions = {function.name: function for function in self.functions}
        by_where: dict[str | None, list[Rule]] = {}
        for rule in self.rules:
            assert not isinstance(rule, str)
            by_where.setdefault(rule.where, []).append(rule)
        return [View(number, rules, functions) for number, rules in enumerate(by_where.values())]

    def _in_order(self, groups: Groups, states: pa.Table) -> tuple[Stretch, int]:
        """The events key after key, in order, and how many came too late."""
        from evenkeel.operators import _kernels

        times = groups.times if groups.times is not None else np.full(len(groups.key_of), NEVER)
        if not self.needs_event_time:
            order, _ = _kernels.arrival_order(groups.key_of, len(groups))
            late = 0
        else:
            oldest = np.maximum(_numbers(states["last_time"], NO_WATERMARK), groups.now.watermark)
            on_time = np.flatnonzero((times >= oldest[groups.key_of]) & (times != NEVER))
            order = on_time[_kernels.order_by_key(groups.key_of[on_time], times[on_time], len(groups))]
            late = len(times) - len(order)
        rows = groups.rows.select(self.columns(groups.rows.schema)).take(pa.array(order))
        return Stretch(rows, groups.key_of[order], times[order], len(groups), groups.now.watermark), late

    def _outputs(self, alerts: list[Alerts], schema: pa.Schema) -> pa.Table:
        tables = []
        for found in alerts:
            count = len(found.key_of)
            columns = {
                self.rule_column: pa.repeat(found.rule.name, count),
                self.time_column: pa.array(found.times, mask=found.times == NEVER).cast(pa.timestamp("us", "UTC")),
                **found.columns,
            }
            filled = [columns.get(field.name, pa.nulls(count, field.type)) for field in schema]
            tables.append(pa.table(filled, schema=schema))
        return pa.concat_tables(tables)

    @staticmethod
    def _check_column(
        name: str, kind: pa.DataType, rule: str, kinds: dict[str, pa.DataType], of: dict[str, str]
    ) -> None:
        if pa.types.is_null(kind):
            raise UnsupportedTypeError(f"Column {name!r} of rule {rule!r} is always null; give it a type with CAST.")
        if (name in kinds and kinds[name] != kind) or (name in kinds and name not in of):
            other = f"rule {of[name]!r}" if name in of else "every alert"
            raise InvalidArgumentError(
                f"Rule {rule!r} has a column {name!r} of type {kind}, and so has {other}, of type {kinds[name]}; call "
                "one of them something else.",
                column=name,
            )
        kinds[name], of[name] = kind, rule


def _none() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


def _numbers(column: pa.ChunkedArray, missing: int) -> NDArray[np.int64]:
    return np.array(one_chunk(column.fill_null(missing)), np.int64)
