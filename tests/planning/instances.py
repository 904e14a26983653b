"""Instances that planners are tried on: small and random, or named and awkward."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from evenkeel.hashing import hash_keys
from evenkeel.planning import LoadSnapshot
from evenkeel.routing import Ragged, RoutingTable

KEYS = hash_keys(np.arange(40))


@st.composite
def snapshots(draw, slots: int, max_keys: int = 12):
    """Loads of few slots and keys; zero is common."""
    load = st.one_of(st.just(0), st.integers(0, 50))
    keys = draw(st.lists(st.sampled_from(KEYS.tolist()), unique=True, max_size=max_keys))

    def column(length):
        return draw(st.lists(load, min_size=length, max_size=length))

    return LoadSnapshot(
        slot_counts=column(slots),
        slot_costs=column(slots),
        slot_state_bytes=column(slots),
        key_hashes=keys,
        key_counts=column(len(keys)),
        key_costs=column(len(keys)),
        key_state_bytes=column(len(keys)),
        distinct_keys=40,
    )


@st.composite
def tables(draw, slots: int, max_channels: int = 5, replicas: bool = True):
    """Any legal table over the same keys."""
    channels = draw(st.integers(1, max_channels))
    channel = st.integers(0, channels - 1)
    listed = draw(st.lists(st.sampled_from(KEYS.tolist()), unique=True, max_size=6))
    split = listed[4:]
    pinned = listed[:4]
    slot_channels = draw(st.lists(channel, min_size=slots, max_size=slots))
    pin_channels = draw(st.lists(channel, min_size=len(pinned), max_size=len(pinned)))
    some = st.lists(channel, unique=True, max_size=2) if replicas and draw(st.booleans()) else st.just([])

    def backups(homes):
        return Ragged.of([c for c in draw(some) if c != home] for home in homes)

    return RoutingTable(
        slot_channels=slot_channels,
        channels=channels,
        epoch=draw(st.integers(0, 3)),
        pin_hashes=pinned,
        pin_channels=pin_channels,
        pin_backups=backups(pin_channels),
        split_hashes=split,
        split_channels=Ragged.of(draw(st.lists(channel, unique=True, min_size=1)) for _ in split),
        slot_backups=backups(slot_channels),
    )


@st.composite
def problems(draw):
    """Windows, a table, and a number of channels."""
    slots = draw(st.integers(1, 9))
    windows = draw(st.lists(snapshots(slots), min_size=1, max_size=3))
    return windows, draw(tables(slots)), draw(st.integers(1, 6))


def _snapshot(counts, slots=8, track=None, state=None):
    keys = KEYS[: len(counts)]
    return LoadSnapshot.of_keys(keys, counts, slots=slots, track=track, state_bytes=state)


NOTHING = LoadSnapshot.of_keys(KEYS[:0], [], slots=8)
EVEN = RoutingTable.even(4, slots=8)
PINNED = EVEN.with_pins(KEYS[:3], [0, 1, 2])
AWKWARD = {
    "no load at all": (NOTHING, EVEN, 4),
    "no load at all, and pins": (NOTHING, PINNED, 4),
    "loads of zero": (_snapshot([0] * 10), EVEN, 4),
    "one key": (_snapshot([7]), EVEN, 4),
    "one key, untracked": (_snapshot([7], track=0), EVEN, 4),
    "one hot key over the average": (_snapshot([100, 1, 1, 1, 1, 1, 1, 1]), EVEN, 4),
    "equal keys": (_snapshot([3] * 16), EVEN, 4),
    "one channel": (_snapshot([5, 4, 3]), RoutingTable.even(1, slots=8), 1),
    "more channels than keys": (_snapshot([5, 4, 3]), EVEN, 20),
    "fewer channels": (_snapshot([9, 8, 7, 6, 5, 4]), PINNED, 2),
    "down to one channel": (_snapshot([9, 8, 7, 6, 5, 4]), PINNED, 1),
    "tracked keys vanish": (_snapshot([9, 8], state=[5, 5]), EVEN.with_pins(KEYS[10:14], [0, 0, 0, 1]), 4),
    "state without load": (_snapshot([0, 0, 5], state=[100, 50, 1]), PINNED, 4),
    "huge loads": (_snapshot([1e18, 1e18, 3]), EVEN, 4),
    "tiny loads": (_snapshot([1e-12, 2e-12, 1e-13], state=[1, 1, 1]), EVEN, 4),
}


def perfectly_even(channels: int = 4, per_channel: int = 3, replicas: bool = False):
    """Every channel has the same keys' worth: nothing to do."""
    slots = 64
    hashes = np.sort(np.unique(hash_keys(np.arange(400)) % slots * 0 + hash_keys(np.arange(400))))
    homes = (hashes % slots) % channels
    chosen = np.concatenate([hashes[homes == channel][:per_channel] for channel in range(channels)])
    loads = np.tile([5, 3, 2][:per_channel], channels)
    snapshot = LoadSnapshot.of_keys(chosen, loads, slots=slots)
    backups = Ragged.of([[(c + 1) % channels] for c in (np.arange(slots) % channels)]) if replicas else None
    return snapshot, RoutingTable(np.arange(slots) % channels, channels, slot_backups=backups)


def zipf_snapshot(keys: int, skew: float, *, slots: int = 4096, track: int = 1000, seed: int = 0, state: str = "load"):
    """A Zipf histogram: the hottest keys tracked, the rest in their slots."""
    hashes = hash_keys(np.arange(keys))
    counts = np.ceil(1e6 / np.arange(1, keys + 1) ** skew)
    sizes = counts if state == "load" else np.random.default_rng(seed).integers(1, 1000, keys)
    return LoadSnapshot.of_keys(hashes, counts, slots=slots, track=track, state_bytes=sizes)
