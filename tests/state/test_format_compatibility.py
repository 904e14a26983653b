"""Checkpoints of every format that was ever written: they open, go on, and give right results."""

from __future__ import annotations

import importlib.util
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from pyarrow import fs

from evenkeel.hashing import mix64
from evenkeel.state import Checkpoint, StateStore
from evenkeel.state.files import FORMAT
from state.state_world import rows_of

FORMATS = sorted(Path(__file__).parent.glob("format_*"))


@pytest.fixture(params=FORMATS, ids=lambda folder: folder.name)
def stored(request, tmp_path):
    """How a format's checkpoints were made, with the checkpoints themselves beside the test's files."""
    spec = importlib.util.spec_from_file_location(request.param.name, request.param / "make.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    with tarfile.open(made.STORED) as archive:
        archive.extractall(tmp_path, filter="data")
    return made


def test_every_format_has_stored_checkpoints():
    assert [folder.name for folder in FORMATS] == [f"format_{number}" for number in range(1, FORMAT + 1)]


def test_a_stored_checkpoint_is_small_and_tells_nothing_of_who_made_it(stored, tmp_path):
    assert stored.STORED.stat().st_size < 16_000
    for part in ("query", "state"):
        files = [file for file in (tmp_path / part).rglob("*") if file.is_file()]
        assert len(files) > 5
        assert [file for file in files if b"/tmp/" in file.read_bytes()] == []


@pytest.mark.parametrize("batch", [0, 1, 2], ids=["the first delta", "two deltas", "a snapshot and a delta"])
def test_each_version_of_a_state_reads_as_it_was_written(stored, tmp_path, batch):
    checkpoint = Checkpoint.open(fs.LocalFileSystem(), str(tmp_path / "state"), job="state", run="run-2")
    assert checkpoint.id == "run-1"
    ref = checkpoint.read_commit(batch).manifest("count", 0)
    with StateStore(checkpoint, "count", 0, tmp_path / "work").open(ref) as view:
        found = rows_of(view.scan())
    values = stored.state(batch)
    names = zip(*(column.tolist() for column in stored.named(values, mix64)), strict=True)
    assert found == dict(zip(names, values.values(), strict=True))


@pytest.mark.spark
def test_a_query_goes_on_from_a_stored_checkpoint_with_right_results(stored, spark, tmp_path):
    more = range(stored.BATCHES + 2)
    stored.write_rows(tmp_path / "rows", more)
    # Spark begins anew, and brings the batches again that are committed: they are passed over.
    query = stored.flow(spark, str(tmp_path / "rows")).start(
        "memory", checkpoint=str(tmp_path / "query"), trigger={"availableNow": True}
    )
    decided = len(query.decisions)
    query.await_termination()
    query.stop()
    assert decided >= 1
    assert sorted(query.sink.batches) == list(more)[stored.BATCHES :]
    counts, totals = Counter(), Counter()
    for batch in more:
        for row in stored.rows(batch).to_pylist():
            counts[row["word"]] += 1
            totals[row["word"]] += row["value"]
    latest = {row["word"]: row for row in query.sink.table().to_pylist()}
    assert {word: row["count"] for word, row in latest.items()} == counts
    assert {word: row["total"] for word, row in latest.items()} == totals
