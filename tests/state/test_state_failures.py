"""Damaged files, full disks, failing file systems, killed processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap

import pytest
from pyarrow import fs

from evenkeel.errors import CorruptDataError, StorageError, UnrecoverableStateError
from evenkeel.state import Delta
from state.state_world import Stage, failing_filesystem, get, name_of, put, rows_of


@pytest.fixture
def stage(tmp_path):
    return Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work")


def only(tmp_path, pattern):
    [path] = (tmp_path / "checkpoint/stages/count").glob(pattern)
    return path


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def remove(path):
    path.unlink()


DAMAGES = [
    pytest.param(cut, "instead of", id="cut short"),
    pytest.param(flip, "checksum", id="altered"),
    pytest.param(remove, "does not exist", id="removed"),
]


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
def test_a_damaged_snapshot_is_done_without_if_older_files_suffice(stage, tmp_path, damage, why):
    for batch in range(6):
        stage.batch({0: b"%d" % batch, batch: b"x"}, snapshot=batch in {2, 4})
    damage(only(tmp_path, "b000000000004-*.snapshot.mdb"))
    with stage.open("new") as view:
        assert get(view, [0]) == {0: b"5"}
        assert (view.opening.how, view.opening.deltas) == ("rebuilt", 4)
        assert [path.rpartition(".")[0].rpartition("/")[2] for path in view.opening.damaged] == [
            "b000000000004-c00000-a4.snapshot"
        ]
    damage(only(tmp_path, "b000000000002-*.snapshot.mdb"))
    with pytest.raises(UnrecoverableStateError) as caught:
        stage.open("newer")
    assert len(caught.value.damaged) == 2
    assert all(path in str(caught.value) for path in caught.value.damaged)
    assert pickle.loads(pickle.dumps(caught.value)).damaged == caught.value.damaged


def test_without_any_good_snapshot_the_deltas_from_the_first_batch_on_suffice(stage, tmp_path):
    for batch in range(4):
        stage.batch({batch: b"x"}, snapshot=batch == 2)
    cut(only(tmp_path, "*.snapshot.mdb"))
    with stage.open("new") as view:
        assert (view.opening.how, view.opening.deltas) == ("rebuilt", 4)


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
def test_a_damaged_delta_is_named_and_never_skipped(stage, tmp_path, damage, why):
    for batch in range(3):
        stage.batch({0: b"%d" % batch})
    path = only(tmp_path, "b000000000001-*.delta.arrow")
    damage(path)
    with pytest.raises(UnrecoverableStateError, match=path.name):
        stage.open("new")
    assert not list((tmp_path / "work/new").rglob("data.mdb"))


def test_a_damaged_delta_does_not_matter_to_a_host_that_has_applied_it(stage, tmp_path):
    for batch in range(3):
        stage.batch({0: b"%d" % batch})
    stage.open().close()
    stage.batch({1: b"x"}, "host-b")
    cut(only(tmp_path, "b000000000001-*.delta.arrow"))
    with stage.open() as view:
        assert (view.opening.how, get(view, [0, 1])) == ("caught up", {0: b"2", 1: b"x"})


def test_a_damaged_delta_does_not_matter_behind_a_good_snapshot(stage, tmp_path):
    for batch in range(4):
        stage.batch({0: b"%d" % batch}, snapshot=batch == 3)
    cut(only(tmp_path, "b000000000001-*.delta.arrow"))
    assert stage.contents("new") == {name_of(0): b"3"}


def test_a_working_copy_from_before_the_last_snapshot_is_the_last_resort(stage, tmp_path):
    stage.batch({0: b"0"}, snapshot=False)
    stage.batch({0: b"1"}, snapshot=False)
    stage.open("old").close()
    for batch in range(2, 6):
        stage.batch({0: b"%d" % batch, batch: b"x"}, snapshot=batch == 3)
    cut(only(tmp_path, "*.snapshot.mdb"))
    cut(only(tmp_path, "b000000000000-*.delta.arrow"))
    with stage.open("old") as view:
        assert (view.opening.how, view.opening.deltas, get(view, [0])) == ("caught up", 4, {0: b"5"})
        assert len(view.opening.damaged) == 2


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
def test_a_damaged_manifest_is_named(stage, tmp_path, damage, why):
    stage.batch({0: b"x"})
    path = only(tmp_path, "*.manifest.json")
    damage(path)
    with pytest.raises(CorruptDataError, match=f"{path.name}.*{why}"):
        stage.open("new")


@pytest.mark.parametrize("room", [0, 1, 100], ids=lambda room: f"full after {room} bytes")
@pytest.mark.parametrize("what", ["delta", "snapshot", "manifest", "commit"])
def test_a_full_disk_leaves_the_previous_version_and_no_half_files(tmp_path, room, what):
    filesystem, handler = failing_filesystem()
    stage = Stage(filesystem, tmp_path / "checkpoint", tmp_path / "work")
    stage.batch(dict.fromkeys(range(100), b"x" * 100))
    before, files = stage.contents(), stage.checkpoint.files.list("")
    store = stage.store()
    with store.open(stage.ref) as view:
        delta = Delta()
        put(delta, dict.fromkeys(range(100), b"y" * 100))
        written = None if what == "delta" else store.write_delta(view, delta, batch=1, attempt="full")
        ref = store.write_manifest(view, written, batch=1, attempt="ok") if what == "commit" else None
        write = {
            "delta": lambda: store.write_delta(view, delta, batch=1, attempt="full"),
            "snapshot": lambda: store.write_manifest(view, written, batch=1, attempt="full", snapshot=True),
            "manifest": lambda: store.write_manifest(view, written, batch=1, attempt="full", snapshot=False),
            "commit": lambda: stage.checkpoint.commit(1, [ref]),
        }[what]
        handler.full_after = room
        with pytest.raises(StorageError, match="No space left on device") as caught:
            write()
        assert what in caught.value.path
    handler.full_after = None
    left = set(stage.checkpoint.files.list("")) - set(files)
    assert not any(what in path for path in left - ({ref.file.path} if ref else set()))
    assert stage.contents() == stage.contents("new") == before
    stage.batch({0: b"after"})
    assert stage.contents("newer")[name_of(0)] == b"after"


def test_a_file_system_that_cannot_be_read_is_not_taken_for_a_damaged_file(tmp_path):
    filesystem, handler = failing_filesystem()
    stage = Stage(filesystem, tmp_path / "checkpoint", tmp_path / "work")
    stage.batch({0: b"x"})
    ref = stage.ref
    handler.failing_reads = True
    with pytest.raises(StorageError, match="Input/output error"):
        stage.store("new").open(ref)
    handler.failing_reads = False
    assert stage.contents("new") == {name_of(0): b"x"}


def test_a_full_disk_below_the_working_copy_is_an_error_and_leaves_it_as_it_was(stage, tmp_path):
    stage.batch({0: b"x"})
    stage.open().close()
    stage.batch(dict.fromkeys(range(500), b"y" * 4000), "host-b")
    code = f"""
        import resource
        from pyarrow import fs
        from evenkeel.errors import StorageError
        from state.state_world import Stage
        stage = Stage(fs.LocalFileSystem(), {str(tmp_path / "checkpoint")!r}, {str(tmp_path / "work")!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        for host in ("host-a", "host-new"):
            try:
                stage.open(host)
            except StorageError as error:
                print("refused:", error)
    """
    env = {**os.environ, "PYTHONPATH": "tests"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=env, check=False
    )
    assert done.stdout.count("refused: The working copy in") == 2, done.stderr
    with stage.store().open(stage.checkpoint.read_commit(0).manifest("count", 0)) as view:
        assert (view.opening.how, rows_of(view.scan())) == ("warm", {name_of(0): b"x"})
    assert len(stage.contents()) == 500


def test_a_directory_that_cannot_be_written_is_an_error(stage, tmp_path):
    (tmp_path / "work").write_text("a file")
    with pytest.raises(StorageError, match="Give a directory that can be written"):
        stage.open()


def _open_often(place, rounds, results):
    stage = Stage(fs.LocalFileSystem(), place / "checkpoint", place / "work", map_bytes=1 << 16)
    for number in range(rounds):
        batch = number % 8
        with stage.open(batch=batch) as view:
            rows = rows_of(view.scan())
            assert rows[name_of(0)] == b"%d" % batch
            assert len(rows) == view.totals().total_keys == 40 * (batch + 1)
    results.put("fine")


def test_several_processes_may_open_different_versions_of_one_copy_at_once(tmp_path):
    stage = Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work")
    for batch in range(8):
        values = dict.fromkeys(range(40 * batch, 40 * batch + 40), b"x" * 500)
        stage.batch({**values, 0: b"%d" % batch}, "writer", snapshot=batch == 4)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_open_often, args=(tmp_path, 40, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert [results.get(timeout=5) for _ in workers] == ["fine"] * 3


def test_a_process_killed_in_the_middle_of_applying_leaves_the_copy_whole(stage, tmp_path):
    stage.batch({0: b"x"})
    stage.open().close()
    stage.batch(dict.fromkeys(range(2000), b"y"), "host-b")
    code = f"""
        import os, signal
        from pyarrow import fs
        from evenkeel.state import working_copy
        from state.state_world import Stage
        stage = Stage(fs.LocalFileSystem(), {str(tmp_path / "checkpoint")!r}, {str(tmp_path / "work")!r})
        working_copy._describe = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        stage.open()
    """
    env = {**os.environ, "PYTHONPATH": "tests"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=env, check=False)
    assert done.returncode == -9
    with stage.open() as view:
        assert (view.opening.how, view.totals().total_keys) == ("caught up", 2000)
