"""Two streams joined by key and nearness in time: ``join(orders, payments, key=…, event_time=…, within=…).apply()``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators import WindowJoin
from evenkeel.spark.api import stream

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from evenkeel.control import Controller
    from evenkeel.planning import Planner
    from evenkeel.routing import Router
    from evenkeel.spark.api import Flow, KeyedRows

__all__ = ["JoinedRows", "join"]

_SIDE = "__evenkeel_left"
"""Which side a row of the union is of: true for the left."""


def join(
    left: DataFrame,
    right: DataFrame,
    key: str | Sequence[str],
    *,
    event_time: str,
    within: str | timedelta,
    delay: str | timedelta = "0 seconds",
    names: tuple[str, str] = ("left", "right"),
) -> JoinedRows:
    """Pair the rows of two DataFrames that have the same key and are at most ``within`` apart in event time.

    Both are streaming or both static. They become one stream, so that one table routes both sides and a key moves with
    the state of both. Each pair comes out once, in the batch in which the second of the two arrives; see
    :class:`~evenkeel.operators.WindowJoin`. As in SQL, a null key equals none.

    Parameters
    ----------
    left, right
        The rows; all of their columns are in the results. A column that both have gets its side's name in front:
        ``left_amount``, ``right_amount``.
    key
        The key column, or several: of the same names and types on both sides.
    event_time
        The column that says when each row happened: of the same name and type on both sides.
    within
        How far apart the two rows of a pair may be, such as ``"5 minutes"``; exactly so far is near enough.
    delay
        How late rows may come. There is one watermark: the newest event time of both sides in the batches before, less
        this. If one side runs behind the other, the delay must cover that too.
    names
        What to call the sides in the names of columns that both have.
    """
    keys = (key,) if isinstance(key, str) else tuple(key)
    sides = {"left": left, "right": right}
    if left.isStreaming != right.isStreaming:
        streaming, static = ("left", "right") if left.isStreaming else ("right", "left")
        raise InvalidArgumentError(
            f"The {streaming} side is streaming and the {static} side is not; both must be the same. For a table that "
            "does not change, use Spark's own join before stream(…)."
        )
    for name in (*keys, event_time):
        _check_column(sides, name, "event-time" if name == event_time else "key")
    shared = tuple(dict.fromkeys((*keys, event_time)))
    results = _result_names(sides, keys, shared, names)
    # The event time is one column of the union; all others are columns of their side, by the names of the results.
    chosen = {
        side: {name if name in shared else called: called for name, called in own.items()}
        for side, own in results.items()
    }
    operator = WindowJoin(chosen["left"], chosen["right"], within, side=_SIDE)
    rows = _union(sides, shared, results)
    return JoinedRows(stream(rows, keys, event_time=event_time, delay=delay, null_keys="drop"), operator)


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Two streams to be joined, waiting to be told where."""

    rows: KeyedRows
    operator: WindowJoin

    def apply(
        self, strategy: str | Planner | Controller | Router = "keel", channels: int = 8, *, slots: int | None = None
    ) -> Flow:
        """Join on a number of channels that a strategy keeps even; as :meth:`KeyedRows.apply`.

        A pair needs both of its rows in one place, so the strategy must move whole keys.
        """
        return self.rows.apply(self.operator, strategy, channels, slots=slots)


def _check_column(sides: dict[str, DataFrame], name: str, what: str) -> None:
    """Complain about a column that is missing on a side, or of two types."""
    for side, rows in sides.items():
        if name not in rows.columns:
            raise InvalidArgumentError(
                f"There is no {what} column {name!r} on the {side} side. Columns: {', '.join(rows.columns)}. If it has "
                f"another name there, rename it: {side}.withColumnRenamed(…, {name!r}).",
                column=name,
                side=side,
            )
    left, right = (rows.schema[name].dataType for rows in sides.values())
    if left != right:
        raise InvalidArgumentError(
            f"The {what} column {name!r} is {left.simpleString()} on the left and {right.simpleString()} on the right. "
            f"Cast one of them: right.withColumn({name!r}, right[{name!r}].cast({left.simpleString()!r})).",
            column=name,
        )


def _result_names(
    sides: dict[str, DataFrame], keys: tuple[str, ...], shared: tuple[str, ...], names: tuple[str, str]
) -> dict[str, dict[str, str]]:
    """Give each side's columns, without the keys, with the names that they have in the results."""
    both = set.intersection(*(set(rows.columns) for rows in sides.values()))
    found = {
        side: {name: f"{called}_{name}" if name in both else name for name in rows.columns if name not in keys}
        for (side, rows), called in zip(sides.items(), names, strict=True)
    }
    used = [*shared, *(called for own in found.values() for called in own.values())]
    twice = sorted({name for name in used if used.count(name) > 1})
    if twice:
        raise InvalidArgumentError(
            f"Two columns would be called {twice[0]!r}. Rename one, or give the sides other names: "
            "names=('order', 'payment').",
            column=twice[0],
        )
    return found


def _union(sides: dict[str, DataFrame], shared: tuple[str, ...], results: dict[str, dict[str, str]]) -> DataFrame:
    """Put one side under the other, each with nulls in the columns of the other."""
    from pyspark.sql import functions as F

    parts = []
    for side, rows in sides.items():
        columns = [rows[_quoted(name)] for name in shared]
        for owner, own in results.items():
            for name, called in own.items():
                if name not in shared:
                    kind = sides[owner].schema[name].dataType
                    value = rows[_quoted(name)] if owner == side else F.lit(None).cast(kind)
                    columns.append(value.alias(called))
        parts.append(rows.select(*columns, F.lit(side == "left").alias(_SIDE)))
    return parts[0].unionByName(parts[1])


def _quoted(name: str) -> str:
    """A column's name, even if it has dots."""
    return f"`{name.replace('`', '``')}`"
