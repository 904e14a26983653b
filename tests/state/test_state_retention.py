from __future__ import annotations

import pytest
from pyarrow import fs

from evenkeel.errors import InvalidArgumentError
from evenkeel.state import clean
from state.state_world import Stage, name_of


@pytest.fixture
def stage(tmp_path):
    return Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work")


def run(stage, batches):
    for batch in range(batches):
        stage.batch({0: b"%d" % batch, batch: b"x"}, snapshot=batch % 3 == 2)


def test_every_kept_version_can_still_be_opened_and_older_files_are_gone(stage):
    run(stage, 20)
    expected = {batch: stage.contents("before", batch) for batch in range(16, 20)}
    cleaned = clean(stage.checkpoint, keep=4)
    assert stage.checkpoint.batches() == [16, 17, 18, 19]
    assert cleaned.removed_bytes > 0
    assert not cleaned.unreadable
    for batch, contents in expected.items():
        assert stage.contents(f"new-{batch}", batch) == contents
    oldest = min(int(path.split("/b")[1][:12]) for path in stage.checkpoint.files.list("stages"))
    assert oldest >= 9
    assert clean(stage.checkpoint, keep=4).removed == ()


def test_what_lost_attempts_left_is_removed_but_nothing_of_a_batch_under_way(stage):
    stage.batch({1: b"lost"}, commit=False)
    stage.batch({1: b"one"})
    under_way = stage.batch({1: b"two"}, commit=False)
    cleaned = clean(stage.checkpoint, keep=5)
    assert len(cleaned.removed) == 2
    assert all("-a0." in path for path in cleaned.removed)
    stage.checkpoint.commit(1, [under_way])
    assert stage.contents("new") == {name_of(1): b"two"}


def test_nothing_is_removed_before_the_first_commit(stage):
    stage.batch({1: b"one"}, commit=False)
    assert clean(stage.checkpoint).removed == ()


def test_the_last_commit_is_always_kept(stage):
    with pytest.raises(InvalidArgumentError):
        clean(stage.checkpoint, keep=0)


def test_an_unreadable_manifest_keeps_all_files_of_its_channel(stage, tmp_path):
    run(stage, 8)
    [manifest] = (tmp_path / "checkpoint").glob("stages/count/b000000000007-*.manifest.json")
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:-5])
    cleaned = clean(stage.checkpoint, keep=2)
    assert [path.rpartition("/")[2] for path in cleaned.unreadable] == [manifest.name]
    assert all(path.startswith("commits/") for path in cleaned.removed)
    manifest.write_bytes(whole)
    assert clean(stage.checkpoint, keep=2).removed
    assert stage.contents("new")[name_of(0)] == b"7"


def test_the_other_files_in_the_directory_are_left_alone(stage, tmp_path):
    run(stage, 3)
    note = tmp_path / "checkpoint/stages/count/README"
    note.write_text("mine")
    clean(stage.checkpoint, keep=1)
    assert note.exists()


def test_a_cleaning_that_stops_half_way_harms_nothing_and_is_finished_by_the_next(stage, monkeypatch):
    run(stage, 9)
    expected = stage.contents("before")
    files = type(stage.checkpoint.files)
    delete, left = files.delete, iter(range(4))

    def dying(self, path):
        if next(left, None) is None:
            raise KeyboardInterrupt
        delete(self, path)

    monkeypatch.setattr(files, "delete", dying)
    with pytest.raises(KeyboardInterrupt):
        clean(stage.checkpoint, keep=2)
    monkeypatch.undo()
    assert stage.contents("new") == expected
    clean(stage.checkpoint, keep=2)
    assert stage.checkpoint.batches() == [7, 8]
    assert stage.contents("newer") == expected


def test_a_snapshot_that_was_asked_for_stays_and_counts_once_it_is_there(stage):
    """Also while only the last manifest asks for it, and what asked before is cleaned away."""
    for batch in range(4):
        stage.batch({0: b"%d" % batch, batch: b"x"}, snapshot=False)
    store = stage.store()
    ref = stage.batch({0: b"4"}, store=store, snapshot=True, later=True)
    assert store.asked
    asked = stage.checkpoint.read_manifest(ref).asked
    for batch in range(5, 8):
        stage.batch({0: b"%d" % batch}, snapshot=False)
        assert stage.checkpoint.read_manifest(stage.ref).asked == asked, "not there yet"
    with store.open(ref) as view:
        store.write_asked(view)
    clean(stage.checkpoint, keep=1)
    assert set(stage.checkpoint.files.list("stages")) >= {asked.path, asked.note}
    stage.batch({0: b"8"}, snapshot=False)
    found = stage.checkpoint.read_manifest(stage.ref)
    assert found.asked is None
    assert [(link.kind, link.version) for link in found.chain][4:7] == [("delta", 4), ("snapshot", 4), ("delta", 5)]
    assert asked.note in clean(stage.checkpoint, keep=1).removed
    with stage.open("a new host") as view:
        assert (view.opening.how, view.opening.deltas) == ("rebuilt", 4)
    assert stage.contents("a new host") == stage.contents()


def test_a_snapshot_that_is_never_written_is_asked_for_anew(stage, monkeypatch):
    monkeypatch.setattr("evenkeel.state.store._PATIENCE", 2)
    asked = []
    for batch in range(8):
        ref = stage.batch({0: b"%d" % batch}, snapshot=True, later=True)
        found = stage.checkpoint.read_manifest(ref).asked
        asked.append(found and found.version)
    assert asked == [None, 1, 1, 1, 4, 4, 4, 7]
