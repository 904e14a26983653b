"""What is read and opened ahead is what is read and opened in time."""

from __future__ import annotations

import threading

import pytest

from evenkeel.spark.ahead import OpenedAhead, read_ahead


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
