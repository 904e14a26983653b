"""The most frequent items of each group, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnsupportedTypeError
from evenkeel.hashing import hash_keys
from evenkeel.operators.checks import at_least, flat_field, reserved
from evenkeel.operators.mergeable import Mergeable
from evenkeel.operators.ragged import ROW, entries_of, largest, nest_entries, ranks, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["HeavyHitters", "item_buckets"]


@dataclass(frozen=True)
class HeavyHitters(Mergeable):
    r"""Keep a space-saving summary of each key's items; the result is its most frequent items with their bounds.

    Guarantees, with :math:`f` an item's true count, :math:`n` the total, :math:`m` the capacity and :math:`u` the
    summary's bound: an item that is held has count − error ≤ :math:`f` ≤ count and error ≤ :math:`u`; one that is not
    held has :math:`f \le u`; and :math:`u \le n/m`. Merging keeps all of it, in any order and shape: so no item with
    :math:`f > n/m` is ever missing. As long as a key has no more than :math:`m` different items, all counts are exact.

    A batch is counted exactly first and then cut to the m largest, and merged into the state: within a batch the order
    of tuples does not matter, and the error is that of the batches, not of every replacement.

    Parameters
    ----------
    item
        The column that tells what is counted; nulls are left out.
    capacity
        Items held for each key (m).
    k, threshold
        What to give: the k most frequent items, or those with more than this share of the total. One of the two.
    weight
        A column of whole numbers ≥ 0 to add up instead of counting; null is 0.

    Notes
    -----
    ``merge`` is commutative, and a row of nulls is neutral, bit for bit. It is associative, and lifts of parts merge
    to the lift of the whole, bit for bit while no more than m items come; beyond that the counts depend on the order
    of merging, within the guarantees, which hold for each.

    O(n) for a batch of n tuples, and O(m log m) for each key touched. A state is the m items, and 16 bytes for each.

    References
    ----------
    A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k elements in data streams",
    ICDT 2005; P. K. Agarwal et al., "Mergeable summaries", PODS 2012; M. A. U. Nasir et al., The Power of Both
    Choices, §VI-C.
    """

    name = "heavy_hitters"
    item: str
    capacity: int
    k: int | None = None
    threshold: float | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        at_least("capacity", self.capacity, 1)
        reserved([self.item], ["rank", "count", "error", "guaranteed"])
        if (self.k is None) == (self.threshold is None):
            raise InvalidArgumentError("Give either k or threshold, and not both.", k=self.k, threshold=self.threshold)
        if self.k is not None:
            at_least("k", self.k, 1)
            if self.k > self.capacity:
                raise InvalidArgumentError(f"k must not exceed the capacity of {self.capacity}; got {self.k}.")
        if self.threshold is not None and not 1 / self.capacity <= self.threshold < 1:
            raise InvalidArgumentError(
                f"threshold must lie between 1/capacity and 1, since {self.capacity} counters find all items with a "
                f"share above 1/{self.capacity}; got {self.threshold}. Raise the capacity for a lower one."
            )

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """The item, and the weight."""
        return list(dict.fromkeys([self.item, self.weight or self.item]))

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """Items with counts and errors, largest first; the total, and the most that an absent item can have."""
        kind = flat_field(rows, self.item).type
        hash_keys(pa.array([], kind))  # complains about a type that cannot be hashed
        if self.weight is not None and not pa.types.is_integer(flat_field(rows, self.weight).type):
            raise UnsupportedTypeError(f"The weight column {self.weight!r} must hold whole numbers.")
        entry = pa.struct([("item", kind), ("count", pa.int64()), ("error", pa.int64())])
        return pa.schema([("items", pa.list_(entry)), ("total", pa.int64()), ("bound", pa.int64())])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """Rank, item, count, error, and whether it is certain that the item belongs to the result."""
        kind = flat_field(rows, self.item).type
        fields = [("rank", pa.int64()), (self.item, kind), ("count", pa.int64()), ("error", pa.int64())]
        return pa.schema([*fields, ("guaranteed", pa.bool_())])

    def lift(self, groups: Groups) -> pa.Table:
        """Count the items of each key."""
        entries = pa.table({ROW: groups.key_of, "item": groups.rows[self.item], "count": self._weights(groups.rows)})
        entries = entries.filter(pc.and_(entries["item"].is_valid(), pc.greater(entries["count"], 0)))
        entries = entries.append_column("error", pa.repeat(np.int64(0), len(entries)))
        none = np.zeros(len(groups), np.int64)
        total = none.copy()
        np.add.at(total, entries[ROW].to_numpy(), entries["count"].to_numpy())
        return self._summarise(entries, none, total)

    def _weights(self, rows: pa.Table) -> Any:
        if self.weight is None:
            return pa.repeat(np.int64(1), len(rows))
        weights = pc.fill_null(pc.cast(rows[self.weight], pa.int64()), 0)
        if len(rows) and pc.min(weights).as_py() < 0:
            raise InvalidArgumentError(
                f"The weight column {self.weight!r} holds {pc.min(weights).as_py()}; bounds hold for weights of 0 or "
                "more only."
            )
        return weights

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Add up; an item that one side does not hold counts there as that side's bound, which may all be error."""
        sides = []
        for side in (left, right):
            entries = entries_of(side["items"])
            bounds = pa.array(_numbers(side["bound"])[entries[ROW].to_numpy()])
            # What an entry has above its side's bound; both sides' bounds are added to every entry after grouping.
            for column in ("count", "error"):
                place = entries.schema.get_field_index(column)
                entries = entries.set_column(place, column, pc.subtract(entries[column], bounds))
            sides.append(entries)
        bound = _numbers(left["bound"]) + _numbers(right["bound"])
        return self._summarise(pa.concat_tables(sides), bound, _numbers(left["total"]) + _numbers(right["total"]))

    def _summarise(self, entries: pa.Table, bound: NDArray[np.int64], total: NDArray[np.int64]) -> pa.Table:
        """Add up each row's entries, add its bound to each, and keep the largest."""
        rows = len(bound)
        grouped = entries.group_by([ROW, "item"], use_threads=False).aggregate([("count", "sum"), ("error", "sum")])
        row_of = grouped[ROW].to_numpy()
        counts = grouped["count_sum"].to_numpy() + bound[row_of]
        errors = grouped["error_sum"].to_numpy() + bound[row_of]
        # One more than fits: it tells what was left out.
        near = largest(row_of, counts, self.capacity + 1, rows)
        near = near[np.lexsort((hash_keys(grouped["item"].take(pa.array(near))), ~counts[near], row_of[near]))]
        rank = ranks(row_of[near], rows)
        dropped = near[rank == self.capacity]
        bound = bound.copy()
        bound[row_of[dropped]] = counts[dropped]
        kept = near[rank < self.capacity]
        items = grouped["item"].take(pa.array(kept))
        columns = {ROW: row_of[kept], "item": items, "count": counts[kept], "error": errors[kept]}
        return pa.table({"items": nest_entries(pa.table(columns), rows), "total": total, "bound": bound})

    def results(self, states: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
        """The items asked for, most frequent first."""
        entries = entries_of(states["items"])
        row_of, counts, errors = (entries[name].to_numpy() for name in (ROW, "count", "error"))
        rank = ranks(row_of, len(states))
        if self.k is not None:
            chosen = rank < self.k
            # The strongest rival of the k best: the next one, or one that is not held.
            starts = starts_of(np.bincount(row_of, minlength=len(states)))
            following = np.minimum(starts[:-1] + self.k, max(len(counts) - 1, 0))
            has_rival = starts[1:] - starts[:-1] > self.k
            rivals = _numbers(states["bound"])
            rivals[has_rival] = counts[following[has_rival]]
            guaranteed = counts - errors >= rivals[row_of]
        else:
            wanted = (self.threshold or 0.0) * _numbers(states["total"])
            chosen = counts > wanted[row_of]
            guaranteed = counts - errors > wanted[row_of]
        columns = {
            "rank": rank + 1,
            self.item: entries["item"],
            "count": counts,
            "error": errors,
            "guaranteed": guaranteed,
        }
        return pa.table(columns).filter(pa.array(chosen)), row_of[chosen]


def item_buckets(items: Any, buckets: int) -> NDArray[np.int64]:
    """Give each item one of so many buckets, to be the key of its summary; Spark's ``pmod(xxhash64(item), buckets)``.

    A key that is (group, bucket of the item) has every item in one summary, or in two when partial key grouping splits
    the bucket, whatever the number of channels; a key that is the group alone has it in as many as there are channels.

    >>> item_buckets(["the", "keel", "the"], buckets=16).tolist()
    [10, 6, 10]
    """
    at_least("buckets", buckets, 1)
    return hash_keys(items) % buckets


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return pc.fill_null(column, 0).to_numpy().copy()
