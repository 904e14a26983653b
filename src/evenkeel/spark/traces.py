"""Traces that are larger than memory, made into histograms by Spark: tuples per window and key, as Arrow."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.operators.mergeable import sql_name
from evenkeel.spark.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["count_keys", "find_keys", "local_session", "read_trace", "survey"]

_BUCKETS = 1 << 20
"""Cold keys are counted together in so many buckets; every number of slots that is a power of two divides it."""
_MOST_KEYS = 1_000_000
_POSITION = f"(monotonically_increasing_id() & {(1 << 33) - 1}L)"  # of a row in its partition


def local_session() -> SparkSession:
    """Give the session that there is, or one on all cores of this machine, unless Spark's own settings say other."""
    from pyspark.sql import SparkSession

    # Workers must run the interpreter that runs us, not whatever python3 is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("evenkeel traces").config("spark.ui.showConsoleProgress", "false")
    return builder.getOrCreate()


def read_trace(spark: SparkSession, path: str, form: str) -> DataFrame:
    """Read a trace with the columns and types that :class:`evenkeel.sim.Trace` gives it, so that keys hash alike.

    Parameters
    ----------
    spark
        The session.
    path
        A file or a folder, or a URI that Spark knows.
    form
        ``"parquet"``, ``"csv"``, ``"lines"``, ``"words"`` or ``"edges"``.
    """
    where = path if "://" in path else Path(path).absolute().as_uri()
    if form == "parquet":
        return spark.read.parquet(where)
    if form == "csv":
        import pyarrow.dataset as ds
        from pyarrow import csv

        separator = "\t" if ".tsv" in Path(path).suffixes else ","
        # Spark would take a column of small numbers for ints, which hash otherwise than longs.
        schema = ds.dataset(path, format=ds.CsvFileFormat(csv.ParseOptions(delimiter=separator))).schema
        return spark.read.csv(where, schema=spark_type(schema), header=True, sep=separator)
    lines = spark.read.text(where)
    if form == "lines":
        return lines.selectExpr("value AS line")
    if form == "words":
        words = lines.selectExpr(r"explode(split(value, '(?U)\\s+')) AS word")
        return words.where("word != ''")
    ends = lines.where("value NOT LIKE '#%'").selectExpr(r"split(trim(value), '\\s+') AS ends")
    return ends.selectExpr("CAST(ends[0] AS BIGINT) AS src", "CAST(ends[1] AS BIGINT) AS dst")


def survey(rows: DataFrame, time: str | None = None) -> tuple[int, float | None, float | None]:
    """Count the tuples, and find the first and the last time, in seconds."""
    wanted = ["count(1)"]
    if time is not None:
        seconds = _seconds(rows, time)
        wanted += [f"min({seconds})", f"max({seconds})", f"count({seconds})"]
    found = rows.selectExpr(*(f"{text} AS c{place}" for place, text in enumerate(wanted))).collect()[0]
    if time is None:
        return int(found[0]), None, None
    if found[3] < found[0]:
        raise InvalidArgumentError(f"The column {time} has {found[0] - found[3]} nulls, or values that are no times.")
    return int(found[0]), found[1], found[2]


def count_keys(
    rows: DataFrame,
    key: Sequence[str],
    *,
    time: str | None = None,
    window_seconds: float | None = None,
    window_tuples: int | None = None,
    by_source: bool = False,
    max_keys: int = _MOST_KEYS,
) -> pa.Table:
    """Count the tuples of each window and key on Spark.

    Windows are cut by time, from the first tuple's on; or by number of tuples, in which case all partitions are read
    from their starts at the same pace, as the sources of a stream are. What comes back is what
    :class:`evenkeel.sim.Histograms` takes: for a trace in the order of its times, or in one partition, the histograms
    of :class:`evenkeel.sim.Trace`.

    Parameters
    ----------
    rows
        The trace.
    key
        The key's columns.
    time
        The column of times: timestamps, or numbers in seconds.
    window_seconds, window_tuples
        How long a window is; one of them.
    by_source
        Whether to count the tuples of each partition apart, as those of a source.
    max_keys
        Beyond the so many hottest, keys are counted together in 2²⁰ buckets, each with its number for a hash, which is
        in the same slot as its keys.

    Returns
    -------
    pyarrow.Table
        Columns ``window``, ``hash``, ``count``, and ``source`` if asked for; by window and hash. At most ``max_keys`` +
        2²⁰ rows per window and source come to the driver.
    """
    if (window_seconds is None) == (window_tuples is None):
        raise InvalidArgumentError("Cut windows either by window_seconds or by window_tuples.")
    names = [*key, *([] if time is None else [time])]
    for name in names:
        if name not in rows.columns:
            raise UnknownNameError("column", name, rows.columns)
    window = _by_tuples(rows, window_tuples) if window_tuples is not None else _by_time(rows, time, window_seconds)
    by = ["window", *(["source"] if by_source else []), "hash"]
    columns = {"window": window, "source": "CAST(spark_partition_id() AS BIGINT)", "hash": _hash_of(key)}
    counted = rows.selectExpr(*(f"{columns[name]} AS {name}" for name in by)).groupBy(*by).count().persist()
    try:
        if counted.select("hash").distinct().count() > max_keys:
            counted = _fold(counted, by, max_keys)
        return counted.orderBy(*by).toArrow()
    finally:
        counted.unpersist()


def find_keys(rows: DataFrame, key: Sequence[str], hashes: Iterable[int]) -> dict[int, str]:
    """Find the keys that have these hashes, as text."""
    wanted = ", ".join(f"{code}L" if code >= 0 else f"({code}L)" for code in hashes)
    if not wanted:
        return {}
    named = rows.selectExpr(f"{_hash_of(key)} AS hash", f"struct({', '.join(map(sql_name, key))}) AS key")
    found = named.where(f"hash IN ({wanted})").groupBy("hash").agg({"key": "first"}).collect()
    return {row[0]: ", ".join(str(value) for value in row[1]) for row in found}


def _hash_of(key: Sequence[str]) -> str:
    return f"xxhash64({', '.join(map(sql_name, key))})"


def _seconds(rows: DataFrame, time: str) -> str:
    """A time in seconds, in SQL."""
    if time not in rows.columns:
        raise UnknownNameError("column", time, rows.columns)
    kind = rows.schema[time].dataType.typeName()
    if kind in {"timestamp", "timestamp_ntz", "date"}:
        return f"CAST(unix_micros(CAST({sql_name(time)} AS TIMESTAMP)) AS DOUBLE) / 1e6D"
    return f"try_cast({sql_name(time)} AS DOUBLE)"


def _by_time(rows: DataFrame, time: str | None, window_seconds: float | None) -> str:
    if time is None:
        raise InvalidArgumentError("window_seconds needs a column of times.")
    _, first, _ = survey(rows, time)
    return f"CAST(floor(({_seconds(rows, time)} - {first or 0.0!r}D) / {float(window_seconds or 1)!r}D) AS BIGINT)"


def _by_tuples(rows: DataFrame, window_tuples: int) -> str:
    if window_tuples < 1:
        raise InvalidArgumentError(f"window_tuples must be at least 1; got {window_tuples}.")
    partitions = rows.selectExpr("spark_partition_id() AS source").distinct().count()
    return f"CAST(floor({_POSITION} / {max(1, window_tuples // max(partitions, 1))}) AS BIGINT)"


def _fold(counted: DataFrame, by: list[str], max_keys: int) -> DataFrame:
    """Count cold keys together."""
    totals: Any = counted.groupBy("hash").agg({"count": "sum"}).orderBy("sum(count)", "hash", ascending=[False, True])
    hot = totals.limit(max_keys).selectExpr("hash AS hot")
    joined = counted.join(hot, counted["hash"] == hot["hot"], "left")
    columns = {"hash": f"coalesce(hot, pmod(hash, {_BUCKETS}L)) AS hash"}
    folded = joined.selectExpr(*(columns.get(name, name) for name in by), "count")
    return folded.groupBy(*by).agg({"count": "sum"}).withColumnRenamed("sum(count)", "count")
