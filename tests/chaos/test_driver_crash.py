"""kill -9 the driver at any moment, start it again: nothing is lost, nothing comes twice."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
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
    assert commits(tmp_path) == len(tables)
    whole = pa.concat_tables(tables).group_by("word").aggregate([("value", "sum")])
    wanted = dict(zip(whole["word"].to_pylist(), whole["value_sum"].to_pylist(), strict=True))
    latest: dict = {}
    for batch in range(len(tables)):
        rows = pq.read_table(tmp_path / "out" / f"batch={batch}", partitioning=None).to_pylist()
        assert len({row["word"] for row in rows}) == len(rows)
        assert {row["word"] for row in rows} == set(tables[batch]["word"].to_pylist())
        latest |= {row["word"]: row["sum"] for row in rows}
    assert latest == wanted
