"""Who sits where: no Spark needed for that."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.spark.homes import Homes
from evenkeel.spark.seats import host_loads, most_loaded, seat_channels

HOSTS = ["a", "b", "c"]


@st.composite
def cases(draw):
    channels = draw(st.integers(1, 12))
    seats = draw(st.lists(st.sampled_from(HOSTS), min_size=channels, max_size=channels))
    before = draw(st.dictionaries(st.integers(0, channels - 1), st.sampled_from([*HOSTS, "gone"])))
    loads = draw(st.lists(st.floats(0, 100), min_size=channels, max_size=channels))
    return seats, before, loads


@given(cases())
def test_every_channel_has_one_seat(case):
    seats, before, loads = case
    assert sorted(seat_channels(seats, before, loads)) == list(range(len(seats)))


@given(st.integers(1, 4), st.integers(1, 4))
def test_nobody_moves_while_all_is_even(hosts, each):
    seats = [f"host{host}" for host in range(hosts)] * each
    before = dict(enumerate(seats))
    assert seat_channels(seats, before, [1.0] * len(seats)) == list(range(len(seats)))


def test_new_hosts_get_their_share_and_as_many_stay_as_can():
    seats = ["a", "b", "c"] * 2
    after = dict(zip(seat_channels(seats, dict.fromkeys(range(6), "a"), [1.0] * 6), seats, strict=True))
    assert Counter(after.values()) == {"a": 2, "b": 2, "c": 2}


def test_heavy_channels_do_not_share_a_host():
    seats = ["a", "a", "b", "b"]
    before = {0: "a", 1: "a", 2: "b", 3: "b"}
    loads = [10.0, 9.0, 1.0, 1.0]
    assert most_loaded(before, loads) > 1.7
    assert seat_channels(seats, before, loads) == [0, 1, 2, 3]  # each would leave its state behind
    after = dict(zip(seat_channels(seats, before, loads, evens=True), seats, strict=True))
    assert after[0] != after[1]
    assert most_loaded(after, loads) < 1.1
    assert sum(host_loads(after, loads).values()) == sum(loads)


@given(cases())
def test_nobody_leaves_a_host_that_has_seats_for_all_of_its_channels(case):
    seats, before, loads = case
    after = dict(zip(seat_channels(seats, before, loads), seats, strict=True))
    waiting, room = Counter(before.values()), Counter(seats)
    for channel, host in before.items():
        if waiting[host] <= room[host]:
            assert after[channel] == host


def test_those_left_stay_when_a_host_is_lost():
    before = {0: "a", 1: "lost", 2: "b"}
    after = seat_channels(["b", "a", "b"], before, [1.3, 1.0, 0.7])
    assert after.index(0) == 1
    assert sorted(after) == [0, 1, 2]


def test_no_load_is_even():
    assert most_loaded({0: "a", 1: "b"}, [0.0, 0.0]) == 1.0


@pytest.mark.parametrize(
    ("up", "lost"),
    [
        ({"driver:1", "a:1", "a:2", "b:1"}, False),
        ({"driver:1", "a:1", "a:2", "b:1", "c:1"}, False),
        ({"driver:1", "a:2", "b:1"}, False),  # what was on the disk of a is there
        ({"driver:1", "a:1", "a:2"}, True),
        ({"driver:1", "a:1", "a:2", "c:1"}, True),
    ],
)
def test_homes_are_lost_with_the_last_executor_of_a_host(up, lost):
    homes = Homes(None, (0, 1), (-1, -2), ("a", "b"), (0, 1), frozenset({"driver:1", "a:1", "a:2", "b:1"}))
    assert homes.lost(frozenset(up)) == lost


def test_where_spark_calls_hosts_otherwise_any_executor_that_leaves_counts():
    homes = Homes(None, (0, 1), (-1, -2), ("a.example", "b.example"), (0, 1), frozenset({"10.0.0.1:1", "10.0.0.2:1"}))
    assert not homes.lost(frozenset({"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}))
    assert homes.lost(frozenset({"10.0.0.1:1"}))
