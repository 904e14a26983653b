"""What the recovery benchmark makes of Spark's logs and of measured losses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks import recovery
from benchmarks.loopback import kill_with_children, until
from benchmarks.recovery import Loss, Trial, loss_rows


def note(log: Path, kind: str, batch: str, lines: list[str], at: float = 0) -> None:
    path = log / kind / batch
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
    os.utime(path, (at, at))


def entry(name: str, batch: int) -> str:
    return json.dumps({"path": f"file:///in/{name}", "timestamp": 1, "batchId": batch})


@pytest.fixture
def trial(tmp_path):
    """Three batches of a query that runs, the first two of them in a compacted log, the last not committed."""
    trial = Trial(tmp_path, "checkpoint", 1_000_000, seed=0)
    trial.job = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    log = tmp_path / "run-0" / "spark"
    note(log, "sources/0", "1.compact", ["v1", entry("part-0", 0), entry("part-1", 1)])
    note(log, "sources/0", "2", ["v1", entry("part-2", 2)])
    note(log, "sources/0", ".2.crc", ["\x00"])
    for batch, at in ((0, 100.0), (1, 107.5)):
        note(log, "commits", str(batch), ["v1"], at)
    for batch in range(3):
        note(log, "offsets", str(batch), ["v1"])
    yield trial
    trial.job.kill()
    trial.job.wait()


def test_spark_tells_when_each_file_was_committed(trial):
    assert trial.started() == 2
    assert trial.committed_at("part-0") == 100.0
    assert trial.committed_at("part-1") == 107.5
    assert trial.committed_at("part-2") is None
    assert trial.committed_at("part-9") is None


def test_the_first_commit_after_a_loss_counts(trial):
    assert trial._first_commit(90.0) == (0, 100.0)
    assert trial._first_commit(100.0) == (1, 107.5)
    assert trial._first_commit(110.0) is None


def test_a_replay_counts_once_all_that_came_before_the_loss_is_back(trial):
    trial.method = "replay"
    trial.born = {"part-0": 80.0, "part-1": 85.0, "part-2": 95.0}
    assert trial._first_commit(90.0) == (1, 107.5)
    trial.kills = 1  # and the query has not been started again
    assert trial._first_commit(90.0) is None


def test_a_driver_that_ended_is_told(trial):
    (trial.directory / "job.log").write_text("out of memory")
    trial.job.kill()
    trial.job.wait()
    with pytest.raises(RuntimeError, match="out of memory"):
        trial.committed_at("part-0")


def losses(ftlb: tuple[float, float], checkpoint: tuple[float, float]) -> dict:
    times = {"ftlb": ftlb, "checkpoint": checkpoint}
    return {
        (method, size): [Loss(seconds, seconds / 2, 900.0, 7), Loss(seconds, seconds / 2, 1100.0, 9)]
        for method, both in times.items()
        for size, seconds in zip((1, 1000), both, strict=True)
    }


@pytest.mark.parametrize(
    ("ftlb", "checkpoint", "rebuilt", "met"),
    [
        pytest.param((2.0, 2.5), (3.0, 6.0), 0, [True, True, True], id="all targets are met"),
        pytest.param((2.0, 2.7), (3.0, 6.0), 0, [False, True, True], id="it grows with the state"),
        pytest.param((2.0, 2.5), (3.0, 4.0), 0, [True, False, True], id="the checkpoint is not much slower"),
        pytest.param((2.0, 2.5), (3.0, 6.0), 1, [True, True, False], id="a channel came from the checkpoint"),
    ],
)
def test_targets(ftlb, checkpoint, rebuilt, met):
    rows = loss_rows(losses(ftlb, checkpoint), rebuilt)
    assert [row["met"] for row in rows if "met" in row] == met
    first = rows[0]
    assert (first["value"], first["delay_s"], first["rows_per_s"], first["spread"]) == (2.0, 1.0, 1000.0, 0.0)


def test_losses_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(recovery, "RESULTS", tmp_path / "results")
    recovery.draw_losses(losses((2.0, 2.5), (3.0, 6.0)))
    svg = (tmp_path / "results" / "recovery.svg").read_text()
    assert "recovery (s)" in svg
    assert all(recovery.NAMES[method] in svg for method in ("ftlb", "checkpoint"))
    assert (tmp_path / "results" / "recovery.png").read_bytes().startswith(b"\x89PNG")


def test_a_host_dies_with_all_its_processes(tmp_path):
    """Also those that left its process group, as Spark's Python workers do."""
    told = tmp_path / "child"
    child = f"import os, time; os.setsid(); open({str(told)!r}, 'w').write(f'{{os.getpid()}} '); time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    process = subprocess.Popen([sys.executable, "-c", parent])
    until(lambda: told.exists() and told.read_text().endswith(" "), "the child starts")
    kill_with_children(process)
    assert process.returncode == -9
    stat = Path("/proc") / told.read_text().strip() / "stat"
    deadline = time.monotonic() + 10
    while stat.exists() and stat.read_text().split()[2] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
