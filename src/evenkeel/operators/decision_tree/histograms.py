"""Streaming histograms of each feature at each leaf, one per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import UnsupportedTypeError
from evenkeel.operators.base import Update
from evenkeel.operators.checks import at_least, flat_field, number_type
from evenkeel.operators.decision_tree.flat import FlatHistograms, histogram_type
from evenkeel.operators.mergeable import Mergeable
from evenkeel.operators.ragged import codes_of, distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["FeatureHistograms"]


@dataclass(frozen=True)
class FeatureHistograms(Mergeable):
    """Keep a streaming histogram of a numeric column for each class; the result is the key's histograms so far.

    The key is (leaf, feature). A histogram has at most B bins, a centre and a count, and joins the closest two when
    there are more; it is ``exact`` while fewer than B different values came. Least and greatest value are kept exactly.
    Rows without a class, and values that are null or not finite, are left out.

    Values are observed one by one in their order (Update), so any cut of a channel's stream into batches gives the same
    histograms; parts of a split key are merged by joining bins (Merge).

    Parameters
    ----------
    bins
        B, at least 2.
    class_column, value_column
        What is to be predicted, and the feature's value.
    retire
        A column that is true for a tuple that says that its leaf was split: the key's histograms are no longer needed
        and are forgotten. Under splitting, send it to every channel that may hold a part of the key.

    Notes
    -----
    ``merge`` is commutative, and a row of nulls is neutral. It is associative, and lifts of parts merge to the lift of
    the whole, while fewer than B different values come; beyond that totals, ranges and (up to rounding) means are the
    same in any order, and where bins lie is not.

    O(n·B) for n tuples, and O(B²) for each merge of a full histogram; 16 bytes per bin.

    References
    ----------
    Y. Ben-Haim, E. Tom-Tov, "A streaming parallel decision tree algorithm", JMLR 11 (2010), section 2.1; M. A. U. Nasir
    et al., The Power of Both Choices, §VI-B.
    """

    name = "feature_histograms"
    bins: int = 32
    class_column: str = "class"
    value_column: str = "value"
    retire: str | None = None

    def __post_init__(self) -> None:
        at_least("bins", self.bins, 2)

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """Class, value, and what retires a leaf."""
        return list(dict.fromkeys([self.class_column, self.value_column, self.retire or self.value_column]))

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The histograms, and whether they are no longer needed."""
        number_type(rows, self.value_column)
        if self.retire is not None and not pa.types.is_boolean(flat_field(rows, self.retire).type):
            raise UnsupportedTypeError(
                f"Column {self.retire!r} must be true for tuples that retire a leaf, else false."
            )
        histograms = histogram_type(flat_field(rows, self.class_column).type)
        return pa.schema([("histograms", histograms), ("retired", pa.bool_())])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """The histograms."""
        return pa.schema([self.state_schema(rows).field("histograms")])

    def lift(self, groups: Groups) -> pa.Table:
        """Observe the values of each key."""
        kind = histogram_type(groups.rows[self.class_column].type)
        return self._observe(groups, pa.table({"histograms": pa.nulls(len(groups), kind)}))

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Go on observing the values of each key."""
        return self.settle(groups, self._observe(groups, states))

    def settle(self, groups: Groups, states: pa.Table) -> Update:  # noqa: ARG002
        """Give the histograms, and forget those of leaves that were split."""
        keep = ~states["retired"].to_numpy()
        return Update(states, states.select(["histograms"]).filter(pa.array(keep)), np.flatnonzero(keep), keep=keep)

    def results(self, states: pa.Table) -> tuple[pa.Table, None]:
        """The histograms."""
        return states.select(["histograms"]), None

    def _observe(self, groups: Groups, states: pa.Table) -> pa.Table:
        from evenkeel.operators.decision_tree import _kernels_histograms as kernels

        column = groups.rows[self.value_column].cast(pa.float64())
        classes = groups.rows[self.class_column]
        usable = pc.and_(pc.fill_null(pc.is_finite(column), False), classes.is_valid())
        values = np.array(column.filter(usable))
        old = FlatHistograms.of(states["histograms"])
        key_of = groups.key_of[usable.to_numpy()]
        cells = _Cells.of((old.row_of, old.classes), (key_of, classes.filter(usable)))
        before, after = cells.places
        added = np.bincount(after, minlength=len(cells.row_of))
        room = len(old.centres) + np.minimum(added, self.bins).sum()
        centres, counts, sizes = np.empty(room), np.empty(room, np.int64), np.empty_like(added)
        starts = old.starts_among(before, len(sizes))
        used = kernels.observe_all(starts, old.centres, old.counts, after, values, self.bins, centres, counts, sizes)
        ends = cells.ends((before, old.minimum, old.maximum), (after, values, values))
        new = self._flat(cells, ends, sizes, centres[:used], counts[:used])
        retired = np.zeros(len(groups), bool)
        if self.retire is not None:
            retired[groups.key_of[pc.fill_null(groups.rows[self.retire], False).to_numpy()]] = True
        return pa.table({"histograms": new.nested(len(groups)), "retired": retired})

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Merge the histograms of the same class."""
        from evenkeel.operators.decision_tree import _kernels_histograms as kernels

        one, two = (FlatHistograms.of(side["histograms"]) for side in (left, right))
        cells = _Cells.of((one.row_of, one.classes), (two.row_of, two.classes))
        room = len(one.centres) + len(two.centres)
        centres, counts = np.empty(room), np.empty(room, np.int64)
        sizes = np.empty(len(cells.row_of), np.int64)
        starts = [side.starts_among(at, len(sizes)) for side, at in zip((one, two), cells.places, strict=True)]
        lefts, rights = (starts[0], one.centres, one.counts), (starts[1], two.centres, two.counts)
        used = kernels.merge_all(*lefts, *rights, self.bins, centres, counts, sizes)
        sides = zip(cells.places, (one, two), strict=True)
        ends = cells.ends(*((at, side.minimum, side.maximum) for at, side in sides))
        new = self._flat(cells, ends, sizes, centres[:used], counts[:used])
        retired = pc.or_(*(pc.fill_null(side["retired"], False) for side in (left, right)))
        return pa.table({"histograms": new.nested(len(left)), "retired": retired})

    def _flat(
        self,
        cells: _Cells,
        ends: tuple[NDArray[np.float64], NDArray[np.float64]],
        sizes: NDArray[np.int64],
        centres: NDArray[np.float64],
        counts: NDArray[np.int64],
    ) -> FlatHistograms:
        # A histogram that ever joined bins was full and stays full.
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return FlatHistograms(cells.row_of, cells.classes, *ends, sizes < self.bins, starts, centres, counts)


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The different pairs of row and class of two sides, sorted, and where each side's are among them."""

    row_of: NDArray[np.int64]
    classes: pa.Array
    places: tuple[NDArray[np.int64], NDArray[np.int64]]

    @classmethod
    def of(cls, one: tuple[NDArray[np.int64], Any], two: tuple[NDArray[np.int64], Any]) -> _Cells:
        classes, codes = codes_of(one[1], two[1])
        width = max(len(classes), 1)
        cells, place_of = distinct(np.concatenate([one[0], two[0]]) * width + np.concatenate(codes))
        split = len(one[0])
        return cls(cells // width, classes.take(pa.array(cells % width)), (place_of[:split], place_of[split:]))

    def ends(self, *sides: tuple[NDArray[np.int64], Any, Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the least and greatest values of all, each side with its places, least and greatest values."""
        least, greatest = np.full(len(self.row_of), np.inf), np.full(len(self.row_of), -np.inf)
        for places, minimum, maximum in sides:
            np.minimum.at(least, places, minimum)
            np.maximum.at(greatest, places, maximum)
        return least, greatest
