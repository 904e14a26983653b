"""A decision tree that grows while its rows stream in.

Each micro-batch brings its rows to the leaves of the tree so far; the engine keeps the histograms of every leaf,
feature and class; and from the merged histograms the driver grows the tree of the next batch.
Run it: ``python examples/decision_tree.py``
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from sklearn.tree import DecisionTreeClassifier

import evenkeel as ek
from evenkeel.operators import FeatureHistograms, GrowOptions, Tree, assign_leaves, grow, retire_leaves

ROWS, BATCHES, FEATURES = 3_000, 6, ["length", "beam", "draught"]
NOTHING = Tree.leaf(FEATURES, ["cruiser", "dinghy", "racer"])
COLUMNS = "leaf long, feature long, value double, class string, retire boolean"
TYPES = [pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.bool_()]
ROWS_AT_LEAVES = pa.schema(list(zip([column.split()[0] for column in COLUMNS.split(", ")], TYPES, strict=True)))


def boats(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    length, beam, draught = rng.uniform([3, 1, 0.2], [20, 6, 4], (ROWS, 3)).T
    kind = np.where(length < 6, "dinghy", np.where((draught > 2) & (length > 3 * beam), "racer", "cruiser"))
    return pa.table({"length": length, "beam": beam, "draught": draught, "class": kind})


def read_as_stream(spark: SparkSession, batches: list[pa.Table], folder: str) -> DataFrame:
    """Write one file per micro-batch, and read them as a stream."""
    for number, batch in enumerate(batches):
        pq.write_table(batch, f"{folder}/{number}.parquet")
        os.utime(f"{folder}/{number}.parquet", (number, number))  # the stream goes by their times
    schema = spark.read.parquet(folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)


def tree_after(folder: str, batch: int) -> Tree:
    """The tree that a batch made; each batch has a file of its own, so that a batch run again finds the same tree."""
    path = Path(folder) / f"tree-{batch}.json"
    return Tree.from_json(path.read_text()) if path.exists() else NOTHING


def at_leaves(folder: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def assign(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = int(TaskContext.get().getLocalProperty("streaming.sql.batchId"))  # which micro-batch this is
        before, tree = tree_after(folder, number - 2), tree_after(folder, number - 1)
        yield from marked(retire_leaves(before, tree), retire=True)  # their histograms are needed no more
        for batch in batches:
            yield from marked(assign_leaves(tree, pa.Table.from_batches([batch])), retire=False)

    return assign


def marked(rows: pa.Table, *, retire: bool) -> list[pa.RecordBatch]:
    rows = rows.append_column("retire", pa.repeat(retire, len(rows)))
    return pa.concat_tables([ROWS_AT_LEAVES.empty_table(), rows], promote_options="permissive").to_batches()


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    trained, test = [boats(seed) for seed in range(BATCHES)], boats(99)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as trees:

        def grow_tree(histograms: DataFrame, batch: int) -> None:
            tree = grow(tree_after(trees, batch - 1), histograms.toArrow(), GrowOptions(min_rows=200))
            (Path(trees) / f"tree-{batch}.json").write_text(tree.to_json())
            right = np.mean(np.array(tree.predict(test)) == np.array(test["class"]))
            print(f"batch {batch}: {len(tree.leaves)} leaves, accuracy {right:.3f}")

        rows = read_as_stream(spark, trained, folder).mapInArrow(at_leaves(trees), COLUMNS)
        query = (
            ek.stream(rows, key=["leaf", "feature"])
            .apply(FeatureHistograms(retire="retire"), strategy="pkg", channels=4)
            .start(grow_tree, checkpoint=f"{trees}/checkpoint", trigger={"availableNow": True})
        )
        query.await_termination()
        query.stop()
    held = sum(sum(channel["loads"]["held_keys"]) for channel in query.history[-1]["reports"][1])
    everything = pa.concat_tables(trained).to_pandas()
    batch_tree = DecisionTreeClassifier(min_samples_leaf=20).fit(everything[FEATURES], everything["class"])
    reference = batch_tree.score(test.to_pandas()[FEATURES], test["class"].to_pandas())
    print(f"histograms held in the end: of {held} keys (leaf, feature)")
    print(f"scikit-learn, with all rows at once: accuracy {reference:.3f}")


if __name__ == "__main__":
    main()
