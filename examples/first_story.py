"""First story detection: messages unlike all recent ones that are near them by locality-sensitive hashing.

Run it: ``python examples/first_story.py``
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import evenkeel as ek
from evenkeel.operators import first_story, lsh_keys

MESSAGES, BATCHES = 3_000, 3
STORIES = [
    "storm closes the harbour of {} and ferries stay in port",
    "regatta off {} won by a crew of beginners",
    "old lighthouse near {} is for sale again",
    "whales seen in the bay of {} by fishermen",
    "new bridge at {} opens for ships and trains",
]
PLACES = ["brest", "cork", "genoa", "hobart", "kiel", "oslo", "porto", "riga", "split", "tromso"]


def messages() -> list[pa.Table]:
    """Each batch has a story more than the one before; people repeat it in words of their own."""
    rng = np.random.default_rng(2)
    batches = []
    for batch in range(BATCHES):
        texts = []
        for story, place, extra in rng.integers(0, [len(STORIES) - BATCHES + 1 + batch, 10, 10], (MESSAGES, 3)):
            texts.append(f"{STORIES[story].format(PLACES[place])} {'RT wow look via news' if extra < 2 else ''}")
        batches.append(pa.table({"text": texts}))
    return batches


def with_topic(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give each text its key; runs before the shuffle, a whole Arrow batch at a time."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([lsh_keys(batch["text"], keys=16), batch["text"]], ["topic", "text"])


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
        texts = read_as_stream(spark, messages(), folder).mapInArrow(with_topic, "topic long, text string")
        query = (
            ek.stream(texts, key="topic")
            .apply(first_story(last=200, threshold=0.5), strategy="dlb_l", channels=4)
            .start("memory", checkpoint=checkpoint, trigger={"availableNow": True})
        )
        query.await_termination()
        query.stop()
    for batch, alarms in sorted(query.sink.batches.items()):
        told = sorted({" ".join(text.split()[:2]) for text in alarms["text"].to_pylist()})
        print(f"batch {batch}: {alarms.num_rows} first stories of {MESSAGES:,} messages; about: {', '.join(told)}")
    last = query.sink.batches[BATCHES - 1]["text"].to_pylist()
    print("the new story of the last batch was found:", any(text.startswith("new bridge") for text in last))


if __name__ == "__main__":
    main()
