"""The workloads of the five papers, as one statistics window each; generated, seeded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenkeel.hashing import hash_keys
from evenkeel.planning import LoadSnapshot
from evenkeel.routing import ConsistentHashRing, RoutingTable


@dataclass(frozen=True, slots=True)
class Workload:
    """Windows measured under a table, and how many channels there are to be."""

    name: str
    snapshots: tuple[LoadSnapshot, ...]
    table: RoutingTable
    channels: int


def zipf(keys: int, skew: float) -> np.ndarray:
    """Expected counts of a million tuples, at least one each, hottest first."""
    shares = 1 / np.arange(1, keys + 1) ** skew
    return np.ceil(1e6 * shares / shares.sum())


def zipf_keys(keys: int, skew: float = 0.8) -> LoadSnapshot:
    """Every key tracked, hot and cold ones mixed, state independent of cost."""
    rng = np.random.default_rng(0)
    counts = rng.permutation(np.ceil(1e6 / np.arange(1, keys + 1) ** skew))
    return LoadSnapshot.of_keys(
        hash_keys(np.arange(keys)), counts, slots=4096, state_bytes=rng.integers(1, 10_000, keys)
    )


def gedik(keys: int, skew: float, channels: int, to: int, track: int = 2000) -> Workload:
    """Partitioning functions: state is linear in frequency; the table is a ring's."""
    counts = zipf(keys, skew)
    snapshot = LoadSnapshot.of_keys(hash_keys(np.arange(keys)), counts, slots=4096, track=track)
    table = RoutingTable.from_ring(ConsistentHashRing(channels), 4096)
    return Workload(f"gedik: {keys:,} keys, z={skew:g}, N {channels}→{to}", (snapshot,), table, to)


def substreams(kind: str, windows: int = 24, slots: int = 100, channels: int = 10) -> Workload:
    """ELB/CLB: a hundred substreams with Gaussian or Zipf sizes and Poisson arrivals; state a tenth of the rate."""
    rng = np.random.default_rng(5)
    sizes = (
        np.exp(-0.5 * ((np.arange(slots) - slots / 2) / (slots / 6)) ** 2) if kind == "gaussian" else zipf(slots, 1.0)
    )
    rates = rng.permutation(sizes / sizes.sum() * 600_000)
    arrived = [rng.poisson(rates) for _ in range(windows)]
    none = np.empty(0)
    snapshots = tuple(
        LoadSnapshot(counts, counts, counts // 10, none, none, none, none, distinct_keys=slots) for counts in arrived
    )
    return Workload(
        f"elb/clb: {kind} substreams, N {channels}", snapshots, RoutingTable.even(channels, slots), channels
    )


def length_windows(skew: float, channels: int = 5) -> Workload:
    """DLB: 4,096 keys that hold the last 500 tuples each, so that state hardly depends on load."""
    counts = np.random.default_rng(2).permutation(zipf(4096, skew))
    snapshot = LoadSnapshot.of_keys(
        hash_keys(np.arange(4096)), counts, slots=4096, state_bytes=np.minimum(counts, 500) * 140
    )
    return Workload(
        f"dlb: 4,096 keys, z={skew:g}, N {channels}", (snapshot,), RoutingTable.even(channels, 4096), channels
    )


def lognormal(mean: float, deviation: float, keys: int, channels: int = 10) -> Workload:
    """PKG: log-normal key frequencies, as of a social network."""
    counts = np.ceil(np.sort(np.random.default_rng(3).lognormal(mean, deviation, keys))[::-1])
    snapshot = LoadSnapshot.of_keys(hash_keys(np.arange(keys)), counts, slots=4096)
    name = f"pkg: log-normal({mean:g}, {deviation:g}), {keys:,} keys, N {channels}"
    return Workload(name, (snapshot,), RoutingTable.even(channels, 4096), channels)


def drifted(keys: int, skew: float = 0.85, channels: int = 40) -> Workload:
    """FTLB: a table that was even, then one key in ten changed its place in the popularity."""
    from evenkeel.planning import Llfd

    rng = np.random.default_rng(4)
    counts = rng.permutation(zipf(keys, skew))
    hashes = hash_keys(np.arange(keys))
    state = np.ceil(counts * rng.uniform(0.5, 2, keys))
    table = RoutingTable.even(channels, 4096)
    before = LoadSnapshot.of_keys(hashes, counts, slots=4096, state_bytes=state)
    table = Llfd().plan(before, table).table
    drifting = rng.choice(keys, keys // 10, replace=False)
    counts[drifting] = counts[rng.permutation(drifting)]
    after = LoadSnapshot.of_keys(hashes, counts, slots=4096, state_bytes=state)
    return Workload(f"ftlb: {keys:,} keys, z={skew:g}, drifted, N {channels}", (after,), table, channels)


def all_workloads(quick: bool) -> list[Workload]:
    """What planners are compared on; for a first look, something small of each paper."""
    if quick:
        return [
            gedik(20_000, 1.0, 9, 10),
            substreams("zipf"),
            length_windows(0.2),
            lognormal(2.245, 1.133, 1_100),
            drifted(5_000),
        ]
    keys = 1_000_000
    return [
        gedik(keys, 1.0, 9, 10),
        gedik(keys, 1.0, 10, 10),
        gedik(keys, 0.8, 10, 10),
        gedik(keys, 1.0, 31, 32),
        gedik(keys, 0.8, 12, 10),
        substreams("gaussian"),
        substreams("zipf"),
        length_windows(0.2),
        length_windows(1.5),
        lognormal(1.789, 2.366, 16_000),
        lognormal(2.245, 1.133, 1_100),
        drifted(5_000),
        drifted(100_000),
    ]
