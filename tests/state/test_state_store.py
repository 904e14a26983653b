from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from evenkeel.errors import InvalidArgumentError
from evenkeel.state import (
    Delta,
    Selection,
    StateStore,
    both_hashes,
    forget,
    forget_others,
    held_copies,
    opening,
    working_copy,
)
from state.state_world import Stage, as_dict, get, keys_of, name_of, put, rows_of, totals_of


@pytest.fixture
def stage(tmp_path):
    return Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work", snapshot_every=4)


def memory(_):
    filesystem = fs._MockFileSystem()
    filesystem.create_dir("bucket")
    return filesystem, "bucket/checkpoint"


def subtree(tmp_path):
    return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "checkpoint"


def root_of_subtree(tmp_path):
    return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), ""


def trailing_slash(tmp_path):
    return fs.LocalFileSystem(), f"{tmp_path}/checkpoint/"


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(memory, id="in memory"),
        pytest.param(subtree, id="below another directory"),
        pytest.param(root_of_subtree, id="at the root"),
        pytest.param(trailing_slash, id="with a slash at the end of the path"),
    ],
)
def test_a_checkpoint_may_be_on_any_file_system(place, tmp_path):
    stage = Stage(*place(tmp_path / "far"), tmp_path / "work") if place is memory else None
    if stage is None:
        (tmp_path / "far").mkdir()
        stage = Stage(*place(tmp_path / "far"), tmp_path / "work")
    for batch in range(5):
        stage.batch(dict.fromkeys(range(batch, 20), b"%d" % batch), snapshot=batch == 3)
    assert stage.contents("another host") == {name_of(n): b"%d" % min(n, 4) for n in range(20)}


def test_a_task_leaves_the_working_copy_where_it_was(stage):
    stage.batch({1: b"one"})
    for _ in range(3):
        stage.batch({1: b"two"}, commit=False)
        with stage.open() as view:
            assert view.opening.how in {"caught up", "warm"}
            assert get(view, [1]) == {1: b"one"}


def test_how_a_version_was_opened_is_reported(stage):
    ticks = iter(range(100))
    stage.options["timer"] = lambda: next(ticks)
    with stage.open() as view:
        assert (view.opening.how, view.opening.took_ms) == ("new", 1000)
    for batch in range(3):
        stage.batch({batch: b"x"}, "host-b")
    with stage.open() as view:
        assert (view.opening.how, view.opening.deltas) == ("caught up", 3)
        assert view.opening.read_bytes > 0
    with stage.open() as view:
        assert (view.opening.how, view.opening.deltas, view.opening.read_bytes) == ("warm", 0, 0)
    with stage.open("host-c") as view:
        assert (view.opening.how, view.opening.deltas) == ("rebuilt", 3)
    stage.batch({3: b"x"}, "host-b", snapshot=True)
    with stage.open("host-d") as view:
        assert (view.opening.how, view.opening.deltas) == ("rebuilt", 1)


def test_a_warm_opening_reads_nothing_from_the_checkpoint(stage, tmp_path):
    stage.batch({1: b"one"})
    ref = stage.ref
    stage.open().close()
    (tmp_path / "checkpoint").rename(tmp_path / "away")
    with stage.store().open(ref) as view:
        assert (view.opening.how, get(view, [1])) == ("warm", {1: b"one"})


def test_a_copy_that_is_ahead_is_rebuilt_and_catches_up_again(stage):
    for batch in range(4):
        stage.batch({0: b"%d" % batch})
    stage.open().close()
    with stage.open(batch=1) as view:
        assert (view.opening.how, get(view, [0])) == ("rebuilt", {0: b"1"})
    with stage.open() as view:
        assert (view.opening.how, view.opening.deltas, get(view, [0])) == ("caught up", 2, {0: b"3"})


def test_a_view_sees_its_version_while_the_copy_moves_on(stage):
    stage.batch({1: b"old", 2: b"old"})
    with stage.open() as old:
        stage.batch({1: b"new", 2: None})
        with stage.open() as new:
            assert new.shared is old.shared
            assert get(new, [1, 2]) == {1: b"new", 2: None}
        assert get(old, [1, 2]) == {1: b"old", 2: b"old"}


def test_a_copy_that_another_process_moves_on_while_it_is_opened_is_not_taken_for_the_version(stage, monkeypatch):
    stage.batch({0: b"0"})
    stage.open().close()
    stage.batch({0: b"1"}, "host-b")
    advance, intruders = opening._Opener._advance, iter([stage])

    def another_is_quicker(self, shared, about):
        done = advance(self, shared, about)
        for other in intruders:
            other.open().close()
        return done

    monkeypatch.setattr(opening._Opener, "_advance", another_is_quicker)
    with stage.open(batch=0) as view:
        assert (view.opening.how, get(view, [0])) == ("rebuilt", {0: b"0"})


def test_keys_that_share_a_hash_are_told_apart_by_the_second(stage):
    assert name_of(6)[:2] == name_of(7)[:2]
    stage.batch({6: b"six", 7: b"seven"})
    with stage.open() as view:
        assert get(view, [7, 6, 8]) == {7: b"seven", 6: b"six", 8: None}
        moved = Selection.of(keys=([name_of(6)[0]], [name_of(6)[1]]))
        assert set(rows_of(view.export(moved)).values()) == {b"six", b"seven"}


def test_a_key_of_ten_megabytes_and_a_null_key_are_keys_like_any_other(stage):
    keys = pa.array(["x" * 10_000_000, None, ""])
    hashes, hashes2 = both_hashes(keys)
    store = stage.store()
    with store.open(None) as view:
        delta = Delta()
        delta.put(hashes % 4096, hashes, hashes2, pa.array([b"y" * 10_000_000, b"null", b""]))
        file = store.write_delta(view, delta, batch=0, attempt="a")
        stage.checkpoint.commit(0, [store.write_manifest(view, file, batch=0, attempt="a")])
    with stage.open() as view:
        assert view.get(hashes % 4096, hashes, hashes2).to_pylist() == [b"y" * 10_000_000, b"null", b""]
        assert view.totals().total_bytes == 10_000_004 + 60


def test_an_export_is_cut_into_batches_of_bounded_size(stage):
    stage.batch(dict.fromkeys(range(40), b"x" * 3000000))
    with stage.open() as view:
        sizes = [batch.nbytes for batch in view.scan()]
    assert len(sizes) > 1
    assert max(sizes) <= 33 << 20


def test_what_one_channel_drops_is_what_another_imports(stage):
    values = {number: b"%d" % number for number in range(200)}
    stage.batch(values)
    slots, hashes, _ = keys_of([n for n in range(200) if n % 3 == 0])
    moving = Selection.of(slots=[1, 2], spare=(slots, hashes), keys=keys_of([8, 9])[:2])
    with stage.open() as view:
        moved = list(view.export(moving))
    before = stage.contents()
    stage.batch({}, drop=moving)
    other = stage.store(channel=1)
    with other.open(None) as view:
        delta = Delta()
        state_bytes = delta.import_(moved)
        file = other.write_delta(view, delta, batch=1, attempt="m")
        ref = other.write_manifest(view, file, batch=1, attempt="m")
        assert state_bytes == file.totals.total_bytes
        with other.open(ref) as arrived:
            there = rows_of(arrived.scan())
    here = stage.contents()
    assert len(here) + len(there) == len(before)
    assert here | there == before
    assert there


def test_imported_state_can_be_read_and_changed_before_anything_is_written(stage):
    stage.batch({1: b"stays", 2: b"goes"})
    with stage.open() as view:
        delta = Delta()
        delta.drop(Selection.of(keys=keys_of([2])[:2]))
        put(delta, {3: b"arrives"})
        assert get(view, [1, 2, 3], delta) == {1: b"stays", 2: None, 3: b"arrives"}
        put(delta, {3: b"changes", 1: None})
        assert get(view, [3, 2, 1], delta) == {3: b"changes", 2: None, 1: None}
        assert get(view, [1, 2, 3]) == {1: b"stays", 2: b"goes", 3: None}


@pytest.mark.parametrize("knows", [pytest.param(True, id="told"), pytest.param(False, id="looked up")])
def test_keys_and_bytes_per_slot_follow_every_kind_of_change(stage, knows):
    store, ref = stage.store(), None
    rng = np.random.default_rng(7)
    for batch in range(12):
        with store.open(ref) as view:
            delta = Delta()
            numbers = rng.choice(300, 80, replace=False).tolist()
            if batch % 4 == 3:
                delta.drop(Selection.of([batch % 8], keys_of(numbers[:5])[:2], keys_of(numbers[5:9])[:2]))
            previous = view.get(*keys_of(numbers), delta=delta) if knows else None
            values = {number: None if number % 5 == 0 else b"x" * (number % 7) for number in numbers}
            put(delta, values, previous)
            file = store.write_delta(view, delta, batch=batch, attempt="a")
            ref = store.write_manifest(view, file, batch=batch, attempt="a")
        with store.open(ref) as view:
            counted = totals_of(rows_of(view.scan()))
            assert as_dict(view.totals()) == counted
            assert as_dict(file.totals) == counted
            keys, state_bytes = file.totals.dense(8)
            assert (keys.sum(), state_bytes.sum()) == (file.totals.total_keys, file.totals.total_bytes)


def test_few_new_values_do_not_touch_the_large_base(stage):
    stage.batch(dict.fromkeys(range(1000), b"old"))
    for batch in range(20):
        stage.batch(dict.fromkeys(range(10), b"%d" % batch))
    with stage.open() as view:
        assert view._reader.recent_keys == 10
        assert len(rows_of(view.scan())) == 1000
        assert get(view, [9, 10]) == {9: b"19", 10: b"old"}
    stage.batch(dict.fromkeys(range(5, 100), b"new"))
    with stage.open() as view:
        assert view._reader.recent_keys == 0
        assert get(view, [4, 5]) == {4: b"19", 5: b"new"}


def test_a_large_base_is_folded_into_with_each_batch_by_as_much_as_that_writes(stage, monkeypatch):
    monkeypatch.setattr(working_copy, "_LARGE_PAGES", 10)
    folded, fold_part = [], working_copy._fold_part
    monkeypatch.setattr(working_copy, "_fold_part", lambda *given: folded.append(fold_part(*given)) or folded[-1])
    held = dict.fromkeys(range(3200), b"old")
    stage.batch(held)
    rng, limit, most, batches_that_fold = np.random.default_rng(3), 3200 // working_copy._FOLD_AT, 90, 0
    for batch in range(40):
        values = dict.fromkeys(rng.choice(3200, most, replace=False).tolist(), b"%d" % batch)
        held |= values
        stage.batch(values)
        folded.clear()
        with stage.open() as view:
            assert view._reader.recent_keys <= limit + 2 * most
            assert get(view, range(3200)) == held
        assert sum(folded) <= most
        assert max(folded) <= limit // working_copy._PARTS + 1
        batches_that_fold += sum(folded) > 0
    assert 20 < batches_that_fold < 40


def test_what_a_large_base_takes_on_disk_is_not_several_times_its_pages(stage, monkeypatch):
    monkeypatch.setattr(working_copy, "_LARGE_PAGES", 10)
    rng = np.random.default_rng(4)
    stage.batch(dict.fromkeys(range(40_000), b"x" * 30))
    for _ in range(12):
        stage.batch(dict.fromkeys(rng.choice(40_000, 3_000, replace=False).tolist(), b"y" * 30))
    with stage.open() as view:
        held = view.txn.stat(view.shared.base)["leaf_pages"] + view.txn.stat(view.shared.recent)["leaf_pages"]
        assert view.shared.env.info()["last_pgno"] < 1.5 * held


def test_a_batch_that_changes_nothing_writes_no_delta(stage):
    stage.batch({1: b"one"})
    before = stage.checkpoint.files.list("stages")
    with stage.open() as view:
        written = stage.store().write_delta(view, Delta(), batch=1, attempt="idle")
        assert (written.file, written.totals.total_keys) == (None, 1)
    assert stage.checkpoint.files.list("stages") == before
    stage.batch({})
    with stage.open() as view:
        assert (view.opening.how, get(view, [1])) == ("warm", {1: b"one"})


def test_the_map_grows_by_itself(tmp_path):
    stage = Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work", map_bytes=1 << 16)
    for batch in range(6):
        stage.batch(dict.fromkeys(range(100 * batch, 100 * batch + 100), b"x" * 1000))
        with stage.open() as view:
            assert view.opening.how == "caught up"
    assert len(stage.contents()) == 600


def test_the_map_grows_although_the_process_has_another_view_open(tmp_path):
    stage = Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work", map_bytes=1 << 16)
    stage.batch({0: b"x"})
    with stage.open() as old:
        stage.batch(dict.fromkeys(range(500), b"y" * 1000))
        with stage.open() as new:
            assert (new.opening.how, new.totals().total_keys) == ("rebuilt", 500)
        assert get(old, [0, 1]) == {0: b"x", 1: None}


def test_a_channel_that_comes_back_starts_from_nothing(stage):
    stage.batch({1: b"one"})
    stage.open().close()
    with stage.store().open(None) as view:
        assert (view.opening.how, get(view, [1]), view.totals().total_keys) == ("new", {1: None}, 0)


def test_working_copies_can_be_listed_and_forgotten(stage, tmp_path):
    stage.batch({1: b"one"})
    directory = tmp_path / "work" / "host-a"
    StateStore(stage.checkpoint, "count", 5, directory).open(None).close()
    StateStore(stage.checkpoint, "dead", 0, directory).open(None).close()
    held = [(copy.stage, copy.channel) for copy in held_copies(directory)]
    assert held == [("run-1.count", 0), ("run-1.count", 5), ("run-1.dead", 0)]
    assert all(copy.size_bytes > 0 for copy in held_copies(directory))
    assert StateStore(stage.checkpoint, "count", 5, directory).forget() > 0
    assert forget(directory, "run-1.dead") > 0
    assert [(copy.stage, copy.channel) for copy in held_copies(directory)] == [("run-1.count", 0)]
    assert held_copies(tmp_path / "nowhere") == []
    assert stage.contents() == {name_of(1): b"one"}


def test_the_working_copies_of_other_channels_of_a_stage_are_forgotten(stage, tmp_path):
    directory = tmp_path / "work" / "host-a"
    for name, channel in (("count", 0), ("count", 1), ("count", 2), ("dead", 0)):
        StateStore(stage.checkpoint, name, channel, directory).open(None).close()
    forget_others(directory, "run-1.count", {1})
    held = [(copy.stage, copy.channel) for copy in held_copies(directory)]
    assert held == [("run-1.count", 1), ("run-1.dead", 0)]


def test_a_forgotten_copy_stays_readable_for_those_who_have_it_open(stage):
    stage.batch({1: b"one"})
    with stage.open() as view:
        stage.store().forget()
        assert get(view, [1]) == {1: b"one"}
    with stage.open() as view:
        assert view.opening.how == "rebuilt"


def spoil_header(data):
    data.write_bytes(b"\0" * 8192)


def spoil_length(data):
    data.write_bytes(data.read_bytes()[:8192])


def spoil_all(data):
    data.write_bytes(b"not a database")


def spoil_nothing(data):
    data.unlink()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(spoil_header, id="with zeros in its header"),
        pytest.param(spoil_length, id="cut short"),
        pytest.param(spoil_all, id="overwritten"),
        pytest.param(spoil_nothing, id="removed"),
    ],
)
def test_a_damaged_working_copy_is_rebuilt(stage, tmp_path, spoil):
    stage.batch(dict.fromkeys(range(500), b"x" * 100))
    expected = stage.contents()
    [data] = (tmp_path / "work").rglob("data.mdb")
    spoil(data)
    with stage.open() as view:
        assert view.opening.how == "rebuilt"
        assert rows_of(view.scan()) == expected
    assert len(list((tmp_path / "work").rglob("data.mdb"))) == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"boot_id": lambda: "another start"}, id="from before the host's last start"),
        pytest.param({"FORMAT": 2}, id="of another format"),
    ],
)
def test_a_working_copy_that_cannot_be_trusted_is_rebuilt(stage, monkeypatch, change):
    stage.batch({1: b"one"})
    stage.open().close()
    for name, value in change.items():
        monkeypatch.setattr(working_copy, name, value)
    with stage.open() as view:
        assert (view.opening.how, get(view, [1])) == ("rebuilt", {1: b"one"})


def test_a_copy_of_another_life_of_the_checkpoint_is_not_mistaken_for_this_one(stage, tmp_path):
    stage.batch({1: b"one"})
    fork = tmp_path / "fork"
    fs.copy_files(str(tmp_path / "checkpoint"), str(fork), fs.LocalFileSystem(), fs.LocalFileSystem())
    restored = Stage(fs.LocalFileSystem(), fork, tmp_path / "work")
    stage.batch({1: b"two"})
    stage.open().close()
    restored.batch({1: b"other"}, "host-b")
    with restored.open() as view:
        assert (view.opening.how, get(view, [1])) == ("rebuilt", {1: b"other"})


@pytest.mark.parametrize(
    ("values", "previous"),
    [
        pytest.param(pa.array([1]), None, id="states that are not bytes"),
        pytest.param(pa.array([b"a", b"b"]), None, id="more values than keys"),
        pytest.param(pa.array([b"a"]), pa.array([b"a", b"b"]), id="more previous values than keys"),
    ],
)
def test_a_put_that_cannot_be_is_refused(values, previous):
    with pytest.raises(InvalidArgumentError):
        Delta().put([0], [1], [1], values, previous)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(pa.array([b"ab", b"cd"], pa.binary(2)), id="fixed size"),
        pytest.param(pa.array([b"ab", b"cd"], pa.large_binary()), id="large"),
        pytest.param(pa.chunked_array([[b"ab"], [b"cd"]]), id="in chunks"),
        pytest.param(pa.array([b"no", b"ab", b"cd"])[1:], id="a slice"),
        pytest.param([b"ab", b"cd"], id="a list"),
    ],
)
def test_states_may_come_as_any_binary_array(stage, values):
    store = stage.store()
    with store.open(None) as view:
        delta = Delta()
        delta.put(*keys_of([1, 2]), values)
        file = store.write_delta(view, delta, batch=0, attempt="a")
        ref = store.write_manifest(view, file, batch=0, attempt="a")
    with store.open(ref) as view:
        assert get(view, [1, 2]) == {1: b"ab", 2: b"cd"}
        assert isinstance(view.get(*keys_of([])), pa.BinaryArray)


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 101])
def test_a_name_that_cannot_be_part_of_a_file_name_is_refused(stage, name):
    with pytest.raises(InvalidArgumentError, match="file name"):
        StateStore(stage.checkpoint, name, 0, "work")


def test_a_channel_that_began_anew_is_not_moved_on_by_who_asks_for_what_it_held_before(stage):
    """As a task does that is left of an attempt at a batch after which the channel's keys were switched elsewhere."""
    before = [stage.batch({number: b"old"}) for number in range(3)][-1]
    store = stage.store()
    store.forget()
    with store.open(None, after=2) as view:
        assert view.opening.how == "new"
        delta = Delta()
        put(delta, {9: b"anew"})
        assert store.open_if_near(before) is None
        file = store.write_delta(view, delta, batch=3, attempt="b")
        ref = store.write_manifest(view, file, batch=3, attempt="b")
    with store.open_if_near(ref) as view:
        assert view.opening.how == "caught up"
        assert get(view, [0, 9]) == {0: None, 9: b"anew"}
