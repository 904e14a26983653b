"""The most frequent addresses of a log, in bounded memory, with bounds on each count.

Run it: ``python examples/heavy_hitters.py``
"""

import os
import sys
import tempfile
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import evenkeel as ek
from evenkeel.operators import HeavyHitters

REQUESTS, ADDRESSES, BATCHES = 40_000, 50_000, 3
BUCKETS, CAPACITY, TOP = 16, 20, 8


def requests() -> list[pa.Table]:
    rng = np.random.default_rng(4)
    shares = 1 / np.arange(1, ADDRESSES + 1) ** 1.1
    ranks = rng.choice(ADDRESSES, (BATCHES, REQUESTS), p=shares / shares.sum())
    return [pa.table({"address": [f"10.{r >> 16}.{r >> 8 & 255}.{r & 255}" for r in batch]}) for batch in ranks]


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
    batches = requests()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as checkpoint:
        # With a bucket of the address as the key, an address is in one summary; where "pkg" splits the bucket in two,
        # in two: errors do not grow with the number of channels.
        rows = read_as_stream(spark, batches, folder).withColumn(
            "bucket", F.expr(f"pmod(xxhash64(address), {BUCKETS})")
        )
        query = (
            ek.stream(rows, key="bucket")
            .apply(HeavyHitters("address", capacity=CAPACITY, k=TOP), strategy="pkg", channels=4)
            .start("memory", checkpoint=checkpoint, trigger={"availableNow": True})
        )
        query.await_termination()
        query.stop()
    truth = Counter(address for batch in batches for address in batch["address"].to_pylist())
    last = query.sink.batches[BATCHES - 1].sort_by([("count", "descending")]).slice(0, TOP).to_pylist()
    print(f"{'address':<12} {'at least':>9} {'at most':>9} {'truly':>9}")
    for row in last:
        least, most = row["count"] - row["error"], row["count"]
        print(f"{row['address']:<12} {least:>9,} {most:>9,} {truth[row['address']]:>9,}")
    within = all(row["count"] - row["error"] <= truth[row["address"]] <= row["count"] for row in last)
    print(f"{len(truth):,} addresses in {BUCKETS * CAPACITY:,} counters; all true counts within their bounds: {within}")


if __name__ == "__main__":
    main()
