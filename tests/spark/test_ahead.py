"""What is read and opened ahead is what is read and opened in time."""

from __future__ import annotations

import threading

import pytest
from pyarrow import fs

from evenkeel.spark import ahead as ahead_module
from evenkeel.spark.ahead import OpenedAhead, catch_up_later, read_ahead
from evenkeel.state.copies import CopyPlace
from evenkeel.state.environment import SharedEnvironment
from evenkeel.state.working_copy import read_about
from state.state_world import Stage, failing_filesystem


@pytest.mark.parametrize("number", [0, 1, 50], ids=["nothing", "one", "more than are held"])
def test_all_is_given_in_order(number):
    assert list(read_ahead(iter(range(number)))) == list(range(number))


def test_what_reading_raises_is_raised_where_it_is_waited_for():
    def broken():
        yield 1
        raise OSError("gone")

    given = read_ahead(broken())
    assert next(given) == 1
    with pytest.raises(OSError, match="gone"):
        next(given)


def test_it_reads_on_while_what_was_given_is_worked_on():
    read = threading.Event()

    def items():
        yield 1
        read.set()
        yield 2

    given = read_ahead(items())
    assert next(given) == 1
    assert read.wait(10)
    assert list(given) == [2]


class View:
    """A state that knows whether it is open."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_a_state_is_opened_once_and_closed():
    opened, view = [], View()

    def open_channel(channel):
        opened.append(channel)
        return view

    with OpenedAhead(open_channel) as ahead:
        ahead.begin(3)
        ahead.begin(3)
        assert ahead.view is view
        assert not view.closed
    assert opened == [3]
    assert view.closed


def test_a_state_is_closed_where_the_task_fails_before_it_is_asked_for():
    view = View()

    def fail():
        with OpenedAhead(lambda _: view) as ahead:
            ahead.begin(0)
            raise ValueError("bad rows")

    with pytest.raises(ValueError, match="bad rows"):
        fail()
    assert view.closed


def test_what_opening_fails_with_is_raised_where_the_state_is_asked_for():
    def fails(channel):
        raise OSError(f"no disk for {channel}")

    with OpenedAhead(fails) as ahead:
        ahead.begin(1)
        with pytest.raises(OSError, match="no disk for 1"):
            _ = ahead.view


def test_nothing_is_opened_where_no_home_row_came():
    with OpenedAhead(lambda _: pytest.fail("opened")):
        pass


@pytest.fixture
def stage(tmp_path):
    return Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work")


def version_of(store):
    """The batch that a working copy is at; looks, and leaves it there."""
    path = CopyPlace.of(store.directory, store.copy_stage, store.channel).current()
    shared = SharedEnvironment.open(path, 1 << 20)
    try:
        with shared.env.begin() as txn:
            return read_about(txn, shared).version
    finally:
        shared.close()


def test_a_working_copy_is_brought_up_to_date_once_its_batch_is_committed_and_not_before(stage):
    stage.batch({1: b"one"})
    ref = stage.batch({1: b"two"}, commit=False)
    thread = catch_up_later(stage.store(), ref)
    thread.join(0.2)
    assert thread.is_alive()
    assert version_of(stage.store()) == 0
    stage.checkpoint.commit(1, [ref])
    thread.join(10)
    assert version_of(stage.store()) == 1
    with stage.open() as view:
        assert (view.opening.how, view.opening.deltas) == ("warm", 0)
    assert list(stage.contents().values()) == [b"two"]


def test_what_another_attempt_has_committed_moves_nothing(stage, monkeypatch):
    monkeypatch.setattr(ahead_module, "_LAST_LOOK_SECONDS", 0.1)
    stage.batch({1: b"one"})
    ref = stage.batch({1: b"given up"}, commit=False)
    stage.batch({1: b"two"})
    thread = catch_up_later(stage.store(), ref)
    thread.join(10)
    assert not thread.is_alive()
    assert version_of(stage.store()) == 0
    assert list(stage.contents().values()) == [b"two"]


def test_a_snapshot_that_was_asked_for_is_written_once_its_batch_is_committed(stage):
    stage.batch({1: b"one"})
    store = stage.store()
    ref = stage.batch({1: b"two"}, store=store, snapshot=True, later=True, commit=False)
    thread = catch_up_later(store, ref)
    thread.join(0.2)
    assert not list(stage.work.parent.rglob("*.snapshot.*"))
    stage.checkpoint.commit(1, [ref])
    thread.join(10)
    stage.batch({1: b"three"})
    with stage.open("a new host", 2) as view:
        assert (view.opening.how, view.opening.deltas) == ("rebuilt", 1), "from the snapshot of the batch before"
    assert list(stage.contents("a new host").values()) == [b"three"]


def test_a_copy_that_is_gone_is_not_built_again(stage):
    stage.batch({1: b"one"})
    ref = stage.batch({1: b"two"})
    stage.store().forget()
    catch_up_later(stage.store(), ref).join(10)
    assert not list(stage.work.glob("*/*/c*"))


def test_no_commit_is_looked_for_where_that_is_a_journey(tmp_path):
    filesystem, _ = failing_filesystem()
    far = Stage(filesystem, tmp_path / "checkpoint", tmp_path / "work")
    assert catch_up_later(far.store(), far.batch({1: b"one"})) is None
