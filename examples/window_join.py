"""Orders and the payments that follow them within half an hour: a join of two streams by key and nearness in time.

Run it: ``python examples/window_join.py``
"""

import os
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import evenkeel as ek

ROWS, CUSTOMERS = 5_000, 1_000
NOON = datetime(2024, 3, 1, 12, tzinfo=timezone.utc)


def orders_and_payments() -> tuple[pa.Table, pa.Table]:
    """Three hours of both; a few customers order most, and one payment in five comes too late or never."""
    rng = np.random.default_rng(7)
    shares = 1 / np.arange(1, CUSTOMERS + 1) ** 0.7
    customer = rng.choice(CUSTOMERS, ROWS, p=shares / shares.sum())
    ordered = np.sort(rng.integers(0, 3 * 3600, ROWS))
    paid = ordered + np.where(rng.random(ROWS) < 0.8, rng.integers(5, 1800, ROWS), 7200)
    by_time = np.argsort(paid, kind="stable")
    amount = rng.integers(5, 500, ROWS)
    orders = pa.table({"customer": customer, "at": times(ordered), "amount": amount})
    payments = pa.table({"customer": customer, "at": times(paid), "paid": amount}).take(by_time)
    return orders, payments


def times(seconds: np.ndarray) -> pa.Array:
    return pa.array([NOON + timedelta(seconds=int(second)) for second in seconds], pa.timestamp("us", "UTC"))


def as_stream(spark: SparkSession, table: pa.Table, folder: str) -> DataFrame:
    """Write the rows as one file per hour, and read them as a stream, one file per micro-batch."""
    Path(folder).mkdir()
    hours = np.array([(at - NOON) // timedelta(hours=1) for at in table["at"].to_pylist()])
    for hour in range(hours.max() + 1):
        pq.write_table(table.filter(hours == hour), f"{folder}/{hour}.parquet")
        os.utime(f"{folder}/{hour}.parquet", (hour, hour))  # the stream goes by their times
    schema = spark.read.parquet(folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    orders, payments = orders_and_payments()
    with tempfile.TemporaryDirectory() as folder:
        query = (
            ek.join(
                as_stream(spark, orders, f"{folder}/orders"),
                as_stream(spark, payments, f"{folder}/payments"),
                key="customer",
                event_time="at",
                within="30 minutes",
                delay="1 hour",
                names=("order", "payment"),
            )
            .apply(strategy="keel", channels=4)
            .start("memory", checkpoint=f"{folder}/checkpoint", trigger={"availableNow": True})
        )
        query.await_termination()
        query.stop()
    pairs = query.sink.table()
    for batch, found in sorted(query.sink.batches.items()):
        print(f"batch {batch}: {found.num_rows:,} pairs of an order and a payment")
    print(pairs.slice(0, 5).to_pandas().to_string(index=False))

    spark.createDataFrame(orders).createOrReplaceTempView("orders")
    spark.createDataFrame(payments).createOrReplaceTempView("payments")
    same = spark.sql(
        "SELECT count(*) FROM orders o JOIN payments p ON o.customer = p.customer "
        "AND p.at BETWEEN o.at - INTERVAL 30 MINUTES AND o.at + INTERVAL 30 MINUTES"
    ).first()[0]
    print(f"{pairs.num_rows:,} pairs in the stream; {same:,} by a batch join of Spark")


if __name__ == "__main__":
    main()
