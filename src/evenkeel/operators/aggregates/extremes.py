"""Aggregates that choose one of the values: least, greatest, earliest, latest."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import UnsupportedTypeError
from evenkeel.operators.aggregates.column import OfColumn, comes_before, order_codes, valid_of
from evenkeel.operators.groups import NEVER

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["First", "Last", "Max", "Min"]


class _Chosen(OfColumn):
    """One of the values of each key, by an order in which no two different values are equal."""

    any_order = True
    greatest: ClassVar[bool]

    @property
    @abstractmethod
    def _by(self) -> list[str]:
        """The columns of the state: a value is chosen by the first, then by the next. The last is the value itself."""

    def chosen_type(self, rows: pa.Schema) -> pa.DataType:
        """Give the type of the column; raises if its values have no order."""
        kind = self.type_in(rows)
        if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) or pa.types.is_null(kind):
            raise UnsupportedTypeError(
                f"Column {self.column!r} has type {kind}; {type(self).__name__} takes numbers, booleans, times, "
                "decimals, text and binary.",
                column=self.column,
            )
        return kind

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """One value of the column's type."""
        return pa.schema([(self.name, self.chosen_type(rows))])

    def beats(self, right: pa.ChunkedArray, left: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Whether each right value is to be chosen before the left one."""
        return comes_before(left, right) if self.greatest else comes_before(right, left)

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Choose the better one."""
        takes_right, tied = ~valid_of(left[self._by[0]]), None
        for name in self._by:
            better = self.beats(right[name], left[name])
            takes_right |= better if tied is None else better & tied
            tied = pc.fill_null(pc.equal(left[name], right[name]), False).to_numpy(zero_copy_only=False)
        mask = pa.array(takes_right)
        return pa.table({name: pc.if_else(mask, right[name], left[name]) for name in self._by})

    def results(self, states: pa.Table) -> tuple[pa.Table, None]:
        """The value itself."""
        return states.select(self._by[-1:]).rename_columns([self.name]), None

    def best(
        self, major: NDArray[np.int64], minor: NDArray[np.int64], valid: NDArray[np.bool_], groups: Groups
    ) -> pa.Array:
        """Give the place of each key's best tuple; null if it has none."""
        from evenkeel.operators import _kernels

        if self.greatest:
            major, minor = ~major, ~minor
        places = _kernels.least_by_key(major, minor, valid, groups.key_of, len(groups))
        return pa.array(places, mask=places < 0)


class _Extreme(_Chosen):
    @property
    def _by(self) -> list[str]:
        return [self.name]

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """One value of the column's type."""
        return self.output_schema(rows)

    def lift(self, groups: Groups) -> pa.Table:
        """Choose among the tuples of each key."""
        values = groups.rows[self.column]
        codes = order_codes(values)
        return pa.table({self.name: values.take(self.best(codes, codes, valid_of(values), groups))})

    def lift_sql(self, rows: pa.Schema) -> dict[str, str] | None:
        """The same in SQL; not of floats, of which SQL takes 0.0 and −0.0 for one."""
        if pa.types.is_floating(self.type_in(rows)):
            return None
        return {self.name: f"{self.name}({self.sql_column})"}


@dataclass(frozen=True)
class Min(_Extreme):
    """The least value of a column as Spark's ``min``: null if there are none; NaN is greater than all numbers.

    Parameters
    ----------
    column
        Numbers, booleans, times, decimals, text or binary.
    """

    name = "min"
    greatest = False
    column: str


@dataclass(frozen=True)
class Max(_Extreme):
    """The greatest value of a column as Spark's ``max``: null if there are none; NaN is greater than all numbers.

    Parameters
    ----------
    column
        Numbers, booleans, times, decimals, text or binary.
    """

    name = "max"
    greatest = True
    column: str


class _ByTime(_Chosen):
    needs_event_time = True

    @property
    def _by(self) -> list[str]:
        return ["time", "value"]

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The value and its event time in microseconds."""
        return pa.schema([("time", pa.int64()), ("value", self.chosen_type(rows))])

    def lift(self, groups: Groups) -> pa.Table:
        """Choose among the tuples of each key."""
        assert groups.times is not None
        values = groups.rows[self.column]
        valid = valid_of(values) & (groups.times != NEVER)
        places = self.best(groups.times, order_codes(values), valid, groups)
        return pa.table({"time": pa.array(groups.times).take(places), "value": values.take(places)})


@dataclass(frozen=True)
class First(_ByTime):
    """The value of a column with the earliest event time; the least of them if several have it.

    Nulls, and tuples without an event time, are left out. Unlike Spark's ``first`` the order in which tuples come makes
    no difference.

    Parameters
    ----------
    column
        Numbers, booleans, times, decimals, text or binary.
    """

    name = "first"
    greatest = False
    column: str


@dataclass(frozen=True)
class Last(_ByTime):
    """The value of a column with the latest event time; the greatest of them if several have it.

    Nulls, and tuples without an event time, are left out. Unlike Spark's ``last`` the order in which tuples come makes
    no difference.

    Parameters
    ----------
    column
        Numbers, booleans, times, decimals, text or binary.
    """

    name = "last"
    greatest = True
    column: str
