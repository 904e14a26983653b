"""The k largest items of each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError
from evenkeel.operators.base import Update
from evenkeel.operators.checks import at_least, flat_field, number_type, reserved
from evenkeel.operators.mergeable import Mergeable
from evenkeel.operators.ragged import ROW, entries_of, largest, nest_entries, ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["TopK"]

_VALUE, _FRESH, _SHOWN = "value", "fresh", "shown"


@dataclass(frozen=True)
class TopK(Mergeable):
    """Keep the k items with the largest values; the result is a group's new ranking whenever it has changed.

    An item's value is the largest that it came with, so what counts may be told again and again, from any number of
    channels: running counts and totals that never fall. Equal values rank by item. Null values, and items that are
    wholly null, are left out.

    Parameters
    ----------
    k
        How many.
    by
        The column of values.
    item
        The column, or columns, that tell what is ranked.

    Notes
    -----
    States are exact under splitting: an item that a part leaves out has k better ones there. Of n tuples with m
    different items, O(n + m log m) for many groups and O(n) for one; a state has k entries.

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §II-A: streaming top-k word count.
    """

    name = "top_k"
    k: int
    by: str = "count"
    item: str | Sequence[str] = "word"

    def __post_init__(self) -> None:
        items = (self.item,) if isinstance(self.item, str) else tuple(self.item)
        object.__setattr__(self, "item", items)
        at_least("k", self.k, 1)
        if not items or len({*items, self.by}) != len(items) + 1:
            raise InvalidArgumentError(
                f"item must name at least one column, each once and other than by; got {items} by {self.by!r}."
            )
        reserved([*items, self.by], ["rank"])

    @property
    def _items(self) -> list[str]:
        return list(self.item)

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """The items and the values."""
        return [*self._items, self.by]

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The ranking, and which of it was not given as a result yet."""
        items = [(f"item{i}", flat_field(rows, name).type) for i, name in enumerate(self._items)]
        entry = pa.struct([*items, (_VALUE, number_type(rows, self.by)), (_FRESH, pa.bool_())])
        return pa.schema([("ranking", pa.list_(entry))])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """Rank, item and value."""
        items = [(name, flat_field(rows, name).type) for name in self._items]
        return pa.schema([("rank", pa.int64()), *items, (self.by, number_type(rows, self.by))])

    def lift(self, groups: Groups) -> pa.Table:
        """Rank the tuples of each key."""
        values = pc.cast(groups.rows[self.by], number_type(groups.rows.schema, self.by))
        fields = {f"item{i}": groups.rows[name] for i, name in enumerate(self._items)}
        entries = pa.table({ROW: groups.key_of, **fields, _VALUE: values})
        entries = entries.append_column(_FRESH, pa.repeat(True, len(entries)))
        is_there = fields["item0"].is_valid()
        for column in fields.values():
            is_there = pc.or_(is_there, column.is_valid())
        is_number = pc.fill_null(pc.invert(pc.is_nan(values)), False)
        return self._rank(entries.filter(pc.and_(is_there, is_number)), len(groups))

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Rank both together."""
        return self._rank(pa.concat_tables([entries_of(side["ranking"]) for side in (left, right)]), len(left))

    def _rank(self, entries: pa.Table, rows: int) -> pa.Table:
        items = [f"item{i}" for i in range(len(self._items))]
        shown = pc.if_else(entries[_FRESH], None, entries[_VALUE])
        best = entries.append_column(_SHOWN, shown).group_by([ROW, *items], use_threads=False)
        best = best.aggregate([(_VALUE, "max"), (_SHOWN, "max")])
        row_of, values = best[ROW].to_numpy(), best[f"{_VALUE}_max"].to_numpy()
        best = best.take(pa.array(largest(row_of, values, self.k, rows)))
        order = [(ROW, "ascending"), (f"{_VALUE}_max", "descending"), *((item, "ascending") for item in items)]
        best = best.sort_by(order)
        best = best.filter(pa.array(ranks(best[ROW].to_numpy(), rows) < self.k))
        # Values only rise: an entry is news if it was never shown, or shown with a lower value.
        fresh = pc.fill_null(pc.greater(best[f"{_VALUE}_max"], best[f"{_SHOWN}_max"]), True)
        columns = {name: best[name] for name in (ROW, *items)} | {_VALUE: best[f"{_VALUE}_max"], _FRESH: fresh}
        return pa.table({"ranking": nest_entries(pa.table(columns), rows)})

    def results(self, states: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
        """The ranking."""
        entries = entries_of(states["ranking"])
        row_of = entries[ROW].to_numpy()
        items = {name: entries[f"item{i}"] for i, name in enumerate(self._items)}
        ranked = pa.table({"rank": ranks(row_of, len(states)) + 1, **items, self.by: entries[_VALUE]})
        return ranked, row_of

    def settle(self, groups: Groups, states: pa.Table) -> Update:
        """Give the rankings that changed, and remember that they were given."""
        entries = entries_of(states["ranking"])
        changed = np.zeros(len(groups), bool)
        changed[entries.filter(entries[_FRESH])[ROW].to_numpy()] = True
        places = np.flatnonzero(changed)
        outputs, row_of = self.results(states.take(pa.array(places)))
        shown = entries.set_column(entries.schema.get_field_index(_FRESH), _FRESH, pa.repeat(False, len(entries)))
        return Update(pa.table({"ranking": nest_entries(shown, len(groups))}), outputs, places[row_of])
