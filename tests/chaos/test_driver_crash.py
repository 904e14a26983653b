"""kill -9 the driver at any moment, start it again: nothing is lost, nothing comes twice."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from chaos.cluster import commits, start_job
from spark.engine_helpers import write_batches, zipf_words

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("EVENKEEL_KILLS", "3"))


def start(tmp_path, seed: int) -> subprocess.Popen:
    places = [str(tmp_path / name) for name in ("in", "out", "checkpoint", "local")]
    return start_job(tmp_path, "crash_job.py", *places, str(seed))  # the JVM and the workers die with it


def test_the_output_is_that_of_an_undisturbed_run(tmp_path):
    rng = np.random.default_rng(20_262)
    tables = [zipf_words(3000, 300, seed) for seed in range(3 * KILLS)]  # so that it is never done before it is killed
    write_batches(tmp_path / "in", tables)
    killed = 0
    for _ in range(KILLS):
        job = start(tmp_path, seed=1)
        before = commits(tmp_path)
        deadline = time.monotonic() + 120
        # Let it get somewhere, then kill it at a random moment of what follows: mid-batch, mid-commit, in between.
        while commits(tmp_path) == before and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(float(rng.uniform(0, 1.5)))
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            killed += 1
        job.wait()
    last = start(tmp_path, seed=1)
    assert last.wait(timeout=600) == 0, (tmp_path / "job.log").read_text()[-3000:]
    assert killed == KILLS
    check_output(tmp_path / "out", tables, commits(tmp_path))


def check_output(directory, tables, batches: int) -> None:
    """Each batch gives the sums up to it of the words in it: nothing is lost, nothing comes twice.

    A batch is one file, or two: a kill may come after Spark's source noted a file and before Spark began the batch.
    """
    sums: Counter = Counter()
    done = 0
    for batch in range(batches):
        rows = pq.read_table(directory / f"batch={batch}", partitioning=None).to_pylist()
        found = {row["word"]: row["sum"] for row in rows}
        assert len(found) == len(rows)
        touched: set = set()
        wanted: dict = {}
        while found != wanted:
            assert done < len(tables), f"batch {batch} is not what any number of files would give"
            for word, value in zip(*(tables[done][name].to_pylist() for name in ("word", "value")), strict=True):
                sums[word] += value
                touched.add(word)
            done += 1
            wanted = {word: sums[word] for word in touched}
    assert done == len(tables)
