"""Operators whose partial states merge: they may be split over channels, and combined before the shuffle."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.operators.base import Operator, Update
from evenkeel.operators.ragged import ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["Mergeable", "fold", "sql_name", "sql_of_lift"]


class Mergeable(Operator):
    """An operator that is a commutative monoid: lift tuples to states, merge states, read results off a state.

    ``merge`` is associative and commutative, a row of nulls is the state of no tuples (``merge(x, nulls) == x``), and
    lifting a batch is merging the lifts of its parts. The results are a function of the state alone.
    """

    merges = True

    @abstractmethod
    def lift(self, groups: Groups) -> pa.Table:
        """Give the state of each key of a batch, of these tuples alone."""

    def lift_sql(self, rows: pa.Schema) -> dict[str, str] | None:  # noqa: ARG002
        """Give ``lift`` as SQL aggregates by state column, where Spark can do it before a row comes to Python."""
        return None

    @abstractmethod
    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Merge states row by row."""

    @abstractmethod
    def results(self, states: pa.Table) -> tuple[pa.Table, NDArray[np.int64] | None]:
        """Give the results of each state, and for each result its state's row; ``None`` if there is one for each."""

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Merge the batch into the states."""
        return self.settle(groups, self.merge(states, self.lift(groups)))

    def late(self, groups: Groups) -> int:  # noqa: ARG002
        """Count the tuples that ``lift`` leaves out because they came too late."""
        return 0

    def settle(self, groups: Groups, states: pa.Table) -> Update:  # noqa: ARG002
        """Give what comes of the merged states; an operator with a clock emits here what is due."""
        return Update(states, *self.results(states))


def sql_of_lift(operator: Mergeable, rows: pa.Schema) -> dict[str, str] | None:
    """Give an operator's ``lift_sql``, unless a subclass has another ``lift`` than the SQL is about."""
    kinds = type(operator).__mro__
    sql, lift = (next(n for n, kind in enumerate(kinds) if name in vars(kind)) for name in ("lift_sql", "lift"))
    return operator.lift_sql(rows) if sql <= lift else None


def sql_name(column: str) -> str:
    """Quote a column's name."""
    return f"`{column.replace('`', '``')}`"


def fold(operator: Mergeable, states: pa.Table, key_of: NDArray[np.int64], keys: int) -> pa.Table:
    """Merge many states into one per key, aligned with keys 0 to ``keys - 1``; nulls for a key without states.

    Notes
    -----
    Rounds of whole-column merges, each halving the states of every key that has several: O(n log n), log₂ of the
    largest group rounds.
    """
    from evenkeel.operators import _kernels

    done: list[tuple[pa.Table, NDArray[np.int64]]] = []
    order, _ = _kernels.arrival_order(key_of, keys)
    states, key_of = states.take(order), key_of[order]
    while True:
        turn = ranks(key_of, keys)  # which of its key's states each is
        counts = np.bincount(key_of, minlength=keys)[key_of]
        alone = counts == 1
        done.append((states.filter(alone), key_of[alone]))
        if alone.all():
            break
        first = np.flatnonzero(~alone & (turn % 2 == 0))
        has_partner = turn[first] + 1 < counts[first]
        merged = operator.merge(states.take(first), _take(states, np.where(has_partner, first + 1, -1)))
        states, key_of = merged.cast(states.schema), key_of[first]
    places = np.full(keys, -1)
    found = np.concatenate([keys_done for _, keys_done in done])
    places[found] = np.arange(len(found))
    return _take(pa.concat_tables([states_done for states_done, _ in done]), places)


def _take(table: pa.Table, places: NDArray[np.int64]) -> pa.Table:
    """Take rows; a negative place gives a row of nulls."""
    return table.take(pa.array(places, mask=places < 0))
