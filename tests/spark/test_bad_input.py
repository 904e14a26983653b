"""Bad input and failing surroundings: a clear error, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evenkeel.errors import IncompatibleCheckpointError, InvalidArgumentError
from evenkeel.operators import Count, Sum
from evenkeel.spark.api import stream
from spark.engine_helpers import Forced, Remember, expected, file_stream, write_batches, zipf_words

pytestmark = pytest.mark.spark


@pytest.fixture
def place(tmp_path):
    return {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}


def run(rows, place, operator, sink="memory", key="word", **options):
    query = stream(rows, key=key).apply(operator, channels=2, **options).start(sink, **place)
    query.process_all_available()
    query.stop()
    return query


def test_a_sink_may_read_its_results_twice_and_the_stage_still_runs_once(spark, tmp_path, place):
    tables = [zipf_words(200, 20, seed) for seed in range(2)]
    write_batches(tmp_path / "in", tables)
    seen = Remember()

    def reads_twice(results, batch):
        assert results.count() == results.where("count > 0").count()
        seen(results, batch)

    run(file_stream(spark, tmp_path / "in"), place, Count(), reads_twice)
    assert seen.latest("count") == expected(tables)[0]
    manifests = list((tmp_path / "checkpoint" / "stages").rglob("*manifest.json"))
    assert len(manifests) == 2 * len(tables)  # one for each channel and batch


def test_a_batch_runs_again_where_the_attempt_that_the_sink_has_seen_is_not_certain(
    spark, tmp_path, place, monkeypatch
):
    from evenkeel.spark.run import StageRun

    tables = [zipf_words(200, 20, seed) for seed in range(3)]
    write_batches(tmp_path / "in", tables)
    found, kept = StageRun._written, []

    def doubtful(run):
        kept.append((run.batch, run.kept is not None))
        return None if run.batch == 1 and not run.kept else found(run)

    monkeypatch.setattr(StageRun, "_written", doubtful)
    query = run(file_stream(spark, tmp_path / "in"), place, Count())
    assert kept == [(0, False), (1, False), (1, True), (2, False)]
    latest = {row["word"]: row["count"] for row in query.sink.table().to_pylist()}
    assert latest == expected(tables)[0]


def test_a_key_or_state_of_another_type_is_another_job(spark, tmp_path, place):
    rows = zipf_words(50, 5, 0)
    run(spark.createDataFrame(rows), place, Sum("value"))
    other_key = rows.set_column(0, "word", pc.binary_length(rows["word"]))
    with pytest.raises(IncompatibleCheckpointError, match=r"word string.*this query has.*word int"):
        run(spark.createDataFrame(other_key), place, Sum("value"))
    other_value = rows.set_column(1, "value", rows["value"].cast(pa.float64()))
    with pytest.raises(IncompatibleCheckpointError, match=r"sum int64.*this query has.*sum double"):
        run(spark.createDataFrame(other_value), place, Sum("value"))
    with pytest.raises(InvalidArgumentError, match="no column called 'value'"):
        run(spark.createDataFrame(rows.drop_columns("value")), place, Sum("value"))


def test_more_columns_than_before_do_not_matter(spark, tmp_path, place):
    tables = [zipf_words(100, 10, seed) for seed in range(2)]
    sink = Remember()
    write_batches(tmp_path / "in", tables[:1])
    run(file_stream(spark, tmp_path / "in"), place, Count(), sink)
    write_batches(tmp_path / "in", [tables[1].append_column("more", tables[1]["value"])], 1)
    run(file_stream(spark, tmp_path / "in"), place, Count(), sink)
    assert sink.latest("count") == expected(tables)[0]


def test_a_checkpoint_of_a_newer_format_is_refused(spark, place, monkeypatch):
    rows = spark.createDataFrame(zipf_words(20, 5, 0))
    monkeypatch.setattr("evenkeel.state.files.FORMAT", 1000)
    run(rows, {**place, "checkpoint": f"{place['checkpoint']}-new"}, Count())
    monkeypatch.undo()
    with pytest.raises(IncompatibleCheckpointError, match="1000"):
        run(rows, {**place, "checkpoint": f"{place['checkpoint']}-new"}, Count())


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("only root can make a small disk")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"no small disk can be made here: {made.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(path):
    """Write until no more will go."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    assert shutil.disk_usage(path).free == 0


@pytest.mark.parametrize("full", ["checkpoint", "local_directory"])
def test_a_full_disk_is_told_and_loses_nothing(spark, tmp_path, place, small_disk, full):
    tables = [zipf_words(300, 40, seed) for seed in range(3)]
    write_batches(tmp_path / "in", tables[:1])
    place[full] = str(small_disk / "here")
    sink = Remember()
    rows = file_stream(spark, tmp_path / "in")
    run(rows, place, Count(), sink, strategy=Forced([2, 2, 2]))
    filler = small_disk / "filler"
    fill(filler)
    write_batches(tmp_path / "in", tables[1:], 1)
    with pytest.raises(Exception, match=r"(?i)no space left|ENOSPC|cannot be written|Cannot write|Cannot make"):
        run(rows, place, Count(), sink, strategy=Forced([2, 2, 2]))
    filler.unlink()
    run(rows, place, Count(), sink, strategy=Forced([2, 2, 2]))
    assert sink.latest("count") == expected(tables)[0]
    assert Path(place["checkpoint"]).exists()
