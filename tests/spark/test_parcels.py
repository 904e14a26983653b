"""What is packed comes out again: every row, once, where it goes, in order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.spark.homes import PLACE
from evenkeel.spark.parcels import packed, unpacked

SCHEMA = pa.schema([("word", pa.string()), ("value", pa.int64())])


@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=8) | st.none(), st.integers(-9, 9))))
def test_every_row_comes_out_where_it_goes_in_order(rows):
    table = pa.table([[word for _, word, _ in rows], [value for *_, value in rows]], schema=SCHEMA)
    sent = packed(table, np.array([place for place, *_ in rows], np.int32), "parcel")
    found = {}
    for place, parcel in zip(sent[PLACE].to_pylist(), sent["parcel"], strict=True):
        for batch in unpacked(pa.array([parcel.as_py(), None], pa.binary()), SCHEMA):
            found.setdefault(place, []).extend(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    expected = {}
    for place, word, value in rows:
        expected.setdefault(place, []).append((word, value))
    assert found == expected


def test_parcels_are_small_unless_a_row_is_not():
    words = ["x" * 1000] * 500 + ["y" * 300_000]
    table = pa.table([words, range(501)], schema=SCHEMA)
    parcels = packed(table, np.zeros(501, np.int32), "parcel")["parcel"]
    sizes = [len(parcel.as_py()) for parcel in parcels]
    assert len(sizes) > 8
    assert sorted(sizes)[-2] < 100_000
    assert sizes[-1] < 500_000


def test_numbers_of_a_parcel_are_in_step():
    table = pa.table([["a", "bc", "def"], [1, 2, 3]], schema=SCHEMA)
    (parcel,) = packed(table, np.zeros(3, np.int32), "parcel")["parcel"]
    shifted = pa.array([b"x", parcel.as_py()], pa.binary())[1:]
    (batch,) = unpacked(shifted, SCHEMA)
    assert batch["value"].to_numpy().flags.aligned
    assert batch.to_pylist() == table.to_pylist()
