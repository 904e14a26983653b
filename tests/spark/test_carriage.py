"""What goes where when a table changes: no Spark needed for that."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.routing import RoutingTable
from evenkeel.routing.replicas import with_replicas
from evenkeel.spark.carriage import carriage, targets_of
from evenkeel.state.identity import pack

HASHES = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 60)


@st.composite
def tables(draw, channels):
    slots = draw(st.lists(st.integers(0, channels - 1), min_size=12, max_size=12))
    table = RoutingTable.even(channels, slots=12).evolve(slot_channels=np.array(slots, np.int32))
    pins = draw(st.lists(st.sampled_from(HASHES[:10].tolist()), unique=True, max_size=4))
    places = [draw(st.integers(0, channels - 1)) for _ in pins]
    table = table.with_pins(np.array(pins, np.int64), np.array(places, np.int32))
    return with_replicas(table, draw(st.integers(0, 1)), {}, {channel: str(channel) for channel in range(channels)})


def literal(before, after, channel, hashes):
    """Every copy that leaves the channel, key by key."""
    found = set()
    for row in range(len(hashes)):
        key = hashes[row : row + 1]
        old, new = int(before.home(key)[0]), int(after.home(key)[0])
        held = {old, *before.backups(key).tolist()[0]}
        if channel != new and new not in held - {old}:
            found.add((row, new))
        if old == channel:
            found |= {(row, backup) for backup in after.backups(key).tolist()[0] if backup not in held}
    return found


@given(st.data())
def test_each_copy_goes_to_who_is_to_have_it_and_does_not(data):
    channels = data.draw(st.integers(2, 4))
    before, after = (data.draw(tables(channels)) for _ in range(2))
    channel = data.draw(st.integers(0, channels - 1))
    here = HASHES[before.home(HASHES) == channel]
    rows, targets = targets_of(before, after, channel, here)
    assert len(rows) == len(set(zip(rows.tolist(), targets.tolist(), strict=True)))
    assert set(zip(rows.tolist(), targets.tolist(), strict=True)) == literal(before, after, channel, here)


@given(st.data())
def test_what_stays_on_a_host_is_fetched_and_all_else_is_sent(data):
    channels = [data.draw(st.integers(2, 4)) for _ in range(2)]
    before, after = (data.draw(tables(number)) for number in channels)
    hosts = [{channel: data.draw(st.sampled_from("ab")) for channel in range(number)} for number in channels]
    moved = carriage(before, after, *hosts)
    if before.has_backups or after.has_backups:
        assert moved == carriage(before, after)
        assert not moved.fetches
        return
    packed = pack(HASHES % before.slots, HASHES, np.zeros_like(HASHES))
    found = {("sent", source): selection for source, selection in moved.sends.items()}
    for target, sources in moved.fetches.items():
        found |= {(source, target): selection for source, selection in sources.items()}
    homes = zip(before.home(HASHES).tolist(), after.home(HASHES).tolist(), strict=True)
    for row, (old, new) in enumerate(homes):
        ways = [way for way, selection in found.items() if selection.covers(packed[row : row + 1])[0]]
        near = hosts[0][old] == hosts[1][new]
        assert ways == ([] if old == new else [(old, new) if near else ("sent", old)])
