"""The simulator: drawing and replaying streams beside a bare hash-and-modulo loop over the same tuples."""

from __future__ import annotations

import time
from itertools import islice

import numpy as np

from benchmarks.measure import Timing, time_together
from evenkeel._kernels.compile import compiled
from evenkeel.control import Controller
from evenkeel.hashing import hash_keys
from evenkeel.planning import Keel
from evenkeel.routing import RoutingTable
from evenkeel.sim import Controlled, Drifting, LogNormal, Planned, Routed, Zipf, replay

CHANNELS = 17
KEYS = 1_000_000
WINDOWS = 3


@compiled
def modulo_loads(hashes, channels, loads):
    for i in range(len(hashes)):
        loads[hashes[i] % channels] += 1


def run(quick: bool) -> list[dict[str, object]]:
    tuples = 3_000_000 if quick else 30_000_000
    return [*_drawing(tuples), *_replaying(tuples), *_large(quick)]


def _rate(what: str, tuples: int, timing: Timing, least: float | None = None, peer: Timing | None = None, **more):
    rate = tuples / timing.median / 1e6
    row = {"what": what, "value": rate, "unit": "M tuples/s", **timing.repeated}
    if least is not None:
        row |= {"target": f">= {least:g} M tuples/s", "met": rate >= least}
    if peer is not None:
        row |= {"ratio": timing.median / peer.median, "peer": "time of drawing the same tuples, bare hash and modulo"}
    return row | more


def _drawing(tuples: int) -> list[dict[str, object]]:
    streams = {
        f"draw tuples: Zipf 1.0 over {KEYS:,} keys": Zipf(KEYS, 1.0, tuples=tuples),
        "draw tuples: Zipf 0.8 over 100,000,000 keys": Zipf(10**8, 0.8, tuples=tuples),
        "draw tuples: log-normal LN1": LogNormal(tuples=tuples),
    }
    windows = {what: stream.windows() for what, stream in streams.items()}
    timings = time_together(3, **{what: lambda what=what: _drain(next(windows[what])) for what in streams})
    rows = [_rate(what, tuples, timing, 20) for what, timing in timings.items()]
    counted = Zipf(KEYS, 1.0, tuples=100 * tuples).windows()
    timing = time_together(3, histogram=lambda: next(counted).histogram())["histogram"]
    rows.append(_rate(f"draw a histogram: Zipf 1.0 over {KEYS:,} keys", 100 * tuples, timing))
    return rows


def _drain(window) -> int:
    return sum(len(part) for part in window.tuples())


def _replaying(tuples: int) -> list[dict[str, object]]:
    stream = Zipf(KEYS, 1.0, tuples=tuples // WINDOWS)
    even = RoutingTable.even(CHANNELS)
    pinned = even.with_pins(hash_keys(np.arange(1000)), np.arange(1000) % CHANNELS)
    strategies = {
        "route by table, tuple by tuple": Routed(pinned, level="tuples", count_pairs=False),
        "the same, counting (key, channel) pairs": Routed(pinned, level="tuples"),
        "route by pkg": Routed("pkg", count_pairs=False),
        "the same, counting pairs": Routed("pkg"),
        "route by table, key by key": Planned("stay_put", table=pinned),
        "plan with keel, 1,000 keys tracked": Planned(Keel(), track=1000),
        "keel under control": Controlled(Controller(Keel())),
    }

    def bare() -> None:
        loads = np.zeros(CHANNELS, np.int64)
        for window in islice(stream.windows(), WINDOWS):
            for part in window.tuples():
                modulo_loads(part.hashes, CHANNELS, loads)

    timings = time_together(
        3,
        bare=bare,
        **{
            what: lambda strategy=strategy: replay(stream, {"x": strategy}, channels=CHANNELS, windows=WINDOWS)
            for what, strategy in strategies.items()
        },
    )
    peer = timings.pop("bare")
    rows = [_rate("bare: draw, hash and modulo, compiled (the peer)", tuples, peer)]
    for what, timing in timings.items():
        rows.append(_rate(f"replay: {what}", tuples, timing, 10, peer))
    return rows


def _large(quick: bool) -> list[dict[str, object]]:
    windows = 10 if quick else 100
    stream = Drifting(Zipf(KEYS, 0.5, tuples=10_000_000), rate=0.02)
    started = time.perf_counter()
    replay(stream, {"keel": Planned("keel", track=10_000)}, channels=10_000, windows=windows)
    seconds = time.perf_counter() - started
    return [
        {
            "what": f"replay 10^7 tuples x {windows} windows over 10,000 channels, planned by keel, by histogram",
            "value": seconds,
            "unit": f"s; {windows * 10 / seconds:.0f} M tuples/s",
            "target": f"<= {2.4 * windows:g} s",
            "met": seconds <= 2.4 * windows,
        }
    ]
