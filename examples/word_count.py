"""The k most frequent words of a stream, counted by key grouping, shuffle grouping and partial key grouping.

What each costs: how even the channels are, how many counters are held, and how many rows are merged.
Run it: ``python examples/word_count.py``
"""

import os
import sys
import tempfile
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import evenkeel as ek
from evenkeel.operators import Count, TopK

WORDS, BATCHES, CHANNELS, TOP = 20_000, 3, 4, 5
STRATEGIES = {
    "key_grouping": {"combine": False},
    "shuffle": {"aggregate_every": BATCHES},
    "pkg": {"aggregate_every": BATCHES},
}


def texts() -> list[pa.Table]:
    """Words as in a language: the most frequent one is a tenth of all."""
    rng = np.random.default_rng(1)
    shares = 1 / np.arange(1, 5_001)
    ranks = rng.choice(5_000, (BATCHES, WORDS), p=shares / shares.sum())
    return [pa.table({"word": [f"word{rank}" for rank in batch]}) for batch in ranks]


def read_as_stream(spark: SparkSession, batches: list[pa.Table], folder: str) -> DataFrame:
    """Write one file per micro-batch, and read them as a stream."""
    for number, batch in enumerate(batches):
        pq.write_table(batch, f"{folder}/{number}.parquet")
        os.utime(f"{folder}/{number}.parquet", (number, number))  # the stream goes by their times
    schema = spark.read.parquet(folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)


def count(words: DataFrame, strategy: str, options: dict[str, Any], checkpoint: str) -> ek.Query:
    """Count words on many channels, then rank all of them on one; ``all`` is the key of the ranking."""
    query = (
        ek.stream(words.withColumn("all", F.lit(0)), key=["all", "word"])
        .apply(Count(), strategy=strategy, channels=CHANNELS, **options)
        .key_by("all")
        .apply(TopK(TOP), strategy="key_grouping", channels=1)
        .start("memory", checkpoint=checkpoint, trigger={"availableNow": True})
    )
    query.await_termination()
    query.stop()
    return query


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    batches = texts()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as checkpoints:
        words = read_as_stream(spark, batches, folder)
        print(f"{'grouping':<13} {'heaviest channel':>16} {'counters held':>14} {'rows to merge':>14}")
        for strategy, options in STRATEGIES.items():
            query = count(words, strategy, options, f"{checkpoints}/{strategy}")
            counting, following = ([batch["reports"][stage] for batch in query.history] for stage in (0, 1))
            rows = np.sum([[channel["rows"] for channel in batch] for batch in counting], axis=0)
            held = sum(sum(channel["loads"]["held_keys"]) for channel in counting[-2])
            merged = sum(channel["rows"] for batch in following for channel in batch)
            if strategy == "key_grouping":
                merged = 0  # a word is in one place, and the ranking follows at once
            print(f"{strategy:<13} {rows.max() / rows.mean():>15.2f}× {held:>14,} {merged:>14,}")
            ranking = query.sink.batches[max(query.sink.batches)].to_pylist()
    truth = Counter(word for batch in batches for word in batch["word"].to_pylist()).most_common(TOP)
    found = [(row["word"], row["count"]) for row in ranking]
    print("most frequent:", ", ".join(f"{word} {count:,}" for word, count in found))
    print("as counted in plain Python:", found == truth)


if __name__ == "__main__":
    main()
