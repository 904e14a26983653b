"""Several aggregates of each shop's sales: running, and in windows of ten minutes with late sales reported.

Run it: ``python examples/aggregates.py``
"""

import os
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import evenkeel as ek
from evenkeel.operators import Aggregate, ApproxDistinct, Count, Max, Mean, Sum, Tumbling

SALES, BATCHES = 5_000, 4
SUMMARY = Aggregate(
    sales=Count(), total=Sum("price"), highest=Max("price"), average=Mean("price"), buyers=ApproxDistinct("buyer")
)


def sales() -> list[pa.Table]:
    """Half an hour of sales per batch, most in a few shops; one in a hundred is told of more than an hour late."""
    rng = np.random.default_rng(3)
    batches = []
    for batch in range(BATCHES):
        seconds = 1800 * batch + np.sort(rng.integers(0, 1800, SALES))
        late = rng.random(SALES) < (0.01 if batch == BATCHES - 1 else 0)
        shops = [f"shop{shop}" for shop in rng.zipf(1.5, SALES) % 200]
        at = pa.array(1_709_294_400_000_000 + 1_000_000 * np.where(late, seconds - 4000, seconds))
        columns = {"shop": shops, "price": rng.integers(1, 100, SALES), "buyer": rng.integers(0, 2_000, SALES)}
        batches.append(pa.table({**columns, "at": at.cast(pa.timestamp("us", "UTC"))}))
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
    batches = sales()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as checkpoints:
        rows = read_as_stream(spark, batches, folder)
        # Windows are told when they are over: when a sale came that is ten minutes newer than their end.
        windows = (
            ek.stream(rows, key="shop", event_time="at", delay="10 minutes")
            .apply(Tumbling(SUMMARY, "10 minutes"), channels=4)
            .start("memory", checkpoint=f"{checkpoints}/windows", trigger={"availableNow": True})
        )
        windows.await_termination()
        windows.stop()
        # The same on static rows: here without windows, so that each shop gives one row.
        running = (
            ek.stream(spark.read.parquet(folder), key="shop")
            .apply(SUMMARY, channels=4)
            .start("memory", checkpoint=f"{checkpoints}/running")
        )
    print("Windows of ten minutes of shop1:")
    for batch in windows.history:
        late = sum(channel["late"] for channel in batch["reports"][0])
        found = windows.sink.batches[batch["batch"]].to_pylist()
        totals = sorted((f"{row['window_start']:%H:%M}", row["total"]) for row in found if row["shop"] == "shop1")
        print(f"  batch {batch['batch']}: {', '.join(f'{at} {total:,}' for at, total in totals) or '-'}; late: {late}")
    print("The largest shops of all batches:")
    largest = running.sink.table().sort_by([("total", "descending")]).slice(0, 3)
    print(largest.to_pandas().round(2).to_string(index=False))


if __name__ == "__main__":
    main()
