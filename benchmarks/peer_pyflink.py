"""Count and sum per word in PyFlink; run with the Python of its own environment, prints one line of JSON.

``python peer_pyflink.py FEW MANY CHECKPOINT sql|python``: two folders of CSV files (the Parquet format is not on
PyPI). Each job runs over the many rows to warm up, then over the few and the many; what the many take longer excludes
start-up. One task slot, checkpoints every ten seconds, results to a sink that discards them. ``sql`` is Flink's own
aggregate in mini-batches, without any Python in it; ``python`` keeps the state in a ``KeyedProcessFunction``, with
bundles and a state cache that hold all of it.
"""

from __future__ import annotations

import json
import sys
import time

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.functions import SinkFunction
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

DISCARD = "org.apache.flink.streaming.api.functions.sink.legacy.DiscardingSink"


def settings(checkpoint: str) -> Configuration:
    """What both ways run with."""
    found = Configuration()
    for name, value in {
        "parallelism.default": "1",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": f"file://{checkpoint}",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "1 s",
        "table.exec.mini-batch.size": "500000",
        "python.fn-execution.bundle.size": "100000",
        "python.fn-execution.bundle.time": "1000",
        "python.state.cache-size": "200000",
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
    }.items():
        found.set_string(name, value)
    return found


def sql(folder: str, checkpoint: str) -> None:
    """Run Flink's own aggregate."""
    table = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings(checkpoint)).build()
    )
    table.execute_sql(
        "CREATE TABLE rows_in (word STRING, number BIGINT) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'csv')"
    )
    table.execute_sql("CREATE TABLE totals (word STRING, n BIGINT, total BIGINT) WITH ('connector' = 'blackhole')")
    table.execute_sql("INSERT INTO totals SELECT word, COUNT(*), SUM(number) FROM rows_in GROUP BY word").wait()


class Totals(KeyedProcessFunction):
    """Count and sum of one word."""

    def open(self, runtime_context) -> None:
        """Ask for the state."""
        self.state = runtime_context.get_state(
            ValueStateDescriptor("totals", Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def process_element(self, value, ctx):  # noqa: ARG002
        """Add a row."""
        n, total = self.state.value() or (0, 0)
        self.state.update((n + 1, total + value[1]))
        yield value[0], n + 1, total + value[1]


def parse(line: str) -> tuple[str, int]:
    """A row of a file."""
    word, number = line.split(",")
    return word, int(number)


def python(folder: str, checkpoint: str) -> None:
    """Run the aggregate written in Python."""
    environment = StreamExecutionEnvironment.get_execution_environment(settings(checkpoint))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).build()
    lines = environment.from_source(source, WatermarkStrategy.no_watermarks(), "files")
    word, number = Types.STRING(), Types.LONG()
    keyed = lines.map(parse, Types.TUPLE([word, number])).key_by(lambda row: row[0], word)
    results = keyed.process(Totals(), Types.TUPLE([word, number, number]))
    java = get_gateway().jvm
    for part in DISCARD.split("."):
        java = getattr(java, part)
    results.add_sink(SinkFunction(java()))
    environment.execute()


def main(few: str, many: str, checkpoint: str, way: str) -> None:
    """Run one way over the many rows, the few, and the many again."""
    job = {"sql": sql, "python": python}[way]
    took = []
    for folder in (many, few, many):
        started = time.perf_counter()
        job(folder, checkpoint)
        took.append(time.perf_counter() - started)
    print(json.dumps({"seconds": took[2] - took[1], "took": took}))


if __name__ == "__main__":
    main(*sys.argv[1:])
