"""Random problems whose loads are small dyadic numbers, so that a listing and compiled loops add up alike."""

from __future__ import annotations

import numpy as np

from evenkeel.planning import Items, LoadSnapshot
from evenkeel.routing import Ragged, RoutingTable


def random_table(rng, channels, slots, keys):
    """Random slots, some pinned keys (tracked or not) and at times a key split over two channels."""
    listed = rng.permutation(keys)[: rng.integers(0, 6)]
    pins = np.append(listed, rng.integers(-(2**63), 2**63 - 1, rng.integers(0, 3)))
    splits = listed[:1] if channels > 1 and rng.random() < 0.3 else listed[:0]
    pins = np.setdiff1d(pins, splits)
    return RoutingTable(
        rng.integers(0, channels, slots),
        channels,
        epoch=int(rng.integers(0, 5)),
        pin_hashes=pins,
        pin_channels=rng.integers(0, channels, len(pins)),
        split_hashes=splits,
        split_channels=Ragged.of([rng.permutation(channels)[:2].tolist() for _ in splits]),
    )


def random_keys(rng, most=40):
    return np.unique(rng.integers(-(2**63), 2**63 - 1, rng.integers(0, most)))


def random_snapshot(rng, keys, slots):
    counts = np.floor(rng.integers(0, 12, len(keys)) ** rng.uniform(0.5, 2.5))
    return LoadSnapshot.of_keys(
        keys, counts, slots=slots, state_bytes=rng.integers(0, 100, len(keys)), track=int(rng.integers(0, 40))
    )


def random_problem(seed, *, resize=True):
    """A snapshot, a table and a number of channels."""
    rng = np.random.default_rng(seed)
    channels, slots = int(rng.integers(1, 8)), int(rng.integers(1, 20))
    keys = random_keys(rng)
    table = random_table(rng, channels, slots, keys)
    wanted = int(rng.integers(1, 8)) if resize and rng.random() < 0.5 else channels
    return random_snapshot(rng, keys, slots), table, wanted


def random_windows(seed, windows, *, resize=True):
    """As many windows of one stream: keys come and go, and some rise and fall together."""
    rng = np.random.default_rng(seed)
    channels, slots = int(rng.integers(1, 8)), int(rng.integers(1, 40))
    keys = random_keys(rng, most=60)
    table = random_table(rng, channels, slots, keys)
    waves = rng.integers(0, 3, len(keys))
    size = rng.integers(1, 10, len(keys))
    snapshots = []
    for window in range(windows):
        counts = size * (1 + (window + waves) % 3) + rng.integers(0, 5, len(keys))
        seen = rng.random(len(keys)) < 0.9
        snapshots.append(
            LoadSnapshot.of_keys(keys[seen], counts[seen], slots=slots, state_bytes=2 * size[seen], track=10)
        )
    wanted = int(rng.integers(1, 8)) if resize and rng.random() < 0.3 else channels
    return snapshots, table, wanted


def as_lists(snapshot, table, keys):
    """The items, their loads and homes, as plain numbers, and what gives the fixed load of each channel."""
    items = Items.of(snapshot, table, keys)
    return items, items.loads.tolist(), items.homes.tolist(), lambda channels: items.fixed_for(channels).tolist()


def settle_by_hand(loads, homes, fixed_for, channels):
    """Items of vanished channels: the heaviest to the then least loaded; those without load in turn."""
    homes = list(homes)
    fixed = fixed_for(channels)
    homeless = [i for i, home in enumerate(homes) if home >= channels]
    held = [fixed[c] + sum(y for y, home in zip(loads, homes, strict=True) if home == c) for c in range(channels)]
    for i in sorted((i for i in homeless if loads[i] > 0), key=lambda i: (-loads[i], i)):
        c = min(range(channels), key=lambda c: (held[c], c))
        homes[i] = c
        held[c] += loads[i]
    for turn, i in enumerate(i for i in homeless if loads[i] == 0):
        homes[i] = turn % channels
    return homes, held
