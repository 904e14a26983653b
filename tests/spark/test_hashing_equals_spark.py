"""The hash is Spark's own, bit for bit: proved against Spark on random values and on the awkward ones."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evenkeel.hashing import hash_keys

pytestmark = pytest.mark.spark

ROWS = 110_000  # of which 16 in 17 are not null
EXTREME_TEXT = ["", "a", "ß", "日本語", "😀", "\x00", "a" * 31, "b" * 32, "c" * 33, "ü" * 1000, " ", "0", "NULL"]


def integers(rng: np.random.Generator, kind: str) -> pa.Array:
    limits = np.iinfo(kind)
    values = rng.integers(limits.min, limits.max, ROWS, dtype=kind, endpoint=True)
    values[:5] = [0, 1, -1, limits.min, limits.max]
    return pa.array(values)


def floats(rng: np.random.Generator, kind: str) -> pa.Array:
    bits = {"float32": "uint32", "float64": "uint64"}[kind]
    # Every bit pattern may occur: all NaNs, subnormals, infinities.
    values = rng.integers(0, np.iinfo(bits).max, ROWS, dtype=bits, endpoint=True).view(kind)
    info = np.finfo(kind)
    values[:8] = [0.0, -0.0, np.nan, np.inf, -np.inf, info.max, info.min, info.smallest_subnormal]
    return pa.array(values)


def texts(rng: np.random.Generator) -> list[str]:
    alphabet = np.array(list("abcdefghij XYZ019-_äöüßéπж日本😀"))
    lengths = np.minimum(rng.geometric(0.12, ROWS) - 1, 200)
    letters = rng.choice(alphabet, lengths.sum())
    ends = np.concatenate([[0], np.cumsum(lengths)])
    values = ["".join(letters[a:b]) for a, b in pairwise(ends)]
    values[: len(EXTREME_TEXT)] = EXTREME_TEXT
    return values


def decimals(rng: np.random.Generator, precision: int, scale: int) -> pa.Array:
    """Values of every length in bits, so that every length in bytes occurs too."""
    limit = 10**precision - 1
    bits = rng.integers(1, limit.bit_length(), ROWS, endpoint=True)
    words = rng.integers(0, 2**63, (ROWS, 2))
    signs = rng.choice([-1, 1], ROWS)
    values = [
        int(sign) * min(((int(high) << 63) | int(low)) % (1 << int(width)), limit)
        for (high, low), width, sign in zip(words, bits, signs, strict=True)
    ]
    values[:11] = [0, 1, -1, limit, -limit, 127, 128, -128, -129, 255, 256]
    return pa.array([Decimal(f"{value}E-{scale}") for value in values], pa.decimal128(precision, scale))


def micros(rng: np.random.Generator, kind: pa.DataType) -> pa.Array:
    return pa.array(rng.integers(-(10**16), 10**16, ROWS)).view(kind)


def days(rng: np.random.Generator) -> pa.Array:
    return pa.array(np.clip(rng.normal(0, 300_000, ROWS), -700_000, 2_900_000).astype(np.int32)).view(pa.date32())


COLUMNS = {
    "string": lambda rng: pa.array(texts(rng)),
    "binary": lambda rng: pa.array([text.encode("utf-16") for text in texts(rng)], pa.binary()),
    "boolean": lambda rng: pa.array(rng.integers(0, 2, ROWS).astype(bool)),
    "byte": lambda rng: integers(rng, "int8"),
    "short": lambda rng: integers(rng, "int16"),
    "int": lambda rng: integers(rng, "int32"),
    "long": lambda rng: integers(rng, "int64"),
    "float": lambda rng: floats(rng, "float32"),
    "double": lambda rng: floats(rng, "float64"),
    "date": days,
    "timestamp": lambda rng: micros(rng, pa.timestamp("us", "UTC")),
    "timestamp_ntz": lambda rng: micros(rng, pa.timestamp("us")),
    "interval": lambda rng: micros(rng, pa.duration("us")),
    "decimal_9": lambda rng: decimals(rng, 9, 2),
    "decimal_18": lambda rng: decimals(rng, 18, 6),
    "decimal_19": lambda rng: decimals(rng, 19, 0),
    "decimal_38": lambda rng: decimals(rng, 38, 10),
}


@pytest.fixture(scope="module")
def keys() -> pa.Table:
    """All columns; every 17th value is null, each column out of step with the others."""
    rng = np.random.default_rng(20_260)
    rows = np.arange(ROWS)
    return pa.table(
        {
            name: pc.if_else(pa.array((rows + shift) % 17 != 16), make(rng), None)
            for shift, (name, make) in enumerate(COLUMNS.items())
        }
    )


@pytest.fixture(scope="module")
def spark_hashes(spark, keys):
    """xxhash64 of each column, of all together, and of a struct, in one pass over Spark."""
    from pyspark.sql import functions as F

    names = keys.column_names
    frame = spark.createDataFrame(keys).select(
        *[F.xxhash64(name).alias(name) for name in names],
        F.xxhash64(*names).alias("composite"),
        F.xxhash64("string", "long").alias("pair"),
        F.xxhash64(F.struct("int", F.struct("string", "decimal_38"))).alias("struct"),
    )
    return frame.toArrow()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_hashes_as_in_spark(name, keys, spark_hashes):
    assert 0 < keys[name].null_count < ROWS // 10
    np.testing.assert_array_equal(hash_keys(keys[name]), spark_hashes[name].to_numpy())


def test_a_composite_key_of_every_type_hashes_as_in_spark(keys, spark_hashes):
    np.testing.assert_array_equal(hash_keys(*keys.columns), spark_hashes["composite"].to_numpy())


def test_the_order_of_the_columns_counts_as_in_spark(keys, spark_hashes):
    expected = spark_hashes["pair"].to_numpy()
    np.testing.assert_array_equal(hash_keys(keys["string"], keys["long"]), expected)
    assert (hash_keys(keys["long"], keys["string"]) != expected).any()


def test_a_struct_hashes_as_in_spark(keys, spark_hashes):
    inner = pa.StructArray.from_arrays(
        [keys["string"].combine_chunks(), keys["decimal_38"].combine_chunks()], names=["string", "decimal_38"]
    )
    outer = pa.StructArray.from_arrays([keys["int"].combine_chunks(), inner], names=["int", "inner"])
    np.testing.assert_array_equal(hash_keys(outer), spark_hashes["struct"].to_numpy())
