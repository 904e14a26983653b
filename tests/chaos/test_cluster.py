"""Three hosts: channels spread over them as they come, come home warm, and survive the death of executors and hosts."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections import Counter

import pyarrow.parquet as pq
import pytest

from chaos.cluster import Cluster, commits, start_job, until
from spark.engine_helpers import write_batches, zipf_words

pytestmark = pytest.mark.spark

CHANNELS = 6
HOSTS = [f"127.0.0.{number}" for number in (2, 3, 4)]
WARM_BATCHES = 50


def warm_share(batches) -> float:
    """Of all openings of channels that held something, how many found it on the host."""
    openings = [report["opened"] for batch in batches for report in batch["channels"] if report["opened"] != "new"]
    return sum(opened in ("warm", "caught up") for opened in openings) / len(openings)


def check_results(out, tables) -> None:
    """Nothing is lost and nothing came twice, in any batch."""
    totals: dict = {}
    for batch, table in enumerate(tables):
        for row in table.to_pylist():
            totals[row["word"]] = totals.get(row["word"], 0) + row["value"]
        rows = pq.read_table(out / f"batch={batch}", partitioning=None).to_pylist()
        found = {row["word"]: row["sum"] for row in rows}
        assert len(found) == len(rows)
        assert found == {word: totals[word] for word in set(table["word"].to_pylist())}


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
        job = start_job(tmp_path, "cluster_job.py", cluster.address, str(tmp_path), "0")
        try:
            until(lambda: commits(tmp_path) == 1, "the first batch")
            feed(2)
            alone = len(tables)
            cluster.add_host(3)
            cluster.add_host(4)
            until(lambda: cluster.joined(3) and cluster.joined(4), "the new executors join")
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
    for batch in settled:
        assert Counter(channel["host"] for channel in batch["channels"]) == dict.fromkeys(HOSTS, 2)
    rehomed = [" ".join(decision["reasons"]) for decision in report["decisions"] if decision["choice"] == "rehome"]
    assert all(reason.startswith(("Executors", "A host had")) for reason in rehomed)
    for host in HOSTS[1:]:  # each is told by name when it comes
        assert any(reason.startswith("Executors came") and host in reason for reason in rehomed)

    # At home, warm.
    assert len(settled) >= WARM_BATCHES
    assert warm_share(settled[:WARM_BATCHES]) >= 0.95
    moved = [sum(channel["imported_bytes"] for channel in batch["channels"]) for batch in settled]
    assert sum(size > 0 for size in moved) >= len(settled) // 5

    check_results(tmp_path / "out", tables)


KILLS = int(os.environ.get("EVENKEEL_KILLS", "4"))


def test_replicas_survive_the_loss_of_executors_and_of_hosts_at_any_moment(tmp_path):
    """Every other time the whole host goes, with what its disk held, and another comes in its place."""
    tables, moments = [], random.Random(5)

    def feed(within=None) -> None:
        tables.append(zipf_words(600, 200, len(tables)))
        write_batches(tmp_path / "in", tables[-1:], len(tables) - 1)
        if within is not None:
            within()
        until(lambda: commits(tmp_path) == len(tables) or job.poll() is not None, f"batch {len(tables)}")
        assert job.poll() is None, (tmp_path / "job.log").read_text()[-3000:]

    with Cluster(tmp_path) as cluster:
        workers = {number: cluster.add_host(number) for number in (2, 3, 4)}
        tables.append(zipf_words(600, 200, 0))
        write_batches(tmp_path / "in", tables)
        job = start_job(tmp_path, "cluster_job.py", cluster.address, str(tmp_path), "1")

        def kill(number: int, *, host: bool) -> None:
            time.sleep(moments.uniform(0.0, 1.5))  # anywhere in the batch: before, during or after the shuffle
            if host:
                workers[number].kill()
            for executor in cluster.executors(number):
                os.kill(executor, signal.SIGKILL)
            if host:
                shutil.rmtree(tmp_path / "local" / f"127.0.0.{number}", ignore_errors=True)
                workers[number].wait()
                workers[number] = cluster.add_host(number)

        try:
            until(lambda: commits(tmp_path) == 1, "the first batch")
            until(lambda: all(cluster.executors(number) for number in workers), "all executors start")
            for turn in range(KILLS):
                for _ in range(moments.randint(1, 3)):
                    feed()
                feed(lambda turn=turn: kill(moments.choice((2, 3, 4)), host=turn % 2 == 0))
            feed()
            (tmp_path / "end").touch()
            assert job.wait(120) == 0, (tmp_path / "job.log").read_text()[-3000:]
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
    check_results(tmp_path / "out", tables)
    choices = Counter(
        decision["choice"] for decision in json.loads((tmp_path / "report.json").read_text())["decisions"]
    )
    assert choices["recover"] >= KILLS // 2
    assert choices["replicate"] > 0
