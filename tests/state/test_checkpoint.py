from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from pyarrow import fs

from evenkeel.errors import (
    CommitConflictError,
    CorruptDataError,
    IncompatibleCheckpointError,
    InvalidArgumentError,
)
from evenkeel.state import Checkpoint, Commit
from evenkeel.state import files as files_module
from evenkeel.state.manifest import ChainFile, snapshot_due, trim
from state.state_world import Stage, name_of


@pytest.fixture
def stage(tmp_path):
    return Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work")


def reopen(tmp_path, **changes):
    return Checkpoint.open(
        fs.LocalFileSystem(), str(tmp_path / "checkpoint"), **{"job": "job", "run": "run-2", **changes}
    )


def test_a_new_checkpoint_has_no_commit_and_keeps_its_id(stage, tmp_path):
    assert stage.checkpoint.last_commit() is None
    assert reopen(tmp_path).id == stage.checkpoint.id == "run-1"


def test_a_commit_is_found_again_with_all_it_was_given(stage, tmp_path):
    ref = stage.batch({1: b"one"}, commit=False)
    metadata = {"watermark": 12.5, "table": [1, 2], "why": "größer", "loads": np.arange(3), "rows": np.int64(4)}
    written = stage.checkpoint.commit(0, [ref], epoch=3, metadata=metadata)
    found = reopen(tmp_path).last_commit()
    assert (found.batch, found.epoch, found.manifests) == (0, 3, written.manifests)
    assert found.metadata == {"watermark": 12.5, "table": [1, 2], "why": "größer", "loads": [0, 1, 2], "rows": 4}
    assert found.manifest("count", 0) == ref
    assert found.manifest("count", 1) is None
    assert found.manifest("other", 0) is None


def test_a_manifest_is_committed_once_a_whole_commit_of_its_batch_names_it(stage, tmp_path):
    ref, other = stage.batch({1: b"one"}, commit=False), stage.batch({1: b"two"}, commit=False)
    assert not stage.checkpoint.is_committed(ref)
    stage.checkpoint.commit(0, [ref])
    assert stage.checkpoint.is_committed(ref)
    assert not stage.checkpoint.is_committed(other)
    file = tmp_path / "checkpoint" / "commits" / "b000000000000.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    assert not stage.checkpoint.is_committed(ref)
    file.write_bytes(whole.replace(b'"epoch":0', b'"epoch":1'))
    with pytest.raises(CorruptDataError, match="checksum"):
        stage.checkpoint.is_committed(ref)


def test_the_manifests_of_a_batch_are_found_by_how_their_attempts_are_called(stage):
    from evenkeel.state import Delta

    store, refs = stage.store(), {}
    with store.open(None) as view:
        file = store.write_delta(view, Delta(), batch=7, attempt="x")
        for batch, attempt in ((7, "mine-1"), (7, "mine-2"), (7, "others-1"), (8, "mine-1")):
            report = {"told by": attempt}
            refs[batch, attempt] = store.write_manifest(view, file, batch=batch, attempt=attempt, report=report)
    found = stage.checkpoint.manifests_of("count", 7, "mine")
    assert [(ref, manifest.report["told by"]) for ref, manifest in found] == [
        (refs[7, "mine-1"], "mine-1"),
        (refs[7, "mine-2"], "mine-2"),
    ]
    assert stage.checkpoint.manifests_of("none", 7, "mine") == []
    with open(stage.checkpoint.files.base + "/" + found[0][0].file.path, "r+") as half:  # noqa: PTH123
        half.truncate(20)
    with pytest.raises(CorruptDataError, match="middle of a line"):
        stage.checkpoint.manifests_of("count", 7, "mine")


def test_a_manifest_carries_the_report_of_its_batch(stage):
    store = stage.store()
    with store.open(None) as view:
        from evenkeel.state import Delta

        file = store.write_delta(view, Delta(), batch=0, attempt="a")
        ref = store.write_manifest(view, file, batch=0, attempt="a", report={"rows": 7, "busy_ms": 1.5})
    manifest = stage.checkpoint.read_manifest(ref)
    assert (manifest.report, manifest.attempt, manifest.chain) == ({"rows": 7, "busy_ms": 1.5}, "a", ())


def test_a_report_that_is_not_json_is_refused(stage):
    with pytest.raises(InvalidArgumentError, match="JSON"):
        stage.checkpoint.commit(0, [], metadata={"rng": object()})
    assert stage.checkpoint.last_commit() is None


def test_the_same_commit_again_is_fine_also_later(stage):
    first = stage.batch({1: b"one"})
    stage.batch({1: b"two"})
    assert isinstance(stage.checkpoint.commit(0, [first]), Commit)
    assert stage.checkpoint.last_commit().batch == 1


@pytest.mark.parametrize(
    ("batch", "change"),
    [
        pytest.param(0, {"metadata": {"other": 1}}, id="other metadata"),
        pytest.param(0, {"epoch": 9}, id="another epoch"),
        pytest.param(0, {"manifests": []}, id="other manifests"),
        pytest.param(2, {"manifests": []}, id="a batch left out"),
    ],
)
def test_another_commit_of_a_batch_or_out_of_turn_is_refused(stage, batch, change):
    ref = stage.batch({1: b"one"})
    with pytest.raises(CommitConflictError) as caught:
        stage.checkpoint.commit(batch, **{"manifests": [ref], **change})
    assert (caught.value.batch, caught.value.expected) == (batch, 1)
    assert stage.contents() == {name_of(1): b"one"}


def test_the_first_commit_is_that_of_batch_0(stage):
    with pytest.raises(CommitConflictError, match="the next one is 0"):
        stage.checkpoint.commit(57, [])


def test_a_commit_takes_one_manifest_per_channel_of_its_own_batch(stage):
    ref = stage.batch({1: b"one"}, commit=False)
    with pytest.raises(InvalidArgumentError, match="one manifest"):
        stage.checkpoint.commit(0, [ref, ref])
    stage.checkpoint.commit(0, [ref])
    with pytest.raises(InvalidArgumentError, match="one manifest"):
        stage.checkpoint.commit(1, [ref])


def test_a_commit_that_was_cut_short_while_written_does_not_count_and_can_be_written_again(stage, tmp_path):
    stage.batch({1: b"one"})
    ref = stage.batch({1: b"two"})
    path = tmp_path / "checkpoint/commits/b000000000001.json"
    whole = path.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert stage.checkpoint.last_commit().batch == 0
        assert stage.contents() == {name_of(1): b"one"}
        with pytest.raises(CorruptDataError, match=path.name):
            stage.checkpoint.read_commit(1)
        with pytest.raises(CommitConflictError):
            stage.checkpoint.commit(2, [])
    stage.checkpoint.commit(1, [ref])
    assert stage.contents() == {name_of(1): b"two"}


def test_an_altered_commit_is_named_and_never_passed_over(stage, tmp_path):
    stage.batch({1: b"one"})
    stage.batch({1: b"two"})
    path = tmp_path / "checkpoint/commits/b000000000001.json"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"batch":1', b'"batch":2', 1))
    with pytest.raises(CorruptDataError, match=path.name):
        stage.checkpoint.last_commit()


def test_a_checkpoint_of_another_job_is_refused(stage, tmp_path):
    with pytest.raises(IncompatibleCheckpointError, match="has the job 'job'; this query has 'other'"):
        reopen(tmp_path, job="other")
    with pytest.raises(IncompatibleCheckpointError, match="fingerprint"):
        reopen(tmp_path, fingerprint="8 slots")


@pytest.mark.parametrize("pattern", ["checkpoint.json", "commits/*.json", "stages/*/*.manifest.json"])
def test_a_newer_format_is_refused(stage, tmp_path, pattern, monkeypatch):
    stage.batch({1: b"one"})
    monkeypatch.setattr(files_module, "FORMAT", 0)
    [path] = (tmp_path / "checkpoint").glob(pattern)
    with pytest.raises(IncompatibleCheckpointError, match="has format 1"):
        reopen(tmp_path)
    assert json.loads(path.read_text().splitlines()[0])["format"] == 1


def test_a_delta_of_a_newer_format_is_refused(stage, monkeypatch):
    stage.batch({1: b"one"})
    monkeypatch.setattr("evenkeel.state.delta_file.FORMAT", 0)
    with pytest.raises(IncompatibleCheckpointError, match="has format 1"):
        stage.open()


def test_a_first_start_that_died_can_be_tried_again_but_a_used_checkpoint_keeps_its_name(stage, tmp_path):
    path = tmp_path / "checkpoint/checkpoint.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    assert reopen(tmp_path).id == "run-2"
    path.write_bytes(whole)
    stage.batch({1: b"one"})
    for damage in (whole[:20], whole.replace(b"job", b"jab"), None):
        path.unlink() if damage is None else path.write_bytes(damage)
        with pytest.raises(CorruptDataError, match=r"checkpoint\.json"):
            reopen(tmp_path)


def test_a_checkpoint_may_be_moved_and_sent_to_other_processes(stage, tmp_path):
    stage.batch({1: b"one"})
    sent = pickle.loads(pickle.dumps(stage.checkpoint))
    assert sent.last_commit() == stage.checkpoint.last_commit()
    (tmp_path / "checkpoint").rename(tmp_path / "elsewhere")
    moved = Stage(fs.LocalFileSystem(), tmp_path / "elsewhere", tmp_path / "work")
    assert moved.contents("host-b") == {name_of(1): b"one"}


def link(kind, version, size=10):
    from evenkeel.state import StoredFile

    return ChainFile(kind, version, f"tip-{version}", StoredFile(f"{kind}-{version}", size, ""))


def test_a_chain_goes_back_to_the_last_snapshot_but_one():
    chain = tuple(link("delta", n) for n in range(3))
    assert trim(chain) == chain
    chain += (link("snapshot", 2), link("delta", 3))
    assert trim(chain) == chain
    chain += (link("snapshot", 3), link("delta", 4))
    assert trim(chain) == chain[3:]


@pytest.mark.parametrize(
    ("deltas", "delta_bytes", "state_bytes", "due"),
    [
        pytest.param(4, 100, 400, False, id="not before its turn"),
        pytest.param(5, 100, 400, True, id="when the deltas are worth half the state"),
        pytest.param(5, 1, 400, False, id="not while the deltas are small beside the state"),
        pytest.param(20, 1, 400, True, id="in any case after four times as many"),
    ],
)
def test_a_snapshot_is_written_when_it_is_worth_its_cost(deltas, delta_bytes, state_bytes, due):
    chain = (link("snapshot", 0), *(link("delta", n, delta_bytes) for n in range(1, deltas + 1)))
    assert snapshot_due(chain, state_bytes, every=5, channel=3) is due


def test_channels_take_turns_with_their_first_snapshot():
    chain = tuple(link("delta", n, 100) for n in range(12))
    first = [next(n for n in range(13) if snapshot_due(chain[:n], 0, every=5, channel=c)) for c in range(5)]
    assert first == [5, 6, 7, 8, 9]
