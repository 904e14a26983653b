"""Routing: tables and routers beside a bare hash-and-modulo on the same array."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Timing, time_together
from evenkeel._kernels.compile import compiled
from evenkeel.hashing import hash_keys
from evenkeel.routing import ROUTERS, ConsistentHashRing, RoutingTable, make_router

CHANNELS = 17  # not a power of two, so that nobody's modulo is a mask


@compiled
def modulo(hashes, channels, out):
    for i in range(len(hashes)):
        out[i] = hashes[i] % channels


def run(quick: bool) -> list[dict[str, object]]:
    return [*_tables(1_000_000 if quick else 10_000_000), *_routers(1_000_000 if quick else 5_000_000), *_making()]


def _row(what: str, tuples: int, timing: Timing, peer: Timing, target: float | None = None, **more: object):
    return {
        "what": what,
        "value": tuples / timing.median / 1e6,
        "unit": "M tuples/s",
        "ratio": timing.median / peer.median,
        "peer": "time of bare hash and modulo, compiled, same array",
        **timing.repeated,
        "target": f"ratio <= {target:g}" if target else "",
        "met": timing.median / peer.median <= target if target else None,
        **more,
    }


def _tables(tuples: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    keys = rng.integers(-(2**63), 2**63 - 1, tuples)
    out = np.empty(tuples, np.int32)
    even = RoutingTable.even(CHANNELS)
    listed = hash_keys(rng.choice(keys, 100_000, replace=False))
    pinned = {n: even.with_pins(listed[:n], rng.integers(0, CHANNELS, n)) for n in (1000, 100_000)}
    timings = time_together(
        5,
        bare=lambda: modulo(hash_keys(keys), CHANNELS, out),
        slots=lambda: even.route(hash_keys(keys)),
        pins_1000=lambda: pinned[1000].route(hash_keys(keys)),
        pins_100000=lambda: pinned[100_000].route(hash_keys(keys)),
    )
    bare = timings["bare"]
    return [
        _row("bare hash and modulo (the peer)", tuples, bare, bare),
        _row("route by table, 4096 slots, keys to channels", tuples, timings["slots"], bare, 1.3),
        _row("the same with 1,000 pins", tuples, timings["pins_1000"], bare, 1.3),
        _row("the same with 100,000 pins", tuples, timings["pins_100000"], bare, 1.3),
    ]


def _routers(tuples: int) -> list[dict[str, object]]:
    shares = 1 / np.arange(1, 1_000_001)
    ranks = np.searchsorted(np.cumsum(shares / shares.sum()), np.random.default_rng(1).random(tuples))
    hashes = hash_keys(ranks)
    out = np.empty(tuples, np.int32)
    timings = time_together(
        3,
        bare=lambda: modulo(hashes, CHANNELS, out),
        **{name: lambda name=name: make_router(name, CHANNELS).route(hashes) for name in ROUTERS},
    )
    bare = timings.pop("bare")
    rows = []
    for name, timing in timings.items():
        row = _row(f"router {name}, Zipf 1.0 over 10^6 keys, from hashes", tuples, timing, bare)
        if name == "pkg":
            row |= {"target": "ratio <= 3", "met": row["ratio"] <= 3}
        row["peer"] = "time of bare modulo of the same hashes, compiled"
        rows.append(row)
    return rows


def _making() -> list[dict[str, object]]:
    rng = np.random.default_rng(2)
    even = RoutingTable.even(CHANNELS)
    hashes = np.unique(rng.integers(-(2**63), 2**63 - 1, 100_000))
    table = even.with_pins(hashes, rng.integers(0, CHANNELS, len(hashes)))
    other = table.with_pins(hashes[::2], rng.integers(0, CHANNELS, len(hashes[::2])))
    arrow = table.to_arrow()
    timings = time_together(
        7,
        **{
            "build a table of 100,000 pins": lambda: even.with_pins(hashes, table.pin_channels),
            "diff two tables of 100,000 pins": lambda: table.diff(other),
            "table of 100,000 pins to Arrow": table.to_arrow,
            "table of 100,000 pins from Arrow": lambda: RoutingTable.from_arrow(arrow),
            "build a ring of 16 channels, 1000 replicas": lambda: ConsistentHashRing(16),
        },
    )
    return [
        {"what": what, "value": timing.median * 1e3, "unit": "ms", **timing.repeated}
        for what, timing in timings.items()
    ]
