"""Several aggregates at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators.mergeable import Mergeable, sql_of_lift

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evenkeel.operators.base import Operator
    from evenkeel.operators.groups import Groups

__all__ = ["Aggregate"]


@dataclass(frozen=True, init=False, repr=False)
class Aggregate(Mergeable):
    """Compute several mergeable operators side by side; each has a name, which its result column gets.

    Any mergeable operator will do that gives one result per key and waits for no clock. One with several result columns
    has its name put before each of them: ``name_column``.

    Parameters
    ----------
    **operators
        The operators by name.

    Notes
    -----
    Cost and exactness are those of the parts, one after the other.

    Examples
    --------
    >>> from evenkeel.operators import Count
    >>> from evenkeel.operators.aggregates import Max, Sum
    >>> Aggregate(n=Count(), total=Sum("value"), high=Max("value"))
    Aggregate(n=Count(called='count'), total=Sum(column='value'), high=Max(column='value'))
    """

    name = "aggregate"
    operators: tuple[tuple[str, Mergeable], ...]

    def __init__(self, **operators: Operator) -> None:
        if not operators:
            raise InvalidArgumentError("There is nothing to compute. Say what, such as Aggregate(n=Count()).")
        for called, operator in operators.items():
            if not isinstance(operator, Mergeable) or operator.wakes_by is not None:
                raise InvalidArgumentError(
                    f"{called!r} must be a mergeable operator that waits for no clock; got {operator!r}."
                )
        object.__setattr__(self, "operators", tuple(operators.items()))

    def __repr__(self) -> str:
        return f"Aggregate({', '.join(f'{called}={operator!r}' for called, operator in self.operators)})"

    @property
    def needs_event_time(self) -> bool:  # type: ignore[override]
        """Whether any of the operators does."""
        return any(operator.needs_event_time for _, operator in self.operators)

    def columns(self, rows: pa.Schema) -> list[str]:
        """Those of all operators."""
        return list(dict.fromkeys(column for _, operator in self.operators for column in operator.columns(rows)))

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The states of all operators, ``name.column``."""
        return pa.schema(
            [
                field.with_name(f"{called}.{field.name}")
                for called, operator in self.operators
                for field in operator.state_schema(rows)
            ]
        )

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """The results of all operators."""
        fields = []
        for called, operator in self.operators:
            schema = operator.output_schema(rows)
            names = _result_names(called, schema.names)
            fields += [field.with_name(name) for field, name in zip(schema, names, strict=True)]
        return pa.schema(fields)

    def lift(self, groups: Groups) -> pa.Table:
        """Lift to all states."""
        return _joined((called, operator.lift(groups)) for called, operator in self.operators)

    def lift_sql(self, rows: pa.Schema) -> dict[str, str] | None:
        """Those of all operators, if all have one."""
        found: dict[str, str] = {}
        for called, operator in self.operators:
            sql = sql_of_lift(operator, rows)
            if sql is None:
                return None
            found |= {f"{called}.{name}": text for name, text in sql.items()}
        return found

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Merge state by state."""
        return _joined(
            (called, operator.merge(_part(left, called), _part(right, called))) for called, operator in self.operators
        )

    def results(self, states: pa.Table) -> tuple[pa.Table, None]:
        """One row per key, with the results of all."""
        names: list[str] = []
        columns: list[pa.ChunkedArray] = []
        for called, operator in self.operators:
            results, key_of = operator.results(_part(states, called))
            if key_of is not None:
                raise InvalidArgumentError(
                    f"{called!r} gives any number of results per key; an Aggregate needs operators that give one."
                )
            names += _result_names(called, results.column_names)
            columns += results.columns
        return pa.table(columns, names=names), None


def _result_names(called: str, columns: list[str]) -> list[str]:
    return [called] if len(columns) == 1 else [f"{called}_{column}" for column in columns]


def _joined(parts: Iterator[tuple[str, pa.Table]]) -> pa.Table:
    columns = {f"{called}.{name}": table[name] for called, table in parts for name in table.column_names}
    return pa.table(columns)


def _part(states: pa.Table, called: str) -> pa.Table:
    start = f"{called}."
    names = [name for name in states.column_names if name.startswith(start)]
    return states.select(names).rename_columns([name.removeprefix(start) for name in names])
