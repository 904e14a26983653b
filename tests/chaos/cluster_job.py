"""A streaming job on a cluster, with moves in some batches; it ends when its input has a file called ``end``.

Arguments: master, directory (in, out, checkpoint, local and report.json are below it), and how many backups keys have.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

MOVES_EVERY = 4


def main() -> None:
    master, directory, replicas = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

    from pyspark.sql import SparkSession

    from evenkeel.operators import Sum
    from evenkeel.spark.api import stream
    from spark.engine_helpers import Forced, file_stream

    class Sometimes(Forced):
        """Moves slots and keys in every fourth batch, and always has six channels."""

        def decide(self, table, now):
            return super().decide(table, now) if self.batch % MOVES_EVERY == 0 else (None, None)

    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "3")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    query = (
        stream(file_stream(spark, directory / "in"), key="word")
        .apply(Sum("value"), strategy=Sometimes([6]), channels=6, replicas=replicas)
        .start(
            str(directory / "out"), checkpoint=str(directory / "checkpoint"), local_directory=str(directory / "local")
        )
    )
    while not (directory / "end").exists():
        query.await_termination(1)
        time.sleep(0.1)
    query.process_all_available()
    query.stop()
    history = [{"batch": batch["batch"], "ms": batch["ms"], "channels": batch["reports"][0]} for batch in query.history]
    for batch in history:
        for report in batch["channels"]:
            del report["loads"]
    decisions = [decision.to_json() for decision in query.decisions]
    (directory / "report.json").write_text(json.dumps({"history": history, "decisions": decisions}))
    spark.stop()


if __name__ == "__main__":
    main()
