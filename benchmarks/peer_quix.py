"""Count and sum per word in Quix Streams; run with the Python of its own environment, prints one line of JSON.

``python peer_quix.py FILE STATE ROWS``. Quix Streams reads from Kafka alone. Where there is no broker, librdkafka's
mock broker stands in: Kafka's protocol over a socket, in memory, in this process. It is less work than a broker, so
the figure is no less than what Quix Streams would do with one. State is in its RocksDB with a changelog topic,
committed every five seconds.
"""

from __future__ import annotations

import json
import sys
import time

import pyarrow.parquet as pq
from confluent_kafka import Producer
from quixstreams import Application
from quixstreams.models.topics import TopicAdmin, TopicManager
from quixstreams.models.topics.topic import TopicConfig

GROUP, TOPIC = "totals", "words"
CHANGELOG = f"changelog__{GROUP}--{TOPIC}--default"
PARTITIONS = 4  # what the mock broker gives every topic


class MockAdmin(TopicAdmin):
    """Knows what the mock broker cannot be asked for."""

    def inspect_topics(self, topic_names, timeout=30):  # noqa: ARG002
        """Every topic is there."""
        kept = {"cleanup.policy": "compact", "retention.ms": "-1"}
        return {name: TopicConfig(PARTITIONS, 1, kept) for name in topic_names}


def add(row: dict, state) -> tuple[int, int]:
    """Add a row to its word's totals."""
    n, total = state.get("totals", (0, 0))
    totals = n + 1, total + row["value"]
    state.set("totals", totals)
    return totals


def main(file: str, state_folder: str, rows: int) -> None:
    """Put rows into a topic, and run the job over them."""
    broker = Producer(
        {
            "test.mock.num.brokers": 1,
            "bootstrap.servers": "replaced",
            "queue.buffering.max.messages": rows + 1,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    address = next(f"{found.host}:{found.port}" for found in broker.list_topics(timeout=10).brokers.values())
    table = pq.read_table(file).slice(0, rows)
    for word, value in zip(table["word"].to_pylist(), table["value"].to_pylist(), strict=True):
        broker.produce(TOPIC, key=word.encode(), value=json.dumps({"value": value}).encode(), partition=0)
    broker.list_topics(CHANGELOG, timeout=10)  # which makes it
    broker.flush()
    topics = TopicManager(MockAdmin(broker_address=address), consumer_group=GROUP, auto_create_topics=False)
    app = Application(
        broker_address=address,
        consumer_group=GROUP,
        auto_offset_reset="earliest",
        auto_create_topics=False,
        topic_manager=topics,
        state_dir=state_folder,
        loglevel="ERROR",
    )
    results = []  # of every row: its word's count and sum so far
    at = []

    def keep(totals: tuple[int, int]) -> None:
        if len(results) % 1000 == 0:
            at.append(time.perf_counter())
        results.append(totals[0])

    frame = app.dataframe(app.topic(TOPIC, key_deserializer="str"))
    frame.apply(add, stateful=True).update(keep)
    app.run(count=rows, timeout=600)
    print(
        json.dumps(
            {
                "seconds": at[-1] - at[1],  # the first thousand warm up
                "rows": 1000 * (len(at) - 2),
                "keys": sum(n == 1 for n in results),
                "n": len(results),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
