from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.routing import Action, RoutingTable
from evenkeel.routing.replicas import recovered, switchable, with_replicas

HASHES = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 200)


@st.composite
def replicated(draw):
    channels = draw(st.integers(2, 6))
    hosts = {channel: draw(st.sampled_from("abc")) for channel in range(channels)}
    table = RoutingTable.even(channels, slots=24)
    pins = draw(st.lists(st.sampled_from(HASHES[:50].tolist()), unique=True, max_size=6))
    places = [draw(st.integers(0, channels - 1)) for _ in pins]
    table = table.with_pins(np.array(pins, np.int64), np.array(places, np.int32))
    default = draw(st.integers(0, 3))
    levels = {
        key: draw(st.integers(0, 3)) for key in draw(st.lists(st.sampled_from(HASHES[25:75].tolist()), unique=True))
    }
    return table, default, levels, hosts


@given(replicated())
def test_every_key_has_the_copies_asked_for_on_channels_of_their_own(case):
    table, default, levels, hosts = case
    after = with_replicas(table, default, levels, hosts)
    backups = after.backups(HASHES).tolist()
    for key, home, others in zip(HASHES.tolist(), after.home(HASHES).tolist(), backups, strict=True):
        wanted = min(levels.get(key, default), table.channels - 1)
        assert len(others) == len(set(others)) == wanted
        assert home not in others
        # Another host for each copy, as long as there are any.
        used = {hosts[channel] for channel in (home, *others)}
        assert len(used) == min(len(set(hosts.values())), 1 + wanted)
    assert (after.home(HASHES) == table.home(HASHES)).all()
    assert with_replicas(after, default, levels, hosts) is after  # what is well placed stays


@given(replicated(), st.data())
def test_recovery_switches_on_copies_and_moves_nothing(case, data):
    table, default, levels, hosts = case
    before = with_replicas(table, default, levels, hosts)
    lost = data.draw(st.sets(st.integers(0, table.channels - 1)))
    after = recovered(before, lost)
    assert set(before.diff(after).actions.tolist()) <= {Action.SWITCH}
    for home, others, new_home, new_others in zip(
        before.home(HASHES).tolist(),
        before.backups(HASHES).tolist(),
        after.home(HASHES).tolist(),
        after.backups(HASHES).tolist(),
        strict=True,
    ):
        left = [channel for channel in others if channel not in lost]
        if home not in lost:
            assert (new_home, new_others) == (home, left)
        elif left:
            assert (new_home, new_others) == (left[0], left[1:])
        else:
            assert (new_home, new_others) == (home, [])
    assert not switchable(after) & lost
    assert recovered(after, lost).evolve(epoch=after.epoch) == after


def test_the_table_keeps_its_bound_and_the_first_keys_have_it():
    levels = {int(key): 1 for key in HASHES[:10]}
    after = with_replicas(RoutingTable.even(4), 0, levels, {}, max_pins=3)
    assert sorted(after.pin_hashes.tolist()) == sorted(HASHES[:3].tolist())


def test_the_default_backup_is_the_next_channel():
    after = with_replicas(RoutingTable.even(5), 1, {}, {})
    backups = after.backups_of_slots.channels
    assert (backups == (after.slot_channels + 1) % 5).all()
    assert switchable(after) == frozenset(range(5))


def test_a_negative_number_is_a_mistake():
    with pytest.raises(InvalidArgumentError, match="negative"):
        with_replicas(RoutingTable.even(2), -1, {}, {})


def test_a_key_that_is_of_no_more_account_leaves_its_place_to_others():
    table = RoutingTable.even(4).with_pins([7], [3])  # where its slot is
    for batch in range(50):
        hot = {100 * batch + rank: 1 for rank in range(1, 4)}
        table = with_replicas(table, 0, hot, {}, max_pins=4)
        assert table.pin_hashes.tolist() == sorted(hot)
        assert (table.backups_of_pins.lengths == 1).all()
    elsewhere = with_replicas(RoutingTable.even(4).with_pins([7], [2]), 0, {}, {})
    assert (elsewhere.pin_hashes.tolist(), elsewhere.pin_channels.tolist()) == ([7], [2])
    assert with_replicas(elsewhere, 0, {}, {}) is elsewhere
