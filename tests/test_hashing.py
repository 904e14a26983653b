"""Hashing without Spark: one key, one hash, however the column is laid out."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import EvenkeelError, InvalidArgumentError, UnsupportedTypeError
from evenkeel.hashing import hash_keys

M64 = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def slow_xxh64(data: bytes, seed: int) -> int:
    """XXH64 from its specification, one byte string at a time."""

    def rotate(x: int, r: int) -> int:
        return ((x << r) | (x >> (64 - r))) & M64

    def lane_round(lane: int, word: int) -> int:
        return rotate((lane + word * P2) & M64, 31) * P1 & M64

    at, end = 0, len(data)
    if end >= 32:
        lanes = [(seed + P1 + P2) & M64, (seed + P2) & M64, seed, (seed - P1) & M64]
        while at <= end - 32:
            for i in range(4):
                lanes[i] = lane_round(lanes[i], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        state = sum(rotate(lane, r) for lane, r in zip(lanes, (1, 7, 12, 18), strict=True)) & M64
        for lane in lanes:
            state = ((state ^ lane_round(0, lane)) * P1 + P4) & M64
    else:
        state = (seed + P5) & M64
    state = (state + end) & M64
    while at <= end - 8:
        state ^= lane_round(0, int.from_bytes(data[at : at + 8], "little"))
        state = (rotate(state, 27) * P1 + P4) & M64
        at += 8
    if at <= end - 4:
        state ^= int.from_bytes(data[at : at + 4], "little") * P1 & M64
        state = (rotate(state, 23) * P2 + P3) & M64
        at += 4
    for byte in data[at:]:
        state ^= byte * P5 & M64
        state = rotate(state, 11) * P1 & M64
    state = (state ^ (state >> 33)) * P2 & M64
    state = (state ^ (state >> 29)) * P3 & M64
    return state ^ (state >> 32)


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


@given(st.lists(st.binary(max_size=100), max_size=20), st.integers(-(2**63), 2**63 - 1))
def test_bytes_hash_as_the_specification_says(values, seed):
    expected = [signed(slow_xxh64(value, seed & M64)) for value in values]
    assert hash_keys(pa.array(values, pa.binary()), seed=seed).tolist() == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_a_long_hashes_as_its_eight_bytes(values):
    expected = [signed(slow_xxh64(value.to_bytes(8, "little", signed=True), 42)) for value in values]
    assert hash_keys(pa.array(values, pa.int64())).tolist() == expected


WORDS = ["", "a", "häuser", None, "x" * 40, "a"]
ONE_HASH_EACH = {
    "chunked": pa.chunked_array([["", "a"], ["häuser", None, "x" * 40], [], ["a"]]),
    "sliced": pa.array(["skipped", "also", *WORDS, "after"]).slice(2, 6),
    "dictionary encoded": pa.array(WORDS).dictionary_encode(),
    "with 64-bit offsets": pa.array(WORDS, pa.large_string()),
    "as a string view": pa.array(WORDS, pa.string_view()),
    "as bytes": pa.array([w if w is None else w.encode() for w in WORDS], pa.binary()),
    "as a list": WORDS,
    "as a NumPy object array": np.array(WORDS, object),
}


@pytest.mark.parametrize("column", ONE_HASH_EACH.values(), ids=ONE_HASH_EACH.keys())
def test_the_layout_of_a_text_column_does_not_matter(column):
    np.testing.assert_array_equal(hash_keys(column), hash_keys(pa.array(WORDS)))


def test_numbers_hash_by_their_declared_width():
    assert hash_keys(np.array([7], np.int8)) == hash_keys(np.array([7], np.int32))
    assert hash_keys(np.array([7], np.int64)) != hash_keys(np.array([7], np.int32))


def test_zero_has_one_hash_and_so_has_nan():
    values = hash_keys(np.array([0.0, -0.0, np.nan, np.frombuffer(b"\x01\0\0\0\0\0\xf0\x7f")[0]]))
    assert values[0] == values[1]
    assert values[2] == values[3]


TIMES_US = [-1_500_000, 0, None, 2_000_000]


@pytest.mark.parametrize(("unit", "scale"), [("ns", 1000), ("us", 1)], ids=["nanoseconds", "microseconds"])
def test_times_hash_as_microseconds(unit, scale):
    times = pa.array([None if t is None else t * scale for t in TIMES_US]).view(pa.timestamp(unit, "UTC"))
    np.testing.assert_array_equal(hash_keys(times), hash_keys(pa.array(TIMES_US)))


def test_nanoseconds_before_1970_are_cut_downwards():
    times = pa.array([-1, -1000, -1001]).view(pa.timestamp("ns"))
    np.testing.assert_array_equal(hash_keys(times), hash_keys(np.array([-1, -1, -2])))


def test_coarse_times_are_widened():
    np.testing.assert_array_equal(hash_keys(pa.array([3]).view(pa.timestamp("s"))), hash_keys(np.array([3_000_000])))
    with pytest.raises(InvalidArgumentError, match="too far away"):
        hash_keys(pa.array([2**62]).view(pa.timestamp("s")))


def test_a_decimal_of_few_digits_hashes_as_a_long():
    assert hash_keys(pa.array([Decimal("1.25")], pa.decimal128(18, 2))) == hash_keys(np.array([125]))
    assert hash_keys(pa.array([Decimal("1.25")], pa.decimal128(19, 2))) != hash_keys(np.array([125]))


def test_a_table_stands_for_its_columns():
    table = pa.table({"a": [1, None, 3], "b": ["x", "y", None]})
    expected = hash_keys(table["a"], table["b"])
    np.testing.assert_array_equal(hash_keys(table), expected)
    np.testing.assert_array_equal(hash_keys(table.to_batches()[0]), expected)


def test_null_adds_nothing():
    assert hash_keys(pa.nulls(3), seed=5).tolist() == [5, 5, 5]
    np.testing.assert_array_equal(hash_keys(pa.nulls(2), [1, 2]), hash_keys([1, 2]))


@pytest.mark.parametrize(
    "column",
    [pa.array([], pa.string()), [], pa.chunked_array([], pa.int64()), np.empty(0)],
    ids=["strings", "a list", "no chunks", "floats"],
)
def test_no_rows_give_no_hashes(column):
    result = hash_keys(column)
    assert result.shape == (0,)
    assert result.dtype == np.int64


@pytest.mark.parametrize(
    "column",
    [
        np.array([1], np.uint64),
        np.array([1], np.float16),
        pa.array([[1, 2]]),
        pa.array([], pa.uint8()),
        pa.array([], pa.struct([("a", pa.uint8())])),
        pa.array([Decimal(1)], pa.decimal256(40, 0)),
        [1, "mixed"],
        [object()],
    ],
    ids=["unsigned", "half", "list", "empty unsigned", "empty struct", "wide decimal", "mixed", "objects"],
)
def test_a_type_without_a_spark_hash_is_refused(column):
    with pytest.raises(UnsupportedTypeError):
        hash_keys(column)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"one length; got \[1, 2\]"):
        hash_keys([1], [1, 2])
    with pytest.raises(EvenkeelError, match="at least one column"):
        hash_keys()
