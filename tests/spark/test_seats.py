"""Who sits where: no Spark needed for that."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

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
    after = dict(zip(seat_channels(seats, before, loads), seats, strict=True))
    assert after[0] != after[1]
    assert most_loaded(after, loads) < 1.1
    assert sum(host_loads(after, loads).values()) == sum(loads)


def test_no_load_is_even():
    assert most_loaded({0: "a", 1: "b"}, [0.0, 0.0]) == 1.0
