"""A plan in steps is the same plan."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.streams import stored_and_read
from evenkeel.control import Schedule
from evenkeel.planning import LoadSnapshot
from evenkeel.planning.plan import state_of_moves
from evenkeel.routing import Moves, RoutingTable
from evenkeel.routing.laws import check
from planning.instances import KEYS, snapshots, tables


@st.composite
def ways(draw):
    """Two tables of as many slots, the loads, and a budget."""
    slots = draw(st.integers(1, 8))
    start, target = draw(tables(slots)), draw(tables(slots))
    budget = draw(st.none() | st.integers(1, 200))
    snapshot = draw(snapshots(slots))
    return Schedule.of(start, target, snapshot, budget), snapshot, budget


def all_tables(schedule: Schedule) -> list[RoutingTable]:
    return [schedule.table(done) for done in range(len(schedule) + 1)]


def rows(moves: Moves) -> list[tuple]:
    columns = (moves.is_key, moves.ids, moves.sources, moves.targets, moves.actions)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def diffs(schedule: Schedule) -> list[Moves]:
    way = all_tables(schedule)
    return [old.diff(new) for old, new in pairwise(way)]


@given(ways())
def test_every_table_on_the_way_keeps_the_laws_and_has_the_next_epoch(way):
    schedule = way[0]
    for done, table in enumerate(all_tables(schedule)):
        check(table)
        assert table.epoch == schedule.start.epoch + done


@given(ways())
def test_the_last_table_is_the_one_planned(way):
    schedule = way[0]
    last = schedule.table(len(schedule))
    assert last.evolve(epoch=schedule.target.epoch) == schedule.target


@given(ways())
def test_the_moves_of_all_steps_are_those_of_the_whole_plan(way):
    schedule = way[0]
    together = sorted(row for moves in diffs(schedule) for row in rows(moves))
    assert together == sorted(rows(schedule.start.diff(schedule.target)))


@given(ways())
def test_nothing_moves_twice(way):
    seen: set[tuple] = set()
    for moves in diffs(way[0]):
        units = set(zip(moves.is_key.tolist(), moves.ids.tolist(), strict=True))
        assert not seen & units
        seen |= units


@given(ways())
def test_every_key_is_where_it_was_or_where_it_is_to_be_and_never_goes_back(way):
    schedule = way[0]
    others = np.arange(schedule.start.slots)  # small hashes: keys that no table lists
    keys = np.concatenate([KEYS, others])
    places = [
        list(zip(table.active_channels(keys).tolist(), table.backups(keys).tolist(), strict=True))
        for table in all_tables(schedule)
    ]
    for first, last, *between in zip(places[0], places[-1], *places[1:-1], strict=True):
        arrived = [place == last for place in between]
        assert all(place in (first, last) for place in between)
        if first != last:
            assert arrived == sorted(arrived)


@given(ways())
def test_no_step_sends_more_than_the_budget_but_for_one_item_that_is_larger(way):
    schedule, snapshot, budget = way
    if budget is None:
        assert len(schedule) == 1
        return
    path = all_tables(schedule)
    for old, new, told in zip(path, path[1:], schedule.step_bytes, strict=False):
        moves = old.diff(new)
        sizes = state_of_moves(moves, snapshot, old, new)
        assert sizes.sum() == told
        if told > budget:
            sending = {row[:2] for row, size in zip(rows(moves), sizes, strict=True) if size > 0}
            assert len(sending) == 1
    assert len(schedule) <= 2 * schedule.state_bytes / budget + 1


@given(ways())
def test_no_batch_is_spent_on_nothing_and_what_is_free_goes_at_once(way):
    schedule, snapshot, _ = way
    assert len(schedule) == 1 or (schedule.step_bytes > 0).all()
    for done in range(1, len(schedule)):
        old, new = schedule.table(done), schedule.table(done + 1)
        assert set(rows_that_send_nothing(old, new, snapshot)) == set()


def rows_that_send_nothing(old: RoutingTable, new: RoutingTable, snapshot: LoadSnapshot) -> list[tuple]:
    """Units all of whose moves are free."""
    moves = old.diff(new)
    sizes = state_of_moves(moves, snapshot, old, new)
    units = [row[:2] for row in rows(moves)]
    paid = {unit for unit, size in zip(units, sizes, strict=True) if size > 0}
    return [unit for unit in units if unit not in paid]


@given(ways())
def test_the_bytes_of_all_steps_are_those_of_the_plan(way):
    schedule, snapshot, _ = way
    moves = schedule.start.diff(schedule.target)
    assert schedule.state_bytes == state_of_moves(moves, snapshot, schedule.start, schedule.target).sum()


@given(ways())
def test_channels_are_added_with_the_first_step_and_removed_with_the_last(way):
    schedule = way[0]
    start, target = schedule.start.channels, schedule.target.channels
    between = [table.channels for table in all_tables(schedule)[1:-1]]
    assert between == [max(start, target)] * len(between)


@given(ways())
def test_a_schedule_comes_back_from_storage_as_it_was(way):
    schedule = way[0]
    again = Schedule.restore(stored_and_read(schedule.snapshot()))
    assert all_tables(again) == all_tables(schedule)
    assert again.step_bytes.tolist() == schedule.step_bytes.tolist()


def test_the_hottest_go_first():
    snapshot = LoadSnapshot([1.0] * 4, [3.0, 9.0, 1.0, 5.0], [10] * 4, [], [], [], [])
    start = RoutingTable([0, 0, 0, 0], 2)
    schedule = Schedule.of(start, start.evolve(slot_channels=[1, 1, 1, 1]), snapshot, budget_bytes=10)
    assert [schedule.table(done).slot_channels.tolist() for done in range(1, 5)] == [
        [0, 1, 0, 0],
        [0, 1, 0, 1],
        [1, 1, 0, 1],
        [1, 1, 1, 1],
    ]


@pytest.mark.parametrize("pinned_first", [True, False], ids=["the key before its slot", "the slot before its key"])
def test_a_key_that_leaves_its_slot_behind_is_never_lost_in_between(pinned_first):
    key = 4  # in slot 0
    cost = 9.0 if pinned_first else 1.0
    snapshot = LoadSnapshot([1.0] * 4, [5.0] * 4, [10] * 4, [key], [1.0], [cost], [10])
    start = RoutingTable([0, 0, 0, 0], 3)
    target = RoutingTable([1, 0, 0, 0], 3, epoch=1, pin_hashes=[key], pin_channels=[2])
    schedule = Schedule.of(start, target, snapshot, budget_bytes=10)
    middle = schedule.table(1)
    assert middle.home(np.array([key, 8])).tolist() == ([2, 0] if pinned_first else [0, 1])
