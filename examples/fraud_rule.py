"""Rules in SQL over each card's payments: amounts far above the usual, and trial payments before a large one.

Run it: ``python examples/fraud_rule.py``
"""

import os
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import evenkeel as ek
from evenkeel.operators import Detector, Reordered

PAYMENTS, CARDS, BATCHES = 8_000, 300, 3
RULES = {
    "far above the usual": """
        SELECT amount, avg(amount) OVER before AS usual FROM payments
        QUALIFY amount > 20 * avg(amount) OVER before AND count(*) OVER before >= 10
        WINDOW before AS (ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING)
    """,
    "trials, then a large one": """
        SELECT * FROM payments MATCH_RECOGNIZE (
            MEASURES LAST(large.amount) AS amount, COUNT(trial.*) AS trials
            PATTERN (trial{3,} large) WITHIN INTERVAL '10 minutes'
            DEFINE trial AS amount < 2, large AS amount > 500
        )
    """,
}


def payments() -> list[pa.Table]:
    """An hour of payments per batch, up to a minute out of order; in each a card is stolen."""
    rng = np.random.default_rng(11)
    batches = []
    for batch in range(BATCHES):
        cards = rng.zipf(1.4, PAYMENTS) % CARDS
        amounts = np.round(rng.gamma(4, 10, PAYMENTS) + 2, 2)
        seconds = np.sort(rng.integers(0, 3600, PAYMENTS))
        stolen = np.arange(2_000, 2_004)  # four payments in a row, of a card that is rarely used
        cards[stolen], amounts[stolen] = CARDS + batch, [1.0, 1.5, 1.0, 899.0]
        amounts[5_000] = 2_500.0  # one payment that is far above its card's others
        cards[5_000] = 1
        micros = 1_709_294_400_000_000 + 1_000_000 * (3600 * batch + seconds) + np.arange(PAYMENTS)
        late = np.argsort(seconds + rng.integers(0, 60, PAYMENTS), kind="stable")  # the order in which they arrive
        at = pa.array(micros).cast(pa.timestamp("us", "UTC"))
        batches.append(pa.table({"card": cards, "at": at, "amount": amounts}).take(pa.array(late)))
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
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as checkpoint:
        # Rules look at one payment after the other, so they get them in order of time: those that may still have
        # to wait for an earlier one do, for a minute. Keys with their buffers and windows move as wholes.
        query = (
            ek.stream(read_as_stream(spark, payments(), folder), key="card", event_time="at", delay="1 minute")
            .apply(Reordered(Detector(RULES)), strategy="dlb_h", channels=4)
            .start("memory", checkpoint=checkpoint, trigger={"availableNow": True})
        )
        query.await_termination()
        query.stop()
    alarms = query.sink.table().sort_by("time").to_pylist()
    for alarm in alarms:
        why = f"usual {alarm['usual']:.2f}" if alarm["usual"] is not None else f"after {alarm['trials']} trials"
        print(f"{alarm['time']:%H:%M:%S}  card {alarm['card']:>3}  {alarm['amount']:>7.2f}  {alarm['rule']} ({why})")
    found = sum(alarm["rule"].startswith("trials") for alarm in alarms)
    print(f"{found} of {BATCHES - 1} stolen cards found; the last hour's payments wait for the watermark")


if __name__ == "__main__":
    main()
