"""Aggregates that add up: count of values, sum, mean and variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.operators.aggregates.column import OfColumn, valid_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["CountOf", "Mean", "Sum", "Variance"]


@dataclass(frozen=True)
class CountOf(OfColumn):
    """Count the values of a column that are not null, as Spark's ``count(column)``.

    Parameters
    ----------
    column
        What to count.
    """

    name = "count_of"
    any_order = True
    column: str

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """One number."""
        self.type_in(rows)
        return pa.schema([("count_of", pa.int64())])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """One number."""
        return self.state_schema(rows)

    def lift(self, groups: Groups) -> pa.Table:
        """Count the values of each key."""
        there = groups.key_of[valid_of(groups.rows[self.column])]
        return pa.table({"count_of": np.bincount(there, minlength=len(groups))})

    def lift_sql(self, rows: pa.Schema) -> dict[str, str]:  # noqa: ARG002
        """The same in SQL."""
        return {"count_of": f"count({self.sql_column})"}

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Add up."""
        return pa.table({"count_of": _numbers(left, "count_of") + _numbers(right, "count_of")})

    def results(self, states: pa.Table) -> tuple[pa.Table, None]:
        """The count itself."""
        return states, None


@dataclass(frozen=True)
class Sum(OfColumn):
    """Add up a column as Spark's ``sum``: null if there are no values.

    Whole numbers give a long and wrap around beyond it; floats give a double. Sums of whole numbers are exact however
    the tuples are split; those of floats differ in the last digits, since adding floats depends on the order.

    Parameters
    ----------
    column
        What to add up.
    """

    name = "sum"
    column: str

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """One number."""
        return pa.schema([("sum", self.number_in(rows))])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """One number."""
        return self.state_schema(rows)

    def lift(self, groups: Groups) -> pa.Table:
        """Add up the values of each key."""
        kind = self.number_in(groups.rows.schema)
        sums, counts = _sums(groups, self.column, kind)
        return pa.table({"sum": pa.array(sums, kind, mask=counts == 0)})

    def lift_sql(self, rows: pa.Schema) -> dict[str, str]:
        """The same in SQL, where a sum of longs would fail instead of wrapping around: so in two halves."""
        column = self.sql_column
        if self.number_in(rows) == pa.float64():
            return {"sum": f"sum(double({column}))"}
        if self.type_in(rows) != pa.int64():
            return {"sum": f"sum({column})"}
        high, low = f"sum(shiftright({column}, 32))", f"sum({column} & 4294967295L)"
        return {"sum": f"shiftleft({high} + shiftright({low}, 32), 32) | ({low} & 4294967295L)"}

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Add up."""
        added = pc.add(pc.fill_null(left["sum"], 0), pc.fill_null(right["sum"], 0))
        neither = pc.and_(left["sum"].is_null(), right["sum"].is_null())
        return pa.table({"sum": pc.if_else(neither, pa.scalar(None, added.type), added)})

    def results(self, states: pa.Table) -> tuple[pa.Table, None]:
        """The sum itself."""
        return states, None


@dataclass(frozen=True)
class Mean(OfColumn):
    """Average a column as Spark's ``avg``: a double, null if there are no values.

    Parameters
    ----------
    column
        What to average.
    """

    name = "mean"
    column: str

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The sum as a double, and how many values."""
        self.number_in(rows)
        return pa.schema([("sum", pa.float64()), ("count", pa.int64())])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """One double."""
        return pa.schema([("mean", pa.float64())])

    def lift(self, groups: Groups) -> pa.Table:
        """Add up and count the values of each key."""
        sums, counts = _sums(groups, self.column, pa.float64())
        return pa.table({"sum": sums, "count": counts})

    def lift_sql(self, rows: pa.Schema) -> dict[str, str]:  # noqa: ARG002
        """The same in SQL."""
        column = self.sql_column
        return {"sum": f"coalesce(sum(double({column})), 0D)", "count": f"count({column})"}

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Add up."""
        return pa.table({name: _numbers(left, name) + _numbers(right, name) for name in ("sum", "count")})

    def results(self, states: pa.Table) -> tuple[pa.Table, None]:
        """The sum by the count."""
        sums, counts = _numbers(states, "sum"), _numbers(states, "count")
        return pa.table({"mean": pa.array(sums / np.maximum(counts, 1), mask=counts == 0)}), None


@dataclass(frozen=True)
class Variance(OfColumn):
    """Sample variance of a column as Spark's ``var_samp``: a double, null for fewer than two values.

    Parameters
    ----------
    column
        What to look at.

    Notes
    -----
    Keeps the count, the mean and the sum of squared distances from it, and merges them by the formula of Chan, Golub
    and LeVeque (1979), as Spark does; numbers far from zero lose no digits.
    """

    name = "variance"
    column: str

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """Count, mean and squared distances."""
        self.number_in(rows)
        return pa.schema([("count", pa.int64()), ("mean", pa.float64()), ("squares", pa.float64())])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """One double."""
        return pa.schema([("variance", pa.float64())])

    def lift(self, groups: Groups) -> pa.Table:
        """Take the mean of each key, then the distances from it."""
        from evenkeel.operators import _kernels

        sums, counts = _sums(groups, self.column, pa.float64())
        means = sums / np.maximum(counts, 1)
        squares = np.zeros(len(groups))
        column = groups.rows[self.column]
        _kernels.add_squares_by_key(_filled(column, pa.float64()), valid_of(column), groups.key_of, means, squares)
        return pa.table({"count": counts, "mean": means, "squares": squares})

    def lift_sql(self, rows: pa.Schema) -> dict[str, str]:  # noqa: ARG002
        """The same in SQL."""
        count, column = f"count({self.sql_column})", f"double({self.sql_column})"
        squares = f"coalesce({count} * var_pop({column}), 0D)"
        return {"count": count, "mean": f"coalesce(avg({column}), 0D)", "squares": squares}

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Weigh the means by the counts; what lies between the means adds to the squares."""
        n, m = _numbers(left, "count"), _numbers(right, "count")
        mean, other = _numbers(left, "mean"), _numbers(right, "mean")
        squares = _numbers(left, "squares") + _numbers(right, "squares")
        both = (n > 0) & (m > 0)
        total = np.maximum(n + m, 1)
        with np.errstate(invalid="ignore", over="ignore"):  # infinite values give NaN, as they do in Spark
            apart = other - mean
            merged = np.where(both, mean + apart * (m / total), np.where(n > 0, mean, other))
            squares = np.where(both, squares + apart * apart * (n / total) * m, squares)
        return pa.table({"count": n + m, "mean": merged, "squares": squares})

    def results(self, states: pa.Table) -> tuple[pa.Table, None]:
        """The squares by one less than the count."""
        counts = _numbers(states, "count")
        variance = _numbers(states, "squares") / np.maximum(counts - 1, 1)
        return pa.table({"variance": pa.array(variance, mask=counts < 2)}), None


def _filled(column: pa.ChunkedArray, kind: pa.DataType) -> NDArray[Any]:
    # Unsigned numbers beyond a long wrap around, as sums do.
    return pc.fill_null(pc.cast(column, kind, safe=False), 0).to_numpy(zero_copy_only=False)


def _numbers(states: pa.Table, name: str) -> NDArray[Any]:
    return pc.fill_null(states[name], 0).to_numpy(zero_copy_only=False)


def _sums(groups: Groups, column: str, kind: pa.DataType) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sum of each key's values, and how many they are."""
    from evenkeel.operators import _kernels

    values = groups.rows[column]
    sums, counts = np.zeros(len(groups), kind.to_pandas_dtype()), np.zeros(len(groups), np.int64)
    _kernels.add_by_key(_filled(values, kind), valid_of(values), groups.key_of, sums, counts)
    return sums, counts
