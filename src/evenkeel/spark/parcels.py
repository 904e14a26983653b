"""What goes from Python to Python through Spark's shuffle: packed, many rows to one of Spark's.

Spark takes every row of a worker apart, writes it, reads it and puts it together again for the next worker, which costs
more than all that is done with it here. A parcel is to Spark one row with some bytes in it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.spark.homes import PLACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = ["packed", "parcel_type", "together", "unpacked"]

_BYTES = 64 << 10
"""Of a parcel, unless a single row has more: 10,000, as many rows as Spark sends at once, are not too many then."""


def parcel_type(column: str) -> str:
    """Say in Spark's words what :func:`packed` gives."""
    return f"{PLACE} int, {column} binary"


def packed(rows: pa.Table, places: NDArray[np.int32], column: str) -> pa.RecordBatch:
    """Pack rows by where they go; those that go to one place stay in order.

    Parameters
    ----------
    rows, places
        The rows, and the placement value of each.
    column
        What the column of parcels is called.
    """
    few = len(places) and places.max() <= np.iinfo(np.uint16).max  # which NumPy sorts in a tenth of the time
    order = np.argsort(places.astype(np.uint16) if few else places, kind="stable")
    sent, places = rows.take(pa.array(order)).combine_chunks(), places[order]
    step = max(1, _BYTES * len(places) // max(1, sent.nbytes))
    bounds = [*np.flatnonzero(np.diff(places, prepend=-1)), len(places)]  # no place is below 0
    starts, parcels = [], []
    for start, end in pairwise(bounds):
        for first in range(start, end, step):
            starts.append(first)
            parcels.append(sent.slice(first, min(step, end - first)).to_batches()[0].serialize().to_pybytes())
    columns = [pa.array(places[starts], pa.int32()), pa.array(parcels, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=[PLACE, column])


def together(batches: Iterable[pa.RecordBatch], at_once: int) -> Iterator[pa.Table]:
    """Give many batches as one table, of about so many bytes."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= at_once:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def unpacked(parcels: pa.Array, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Give the rows of parcels; where there is no parcel, none."""
    for parcel in parcels.drop_null():
        # A copy, since numbers within an array of bytes may begin anywhere, and compiled loops want them in step.
        yield pa.ipc.read_record_batch(pa.py_buffer(parcel.as_py()), schema)
