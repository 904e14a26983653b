"""Many histograms as plain arrays, and as a list column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.operators.ragged import ROW, entries_of, nest_entries, one_chunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FlatHistograms", "histogram_type"]


def histogram_type(class_type: pa.DataType) -> pa.DataType:
    """Give the type of a key's histograms: one for each class, each with its range and its bins."""
    ends = [("minimum", pa.float64()), ("maximum", pa.float64())]
    bins = pa.list_(pa.struct([("centre", pa.float64()), ("count", pa.int64())]))
    return pa.list_(pa.struct([("class", class_type), *ends, ("exact", pa.bool_()), ("bins", bins)]))


@dataclass(frozen=True, slots=True, eq=False)
class FlatHistograms:
    """Histograms one after the other, sorted by row and class.

    Parameters
    ----------
    row_of, classes
        To which row and class each histogram belongs.
    minimum, maximum
        The least and greatest value of each.
    exact
        Whether each bin is one value.
    starts
        Where each one's bins start; one more at the end.
    centres, counts
        The bins.
    """

    row_of: NDArray[np.int64]
    classes: pa.Array
    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    exact: NDArray[np.bool_]
    starts: NDArray[np.int64]
    centres: NDArray[np.float64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.ChunkedArray | pa.Array) -> FlatHistograms:
        """Take a list column apart."""
        entries = entries_of(column)
        lists = one_chunk(entries["bins"])
        bins = pc.list_flatten(lists)
        lengths = pc.list_value_length(lists).to_numpy()
        # Copies, since what comes out of Arrow is read-only, and Numba compiles a loop anew for read-only arrays.
        return cls(
            entries[ROW].to_numpy(),
            one_chunk(entries["class"]),
            np.array(entries["minimum"]),
            np.array(entries["maximum"]),
            np.array(entries["exact"]),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
            np.array(bins.field("centre")),
            np.array(bins.field("count")),
        )

    def nested(self, rows: int) -> pa.ListArray:
        """Undo :meth:`of`."""
        bins = pa.StructArray.from_arrays([pa.array(self.centres), pa.array(self.counts)], names=["centre", "count"])
        columns = {
            ROW: self.row_of,
            "class": self.classes,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "exact": self.exact,
            "bins": pa.ListArray.from_arrays(pa.array(self.starts, pa.int32()), bins),
        }
        return nest_entries(pa.table(columns), rows)

    def starts_among(self, places: NDArray[np.int64], histograms: int) -> NDArray[np.int64]:
        """Give where bins start if these are the histograms at such places, rising, among more that are empty."""
        sizes = np.zeros(histograms, np.int64)
        sizes[places] = np.diff(self.starts)
        return np.concatenate([[0], np.cumsum(sizes)])
