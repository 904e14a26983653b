"""The driver of the recovery benchmark: a stateful stream on a cluster, until a file called ``end`` is there.

Arguments: master, directory and method. Below the directory are
``in`` (one file after the other), ``local`` (the hosts' working copies), and ``run-0``, ``run-1`` … with the checkpoint
and the results of each time that the query was started from nothing.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

CHANNELS = 3
METHODS = ("ftlb", "taskb", "checkpoint", "replay", "spark")
PART_BYTES = 256 << 20  # of input in a batch


def hold(key, rows, state):  # noqa: ARG001
    """Count a key's tuples and hold the last payload that came with one."""
    count, held = (state["n"], state["held"]) if state else (0, b"")
    for row in rows:
        held = held if row["payload"] is None else row["payload"]
    count += len(rows)
    return {"n": count, "held": held}, [{"n": count, "bytes": len(held)}]


def start_ours(rows, method: str, directory: Path, run: int):
    """Start the query in our engine."""
    from evenkeel.control import Controller
    from evenkeel.operators import PerKey
    from evenkeel.planning import make_planner
    from evenkeel.routing import Ragged
    from evenkeel.spark.api import stream

    class Spread(Controller):
        """FTLB with the backups of a channel's slots on all other channels in turn.

        Those that are made again after a loss are where the engine puts them: on the next channel.
        """

        spread = False

        def decide(self, table, now):
            decision, following = super().decide(table, now)
            if not self.spread and following is None:
                self.spread = True
                steps = 1 + np.arange(table.slots) // table.channels % (table.channels - 1)
                backups = (table.slot_channels + steps) % table.channels
                following = table.evolve(slot_backups=Ragged.of([[channel] for channel in backups.tolist()]))
            return decision, following

    operator = PerKey(
        hold,
        state=pa.schema([("n", pa.int64()), ("held", pa.binary())]),
        output=pa.schema([("n", pa.int64()), ("bytes", pa.int64())]),
    )
    flow = stream(rows, key="key").apply(
        operator,
        strategy=Spread(make_planner("ftlb")) if method == "ftlb" else "key_grouping",
        channels=CHANNELS,
        replicas=int(method in {"ftlb", "taskb"}),
    )
    return flow.start(
        str(directory / f"run-{run}" / "out"),
        checkpoint=str(directory / f"run-{run}"),
        local_directory=str(directory / "local"),
    )


def start_native(rows, directory: Path):
    """Start Spark's own aggregate, with as much state: the payload of a key is the larger of those that came."""
    from pyspark.sql import functions as F

    def write(results, batch: int) -> None:
        results.write.mode("overwrite").parquet(str(directory / "run-0" / "out" / f"batch={batch}"))

    held = rows.groupBy("key").agg(F.count("*").alias("n"), F.max("payload").alias("held"))
    results = held.select("key", "n", F.length("held").cast("long").alias("bytes"))
    writer = results.writeStream.outputMode("update").foreachBatch(write)
    return writer.option("checkpointLocation", str(directory / "run-0" / "spark")).start()


def main() -> None:
    """Run the query; start it again from nothing when its state is lost, if that is the method."""
    master, directory, method = sys.argv[1], Path(sys.argv[2]), sys.argv[3]

    from pyspark.sql import SparkSession

    from benchmarks.spark_peers import ROCKSDB

    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.cores.max", str(CHANNELS))  # the host that stands by gets an executor when another is lost
        .config("spark.executor.memory", "1500m")
        .config("spark.python.daemon.module", "evenkeel.spark.daemon")
        .config("spark.sql.shuffle.partitions", str(CHANNELS))
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("WARN")
    rows = (
        spark.readStream.schema("key string, payload binary")
        .option("maxBytesPerTrigger", PART_BYTES)
        .parquet(str(directory / "in"))
    )
    run = 0
    query = start_native(rows, directory) if method == "spark" else start_ours(rows, method, directory, run)
    while not (directory / "end").exists():
        time.sleep(0.05)
        running = query if method == "spark" else query.spark_query
        if running.exception() is not None:
            raise running.exception()
        lost = len(list(directory.glob("lost-*")))
        if method == "replay" and run < lost:
            query.spark_query.stop()  # breaks off the batch, which would end once its state is restored
            run = lost
            query = start_ours(rows, method, directory, run)
        elif method in {"ftlb", "taskb"}:
            if (query.table.backups_of_slots.lengths == 1).all():
                (directory / "settled").touch()
            else:
                (directory / "settled").unlink(missing_ok=True)
    if method != "spark":
        opened = {batch["batch"]: [channel["opened"] for channel in batch["reports"][0]] for batch in query.history}
        (directory / "opened.json").write_text(json.dumps(opened))
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
