"""Rows survive the trip to bytes and back, whatever is in them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import CorruptDataError, UnsupportedTypeError
from evenkeel.operators import RowCodec

VALUES = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.date32(): st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.timezone.utc)),
    pa.decimal128(20, 3): st.decimals(-(10**15), 10**15, places=3),
    pa.string(): st.text(max_size=20),
    pa.large_string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=20),
}


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=9))
    rows = draw(st.integers(0, 6))
    columns = [pa.array(draw(st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows)), kind) for kind in kinds]
    return pa.table(columns, names=[f"c{i}" for i in range(len(kinds))])


@given(tables())
def test_a_table_comes_back_as_it_was(table):
    codec = RowCodec(table.schema)
    assert codec.decode(codec.encode(table)).equals(table)


@given(tables(), st.integers(0, 6))
def test_slices_and_chunks_make_no_difference(table, cut):
    codec = RowCodec(table.schema)
    parts = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    assert codec.encode(parts).equals(codec.encode(table))
    assert codec.decode(codec.encode(table.slice(cut))).equals(table.slice(cut))


@given(tables())
def test_a_missing_row_is_a_row_of_nulls(table):
    codec = RowCodec(table.schema)
    encoded = codec.encode(table).to_pylist()
    found = codec.decode(pa.array([None, *encoded], pa.large_binary()))
    assert found.slice(1).equals(table)
    assert all(value is None for value in found.slice(0, 1).to_pylist()[0].values())


def test_what_a_null_hides_does_not_show():
    codec = RowCodec(pa.schema([("a", pa.int64())]))
    hidden = pa.Array.from_buffers(pa.int64(), 1, [pa.py_buffer(b"\x00"), pa.py_buffer((7).to_bytes(8, "little"))])
    assert codec.encode(pa.table({"a": hidden})) == codec.encode(pa.table({"a": pa.array([None], pa.int64())}))


def test_damaged_rows_are_noticed():
    codec = RowCodec(pa.schema([("a", pa.string()), ("b", pa.decimal128(5, 2))]))
    row = codec.encode(pa.table({"a": ["text"], "b": pa.array([Decimal("1.25")], pa.decimal128(5, 2))}))[0].as_py()
    for damaged in (row[:-1], row + b"x", row[:3], b""):
        with pytest.raises(CorruptDataError):
            codec.decode(pa.array([damaged], pa.binary()))


def test_nested_columns_are_refused_by_name():
    with pytest.raises(UnsupportedTypeError, match="'history'"):
        RowCodec(pa.schema([("history", pa.list_(pa.int64()))]))
