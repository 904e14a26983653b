"""A streaming job that moves keys and resizes in every batch; run as a process of its own, to be killed.

Arguments: input directory, sink directory, checkpoint, local directory, seed.
"""

from __future__ import annotations

import sys


def main() -> None:
    source, sink, checkpoint, local, seed = sys.argv[1:]
    from pathlib import Path

    from pyspark.sql import SparkSession

    from evenkeel.operators import Sum
    from evenkeel.spark.api import stream
    from spark.engine_helpers import Forced, file_stream

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    query = (
        stream(file_stream(spark, Path(source)), key="word")
        .apply(Sum("value"), strategy=Forced([3, 5, 2, 4, 3, 6, 2, 4], seed=int(seed)), channels=3)
        .start(sink, checkpoint=checkpoint, local_directory=local, trigger={"availableNow": True})
    )
    query.await_termination()
    query.stop()


if __name__ == "__main__":
    main()
