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


KINDS = st.recursive(
    st.sampled_from(list(VALUES)),
    lambda kinds: st.one_of(
        kinds.map(pa.list_),
        kinds.map(pa.large_list),
        st.lists(kinds, max_size=3).map(lambda of: pa.struct([(f"f{i}", kind) for i, kind in enumerate(of)])),
    ),
    max_leaves=5,
)


def values(kind: pa.DataType) -> st.SearchStrategy:
    """Values of a type, nested or not, nulls at every level."""
    if pa.types.is_struct(kind):
        return st.none() | st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    if pa.types.is_nested(kind):
        return st.none() | st.lists(values(kind.value_type), max_size=4)
    return st.none() | VALUES[kind]


@st.composite
def tables(draw):
    kinds = draw(st.lists(KINDS, min_size=1, max_size=6))
    rows = draw(st.integers(0, 6))
    columns = [pa.array(draw(st.lists(values(kind), min_size=rows, max_size=rows)), kind) for kind in kinds]
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


def test_what_a_null_list_or_struct_hides_does_not_show():
    inner = pa.array([1, 2, 3], pa.int64())
    some = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), inner, mask=pa.array([False, True]))
    both = pa.StructArray.from_arrays([some], ["list"], mask=pa.array([True, False]))
    shown = pa.array([None, {"list": None}], both.type)
    assert both.field(0).flatten().to_pylist() == [1]
    codec = RowCodec(pa.schema([("both", both.type)]))
    assert codec.encode(pa.table({"both": both})) == codec.encode(pa.table({"both": shown}))
    assert codec.decode(codec.encode(pa.table({"both": both}))).to_pylist() == [
        {"both": None},
        {"both": {"list": None}},
    ]


def test_the_bytes_of_a_flat_row_are_as_documented():
    table = pa.table({"word": ["a", None], "count": pa.array([None, 258], pa.int16()), "on": [True, False]})
    assert RowCodec(table.schema).encode(table).to_pylist() == [
        b"\x02" + b"\x01\x00\x00\x00" + b"a" + b"\x01" + b"\x00\x00" + b"\x01",
        b"\x01" + b"\x01" + b"\x00\x00\x00\x00" + b"\x02\x01" + b"\x00",
    ]


def test_the_bytes_of_a_list_are_as_documented():
    kind = pa.list_(pa.struct([("word", pa.string()), ("at", pa.int8())]))
    lists = [[{"word": "a", "at": 1}, {"word": None, "at": 2}, {"word": "bc", "at": 3}], [], None]
    encoded = RowCodec(pa.schema([("log", kind)])).encode(pa.table({"log": pa.array(lists, kind)})).to_pylist()
    lengths = b"\x01\x00\x00\x00" + b"\x00\x00\x00\x00" + b"\x02\x00\x00\x00"
    assert encoded == [
        b"\x04" + b"\x03\x00\x00\x00" + b"\x00\x01\x00" + lengths + b"abc" + b"\x01\x02\x03",
        b"\x00" + b"\x00\x00\x00\x00",
        b"\x01" + b"\x01" + b"\x00\x00\x00\x00",
    ]


def test_structs_without_fields_take_a_byte_each_so_that_a_wrong_number_of_them_is_noticed():
    kind = pa.list_(pa.struct([]))
    codec = RowCodec(pa.schema([("some", kind)]))
    table = pa.table({"some": pa.array([[{}, None, {}], [], None], kind)})
    encoded = codec.encode(table)
    assert codec.decode(encoded).equals(table)
    with pytest.raises(CorruptDataError):
        codec.decode(pa.array([b"\x00" + b"\xff\xff\xff\xff" + b"\x00" * 3]))


def test_a_long_list_comes_back():
    kind = pa.list_(pa.struct([("at", pa.int64()), ("word", pa.string())]))
    table = pa.table({"log": pa.array([[{"at": i, "word": str(i)} for i in range(70_000)], None, []], kind)})
    codec = RowCodec(table.schema)
    assert codec.decode(codec.encode(table)).equals(table)


def test_damaged_rows_are_noticed():
    codec = RowCodec(pa.schema([("a", pa.string()), ("b", pa.decimal128(5, 2))]))
    row = codec.encode(pa.table({"a": ["text"], "b": pa.array([Decimal("1.25")], pa.decimal128(5, 2))}))[0].as_py()
    for damaged in (row[:-1], row + b"x", row[:3], b""):
        with pytest.raises(CorruptDataError):
            codec.decode(pa.array([damaged], pa.binary()))


@given(tables().filter(lambda table: table.num_rows), st.data())
def test_bytes_cut_off_or_added_are_noticed_in_nested_rows_too(table, data):
    codec = RowCodec(table.schema)
    row = codec.encode(table)[0].as_py()
    cut = data.draw(st.integers(0, len(row) - 1))
    for damaged in (row[:cut], row + b"\x00"):
        with pytest.raises(CorruptDataError):
            codec.decode(pa.array([damaged], pa.binary()))


@given(st.binary(max_size=60), KINDS)
def test_any_bytes_decode_to_a_valid_column_or_raise(junk, kind):
    codec = RowCodec(pa.schema([("c", kind)]))
    try:
        table = codec.decode(pa.array([junk], pa.binary()))
    except CorruptDataError:
        return
    table.validate()
    assert table.num_rows == 1


@pytest.mark.parametrize("place", [1, 5, 9])
def test_lengths_within_a_list_that_do_not_fit_are_noticed(place):
    codec = RowCodec(pa.schema([("words", pa.list_(pa.string()))]))
    row = bytearray(codec.encode(pa.table({"words": [["a", "bc"]]}))[0].as_py())
    row[place] += 1
    with pytest.raises(CorruptDataError):
        codec.decode(pa.array([bytes(row)], pa.binary()))


def test_types_without_an_encoding_are_refused_by_name():
    with pytest.raises(UnsupportedTypeError, match="'history'"):
        RowCodec(pa.schema([("history", pa.list_(pa.map_(pa.string(), pa.int64())))]))
