"""Jobs on Spark: whole files run as they say, Spark's complaints get their line, and Ctrl-C waits for the batch."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenkeel.errors import InvalidArgumentError, StageFailedError
from evenkeel.jobs import read_job
from evenkeel.operators import Count
from evenkeel.spark.api import stream
from evenkeel.spark.jobs import RunningJob, _log_without_processes
from spark.engine_helpers import Remember, expected, file_stream, write_batches, zipf_words

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.spark

SINK = """
import time
from pathlib import Path

def write(results, batch):
    Path(f"sink-{batch}").touch()
    results.write.mode("overwrite").parquet(f"{Path.cwd()}/results/batch={batch}")
    time.sleep(0.5)

def fail(results, batch):
    raise ValueError("no room for results")
"""
COMMAND = "from evenkeel.cli import main; main()"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow_sink.py").write_text(SINK)
    monkeypatch.delitem(sys.modules, "slow_sink", raising=False)
    return tmp_path


def job_file(folder: Path, *lines: str, **changes: str) -> Path:
    top = {"checkpoint": "checkpoint", "sink": "slow_sink:write", **changes}
    file = folder / "job.toml"
    said = [f'{name} = "{value}"' for name, value in top.items()]
    file.write_text("\n".join([*said, '"spark"."spark.master" = "local[2]"', *lines]))
    return file


FILES = """
[source]
format = "parquet"
path = "in"
schema = "word STRING, value LONG, position LONG"
options = { maxFilesPerTrigger = 1 }
[[stage]]
key = "word"
operator = { name = "aggregate", n = "count", total = { name = "sum", column = "value" } }
channels = 2
"""


def run(file: Path, spark) -> list:
    return list(RunningJob(read_job(file), spark).batches(threading.Event()))


def totals() -> dict:
    """The newest result of each word."""
    newest = {}
    for batch in sorted(Path("results").iterdir(), key=lambda path: int(path.name.partition("=")[2])):
        newest |= {row["word"]: (row["n"], row["total"]) for row in pq.read_table(batch).to_pylist()}
    return newest


def signalled(file: Path, send: Callable[[int], None]) -> tuple[int, list[dict], str]:
    """Start a job, send it a signal while the sink of batch 1 is at work, and give its code, batches and messages."""
    with (file.parent / "log").open("w") as log:
        job = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "run", str(file), "--json"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        deadline = time.monotonic() + 240
        while not Path("sink-1").exists() and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        send(job.pid)
        out, _ = job.communicate(timeout=60)
    return job.returncode, [json.loads(line) for line in out.splitlines()], (file.parent / "log").read_text()


def test_ctrl_c_waits_for_the_batch_and_a_second_run_goes_on(spark, folder):
    tables = [zipf_words(200, 20, seed) for seed in range(6)]
    write_batches(folder / "in", tables)
    file = job_file(folder, FILES)
    code, batches, told = signalled(file, lambda pid: os.kill(pid, signal.SIGINT))
    assert code == 0, told[-3000:]
    assert [batch["batch"] for batch in batches] == [0, 1]
    assert [batch["rows"] for batch in batches] == [200, 200]
    commits = sorted(path.name for path in Path("checkpoint/commits").iterdir())
    assert commits == ["b000000000000.json", "b000000000001.json"]
    assert list(Path("checkpoint/lease").iterdir()) == []
    assert "StackOverflowError" not in told
    assert "Traceback" not in told

    again = run(job_file(folder, FILES, trigger="available_now"), spark)
    assert [progress.batch for progress in again] == [2, 3, 4, 5]
    counts, sums = expected(tables)
    assert totals() == {word: (counts[word], sums[word]) for word in counts}


def end_all(pid: int) -> None:
    os.killpg(pid, signal.SIGTERM)


def kill_java(pid: int) -> None:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (java,) = [int(child) for child in children if Path(f"/proc/{child}/comm").read_text().strip() == "java"]
    os.kill(java, signal.SIGKILL)


@pytest.mark.parametrize("send", [end_all, kill_java])
def test_a_signal_that_ends_spark_as_well_is_told_in_a_line_and_a_second_run_goes_on(spark, folder, send):
    tables = [zipf_words(200, 20, seed) for seed in range(3)]
    write_batches(folder / "in", tables)
    code, _, told = signalled(job_file(folder, FILES), send)
    assert code == 2, told[-3000:]
    assert re.search("^error: (Spark|The query failed)", told, re.MULTILINE), told[-3000:]
    assert "evenkeel/cli" not in told  # no traceback of ours
    assert "while sending command" not in told  # nor of Py4J, which logs what it raises
    assert list(Path("checkpoint/lease").iterdir()) == []
    done = len(list(Path("checkpoint/commits").iterdir()))
    assert 1 <= done < 3

    again = run(job_file(folder, FILES, trigger="available_now"), spark)
    assert [progress.batch for progress in again] == list(range(done, 3))
    counts, sums = expected(tables)
    assert totals() == {word: (counts[word], sums[word]) for word in counts}


def test_stages_follow_one_another_on_static_rows(spark, folder):
    words = zipf_words(500, 30, 1)
    pq.write_table(words.append_column("at", pa.array([0] * 500, pa.timestamp("us", "UTC"))), "words.parquet")
    file = job_file(
        folder,
        '[source]\nformat = "parquet"\npath = "words.parquet"\nstream = false',
        'where = "word IS NOT NULL"\nselect = ["upper(word) AS word", "at"]',
        '[[stage]]\nkey = "word"\nevent_time = "at"\nchannels = 2\nstrategy = "pkg"',
        'operator = { name = "tumbling", size = "1 hour", operator = "count" }',
        '[[stage]]\nkey = "window_start"\nchannels = 2\nnull_keys = "drop"',
        'operator = { name = "top_k", k = 3 }',
    )
    batches = run(file, spark)
    assert batches[0].rows == 500 - words["word"].null_count
    rows = [row for path in Path("results").iterdir() for row in pq.read_table(path).to_pylist()]
    most = Counter(word.upper() for word in words["word"].to_pylist() if word).most_common(3)
    assert {row["word"]: row["count"] for row in rows if row["rank"] is not None} == dict(most)


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('"parquet"', '"parkett"', 6, "parkett"),
        ("value LONG", "value LUNG", 8, "LUNG"),
        ("[[stage]]", 'select = [\n"word",\n"valu + 1"]\n[[stage]]', 12, "valu"),
        ("[[stage]]", 'where = "word ="\n[[stage]]', 10, "Syntax error"),
        ('column = "value"', 'column = "vale"', 12, "Did you mean 'value'?"),
        ('key = "word"', 'key = "wort"', 11, "unknown column 'wort'. Did you mean 'word'?"),
    ],
    ids=["a format", "a type", "a selected column", "a condition", "an operator's column", "a key"],
)
def test_what_spark_does_not_know_is_told_with_its_line(spark, folder, old, new, line, told):
    assert old in FILES
    (folder / "in").mkdir()
    file = job_file(folder, FILES.replace(old, new, 1))
    with pytest.raises(InvalidArgumentError) as caught:
        RunningJob(read_job(file), spark)
    first, *more = str(caught.value).splitlines()
    assert first.startswith(f"{file}:{line}: ")
    assert told in first
    assert not more
    assert not Path("checkpoint").exists()


def test_a_query_that_fails_is_told_in_a_line_and_frees_its_checkpoint(spark, folder):
    write_batches(folder / "in", [zipf_words(10, 5, 0)])
    with pytest.raises(StageFailedError, match=r"The query failed\. ValueError: no room for results$"):
        run(job_file(folder, FILES, sink="slow_sink:fail"), spark)
    assert list(Path("checkpoint/lease").iterdir()) == []


def test_the_log_of_a_stream_needs_no_processes_on_a_local_disk(spark, tmp_path):
    own = spark.newSession()
    _log_without_processes(own)
    tables = [zipf_words(100, 20, seed) for seed in range(2)]
    write_batches(tmp_path / "in", tables)
    seen = Remember()
    query = (
        stream(file_stream(own, tmp_path / "in"), key="word")
        .apply(Count(), channels=2)
        .start(seen, checkpoint=str(tmp_path / "checkpoint"), local_directory=str(tmp_path / "local"))
    )
    query.process_all_available()
    log = query.spark_query._jsq.streamingQuery().offsetLog()
    query.stop()
    assert log.fileManager().getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"
    assert seen.latest("count") == expected(tables)[0]
