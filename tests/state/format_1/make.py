"""Writes ``checkpoints.tar.xz``: a query's checkpoint and a channel's state, as this version stores them in its format.

Run it once, when a format is new: ``python tests/state/format_1/make.py``. Then it stays as it is, and every later
version must be able to go on from it. The rows are always the same; times and names of attempts are not.
"""

from __future__ import annotations

import io
import os
import sys
import tarfile
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

FORMAT = 1
STORED = Path(__file__).with_name("checkpoints.tar.xz")
BATCHES = 3
SLOTS, KEYS = 8, 12


def rows(batch: int) -> pa.Table:
    """Sixty words with numbers, some words far more often than others."""
    places = range(60 * batch, 60 * batch + 60)
    words = [f"word{place % 7 * (place % 3) % 10}" for place in places]
    return pa.table({"word": words, "value": list(places)})


def flow(spark, folder: str):
    """The query: counts and sums by word, over one file per batch."""
    import evenkeel as ek
    from evenkeel.control import WindowOptions
    from evenkeel.operators import Aggregate, Count, Sum

    schema = spark.read.parquet(folder).schema
    words = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    often = ek.ControlOptions(windows=WindowOptions(batches=1))
    strategy = ek.Controller(ek.PLANNERS["keel"](), often)
    operator = Aggregate(count=Count(), total=Sum("value"))
    return ek.stream(words, key="word").apply(operator, strategy=strategy, channels=2, slots=16, combine=False)


def write_rows(folder: Path, batches: range) -> None:
    """Write one file per batch; the stream goes by their times."""
    folder.mkdir(exist_ok=True)
    for batch in batches:
        pq.write_table(rows(batch), folder / f"{batch}.parquet")
        os.utime(folder / f"{batch}.parquet", (1_700_000_000 + batch, 1_700_000_000 + batch))


def state(batch: int) -> dict[int, bytes]:
    """What each numbered key holds after a batch."""
    return {key: f"{key} since {last}".encode() for last in range(batch + 1) for key in range(last, KEYS, last + 1)}


def write_state(folder: Path) -> None:
    """Three versions of a channel's state: two deltas, a snapshot of them, and a delta after it."""
    from evenkeel.hashing import mix64
    from evenkeel.state import Checkpoint, Delta, StateStore

    checkpoint = Checkpoint.open(fs.LocalFileSystem(), str(folder), job="state", run="run-1")
    with tempfile.TemporaryDirectory() as work:
        store = StateStore(checkpoint, "count", 0, work)
        for batch in range(BATCHES):
            last = checkpoint.last_commit()
            with store.open(last.manifest("count", 0) if last else None) as view:
                delta, values = Delta(), state(batch)
                delta.put(*named(values, mix64), pa.array(list(values.values()), pa.binary()))
                file = store.write_delta(view, delta, batch=batch, attempt=f"a{batch}")
                ref = store.write_manifest(view, file, batch=batch, attempt=f"a{batch}", snapshot=batch == 2)
            checkpoint.commit(batch, [ref])


def named(keys, mix64) -> tuple:
    """Slots, hashes and second hashes of some numbered keys."""
    numbers = pa.array(list(keys), pa.uint64()).to_numpy()
    hashes = mix64(numbers).view("int64")
    return (hashes % SLOTS).astype("int32"), hashes, mix64(numbers, seed=1).view("int64")


def main() -> None:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_HOSTNAME": "localhost"}
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as made:
        write_rows(Path(made) / "rows", range(BATCHES))
        query = flow(session, f"{made}/rows").start(
            "memory", checkpoint=f"{made}/query", local_directory=f"{made}/work", trigger={"availableNow": True}
        )
        query.await_termination()
        query.stop()
        write_state(Path(made) / "state")
        with tarfile.open(STORED, "w:xz") as archive:
            for part in ("query", "state"):
                for file in sorted((Path(made) / part).rglob("*")):
                    entry = tarfile.TarInfo(str(file.relative_to(made)))
                    # Spark's own part names the folder of the rows, and the lease is over.
                    if file.is_file() and not entry.name.startswith(("query/spark/", "query/lease/")):
                        entry.size = file.stat().st_size
                        archive.addfile(entry, io.BytesIO(file.read_bytes()))
    session.stop()


if __name__ == "__main__":
    main()
