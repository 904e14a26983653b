"""Naive Bayes on a stream: scikit-learn's bundled digits, learned with hot features split over channels.

Run it: ``python examples/naive_bayes.py``
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from sklearn.datasets import load_digits
from sklearn.naive_bayes import MultinomialNB

import evenkeel as ek
from evenkeel.operators import FeatureClassCounts, NaiveBayesPredict, count_rows

PIXELS = [f"pixel{number}" for number in range(64)]
TRAIN = 1_200


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Brightness of each pixel, and which digit it is; in random order."""
    pixels, classes = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(classes))
    return pixels[order].astype(np.int64), classes[order]


def as_tables(pixels: np.ndarray, classes: np.ndarray) -> list[pa.Table]:
    """Two batches to learn from, and one that asks; ``probe`` is true for those that ask."""
    asks = np.arange(len(classes)) >= TRAIN
    columns = dict(zip(PIXELS, pixels.T, strict=True))
    label = pa.array(classes, mask=asks)
    table = pa.table({"document": np.arange(len(classes)), "class": label, "probe": asks, **columns})
    return [table[: TRAIN // 2], table[TRAIN // 2 : TRAIN], table[TRAIN:]]


def read_as_stream(spark: SparkSession, batches: list[pa.Table], folder: str) -> DataFrame:
    """Write one file per micro-batch, and read them as a stream."""
    for number, batch in enumerate(batches):
        pq.write_table(batch, f"{folder}/{number}.parquet")
        os.utime(f"{folder}/{number}.parquet", (number, number))  # the stream goes by their times
    schema = spark.read.parquet(folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)


def features(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give one row per image and pixel that is not dark, and one for the image itself."""
    for batch in batches:
        yield from count_rows(pa.Table.from_batches([batch]), PIXELS).to_batches()


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    pixels, classes = digits()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as checkpoint:
        images = read_as_stream(spark, as_tables(pixels, classes), folder)
        columns = "document long, class long, probe boolean, feature string, count long"
        # Counters of a feature are in two channels at most. A question goes to both (probe), each answers with what it
        # has (partial), and the second stage adds the answers up for each image.
        query = (
            ek.stream(images.mapInArrow(features, columns), key="feature")
            .apply(FeatureClassCounts(), strategy="pkg", channels=4, probe="probe", split_results="partial")
            .key_by("document")
            .apply(NaiveBayesPredict(vocabulary=len(PIXELS)), channels=2)
            .start("memory", checkpoint=checkpoint, trigger={"availableNow": True})
        )
        query.await_termination()
        query.stop()
    answers = query.sink.table()
    ours = dict(zip(answers["document"].to_pylist(), answers["class"].to_pylist(), strict=True))
    theirs = MultinomialNB().fit(pixels[:TRAIN], classes[:TRAIN]).predict(pixels[TRAIN:])
    predicted = np.array([ours[document] for document in range(TRAIN, len(classes))])
    rows = [channel["rows"] for channel in query.history[0]["reports"][0]]
    print(f"rows that each channel learned from in the first batch: {rows}")
    print(f"accuracy: Evenkeel {np.mean(predicted == classes[TRAIN:]):.3f}, ", end="")
    print(f"scikit-learn {np.mean(theirs == classes[TRAIN:]):.3f}; same predictions: {(predicted == theirs).all()}")


if __name__ == "__main__":
    main()
