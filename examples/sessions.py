"""Visits of a site: clicks of a user with no more than half an hour between them, on a stream and on static rows.

Run it: ``python examples/sessions.py``
"""

import os
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import evenkeel as ek
from evenkeel.operators import Aggregate, Count, Sessions, Sum

CLICKS, USERS, BATCHES = 5_000, 500, 4
VISITS = Sessions("30 minutes", Aggregate(clicks=Count(), bytes=Sum("bytes")))


def clicks() -> list[pa.Table]:
    """Six hours of clicks per batch, up to ten minutes out of order; a few users click all day."""
    rng = np.random.default_rng(5)
    shares = 1 / np.arange(1, USERS + 1)
    batches = []
    for batch in range(BATCHES):
        seconds = 6 * 3600 * batch + np.sort(rng.integers(0, 6 * 3600, CLICKS)) - rng.integers(0, 600, CLICKS)
        users = [f"user{user}" for user in rng.choice(USERS, CLICKS, p=shares / shares.sum())]
        at = pa.array(1_709_251_200_000_000 + 1_000_000 * seconds).cast(pa.timestamp("us", "UTC"))
        batches.append(pa.table({"user": users, "at": at, "bytes": rng.integers(200, 9_000, CLICKS)}))
    return batches


def read_as_stream(spark: SparkSession, batches: list[pa.Table], folder: str) -> DataFrame:
    """Write one file per micro-batch, and read them as a stream."""
    for number, batch in enumerate(batches):
        pq.write_table(batch, f"{folder}/{number}.parquet")
        os.utime(f"{folder}/{number}.parquet", (number, number))  # the stream goes by their times
    schema = spark.read.parquet(folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as checkpoints:
        rows = read_as_stream(spark, clicks(), folder)
        stream = (
            ek.stream(rows, key="user", event_time="at", delay="10 minutes")
            .apply(VISITS, strategy="keel", channels=4)
            .start("memory", checkpoint=f"{checkpoints}/stream", trigger={"availableNow": True})
        )
        stream.await_termination()
        stream.stop()
        static = spark.read.parquet(folder)
        # On static rows the end is known, so all sessions close.
        batch = (
            ek.stream(static, key="user", event_time="at")
            .apply(VISITS, channels=4)
            .start("memory", checkpoint=f"{checkpoints}/batch")
        )
        ours = batch.sink.table()
        grouped = static.groupBy("user", F.session_window("at", "30 minutes"))
        spark_has = grouped.agg(F.count("*").alias("clicks"), F.sum("bytes").alias("bytes")).toArrow()
    for number, found in sorted(stream.sink.batches.items()):
        print(f"batch {number}: {found.num_rows:,} visits ended")
    names = ["user", "clicks", "bytes"]
    print(ours.sort_by([("clicks", "descending")]).slice(0, 3).to_pandas().to_string(index=False))
    same = sorted(map(str, ours.select(names).to_pylist())) == sorted(map(str, spark_has.select(names).to_pylist()))
    print(f"{ours.num_rows:,} visits in all; equal to Spark's session_window: {same}")


if __name__ == "__main__":
    main()
