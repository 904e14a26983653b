"""Three hosts: channels spread over them as they come, come home warm, and survive the death of an executor."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter

import pyarrow.parquet as pq
import pytest

from chaos.cluster import Cluster, commits, start_job, until
from spark.engine_helpers import expected, write_batches, zipf_words

pytestmark = pytest.mark.spark

CHANNELS = 6
HOSTS = [f"127.0.0.{number}" for number in (2, 3, 4)]
WARM_BATCHES = 50


def warm_share(batches) -> float:
    """Of all openings of channels that held something, how many found it on the host."""
    openings = [report["opened"] for batch in batches for report in batch["channels"] if report["opened"] != "new"]
    return sum(opened in ("warm", "caught up") for opened in openings) / len(openings)


def test_channels_spread_come_home_and_survive(tmp_path):
    tables = []

    def feed(batches: int) -> None:
        """Give batches one by one, and wait for each."""
        for _ in range(batches):
            tables.append(zipf_words(600, 200, len(tables)))
            write_batches(tmp_path / "in", tables[-1:], len(tables) - 1)
            until(lambda: commits(tmp_path) == len(tables) or job.poll() is not None, f"batch {len(tables)}")
            assert job.poll() is None, (tmp_path / "job.log").read_text()[-3000:]

    with Cluster(tmp_path) as cluster:
        cluster.add_host(2)
        tables.append(zipf_words(600, 200, 0))
        write_batches(tmp_path / "in", tables)
        job = start_job(tmp_path, "cluster_job.py", cluster.address, str(tmp_path))
        try:
            until(lambda: commits(tmp_path) == 1, "the first batch")
            feed(2)
            alone = len(tables)
            cluster.add_host(3)
            cluster.add_host(4)
            until(lambda: cluster.executors(3) and cluster.executors(4), "the new executors start")
            time.sleep(3)  # until they have told the driver; if later, a home is given all the same
            together = len(tables)
            feed(WARM_BATCHES + 6)
            disturbed = len(tables)
            tables.append(zipf_words(600, 200, len(tables)))
            write_batches(tmp_path / "in", tables[-1:], len(tables) - 1)
            time.sleep(0.4)  # in the midst of the batch
            for executor in cluster.executors(3):
                os.kill(executor, signal.SIGKILL)
            until(lambda: commits(tmp_path) == len(tables), "the batch in which an executor died")
            feed(3)
            (tmp_path / "end").touch()
            assert job.wait(120) == 0, (tmp_path / "job.log").read_text()[-3000:]
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
    report = json.loads((tmp_path / "report.json").read_text())
    history = report["history"]
    assert len(history) == len(tables)

    # One host at first, then, within five batches, all three with two channels each.
    assert {channel["host"] for batch in history[:alone] for channel in batch["channels"]} == {HOSTS[0]}
    settled = history[together + 5 : disturbed]
    carried = Counter(channel["host"] for batch in settled for channel in batch["channels"])
    assert set(carried) == set(HOSTS)
    for host in HOSTS:  # a third each, but for the odd task that a busy Spark starts elsewhere
        assert 0.3 < carried[host] / sum(carried.values()) < 0.37
    even = [Counter(channel["host"] for channel in batch["channels"]) == dict.fromkeys(HOSTS, 2) for batch in settled]
    assert sum(even) >= 0.95 * len(even)
    rehomed = [" ".join(decision["reasons"]) for decision in report["decisions"] if decision["choice"] == "rehome"]
    assert all(reason.startswith(("Executors", "A host had")) for reason in rehomed)
    for host in HOSTS[1:]:  # each is told by name when it comes
        assert any(reason.startswith("Executors came") and host in reason for reason in rehomed)

    # At home, warm.
    assert len(settled) >= WARM_BATCHES
    assert warm_share(settled[:WARM_BATCHES]) >= 0.95
    moved = [sum(channel["imported_bytes"] for channel in batch["channels"]) for batch in settled]
    assert sum(size > 0 for size in moved) >= len(settled) // 5

    # And nothing was lost or came twice, whatever died.
    latest: dict = {}
    for batch, table in enumerate(tables):
        rows = pq.read_table(tmp_path / "out" / f"batch={batch}", partitioning=None).to_pylist()
        assert len({row["word"] for row in rows}) == len(rows)
        assert {row["word"] for row in rows} == set(table["word"].to_pylist())
        latest |= {row["word"]: row["sum"] for row in rows}
    assert latest == expected(tables)[1]
