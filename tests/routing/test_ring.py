"""The consistent-hash ring: stable, even, and quiet when channels come and go."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import mix64
from evenkeel.routing import ConsistentHashRing, RoutingTable

HASHES = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 20_000)


@given(
    st.sets(st.integers(0, 30), min_size=1, max_size=8),
    st.integers(1, 40),
    st.integers(1, 60),
    st.integers(0, 5),
)
@settings(max_examples=60)
def test_a_key_belongs_to_the_replica_that_follows_it(members, replicas, buckets, seed):
    ring = ConsistentHashRing(members, replicas, buckets, seed)
    points = sorted(
        (int(mix64(mix64(np.array([c], np.uint64), seed) + np.uint64(r))[0]), c)
        for c in members
        for r in range(replicas)
    )
    hashes = HASHES[:50]
    for position, channel in zip(mix64(hashes.view(np.uint64), seed).tolist(), ring.route(hashes), strict=True):
        following = [owner for point, owner in points if point >= position] or [points[0][1]]
        assert channel == following[0]


@given(st.integers(1, 30), st.integers(0, 3))
@settings(max_examples=20)
def test_a_new_channel_only_takes_and_takes_its_share(channels, seed):
    before = ConsistentHashRing(channels, seed=seed).route(HASHES)
    after = ConsistentHashRing(channels, seed=seed).with_channel(channels).route(HASHES)
    moved = before != after
    assert (after[moved] == channels).all()
    # The share of a channel with 1000 replicas is 1/N give or take 1/sqrt(1000); five deviations never happen.
    share = 1 / (channels + 1)
    assert abs(moved.mean() - share) < 5 * share / np.sqrt(1000) + 5 * np.sqrt(share / len(HASHES))


@given(st.integers(2, 20), st.data())
@settings(max_examples=20)
def test_a_leaving_channel_only_gives(channels, data):
    leaving = data.draw(st.integers(0, channels - 1))
    ring = ConsistentHashRing(channels, replicas=50)
    before, after = ring.route(HASHES), ring.without_channel(leaving).route(HASHES)
    assert (before[before != after] == leaving).all()
    assert (after != leaving).all()
    assert (ring.without_channel(leaving).with_channel(leaving).route(HASHES) == before).all()


def test_the_ring_fills_the_slots_of_a_table():
    nine, ten = (RoutingTable.from_ring(ConsistentHashRing(n)) for n in (9, 10))
    moves = nine.diff(ten)
    assert set(moves.targets.tolist()) == {9}
    assert 0.08 < len(moves) / nine.slots < 0.12
    assert ten.channels == 10


def test_the_ring_is_the_same_in_every_process_and_version():
    code = (
        "import numpy; from evenkeel.routing import ConsistentHashRing; "
        "print(ConsistentHashRing(7).route(numpy.arange(20)).tolist())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # Written down once: a change here would move the keys of every running job.
    frozen = [6, 4, 1, 4, 3, 1, 5, 0, 4, 5, 1, 4, 0, 5, 5, 3, 4, 1, 5, 3]
    assert other.stdout.strip() == str(frozen)


@pytest.mark.parametrize(
    "arguments", [(0,), ([],), ([-1],), (3, 0), (3, 1, 0)], ids=["none", "empty", "negative", "replicas", "buckets"]
)
def test_an_impossible_ring_is_refused(arguments):
    with pytest.raises(InvalidArgumentError):
        ConsistentHashRing(*arguments)
    with pytest.raises(InvalidArgumentError, match="not on the ring"):
        ConsistentHashRing(3).without_channel(9)
