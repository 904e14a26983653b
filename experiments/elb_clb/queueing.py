"""The growing stream of Section 5.2 on the queueing model: channels that work at 1,000 tuples/s and pause for moves."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from evenkeel.planning import Clb, Elb
from evenkeel.sim import Drifting, Fluid, Planned, Replay, Routed, StateModel, Zipf, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["CAPACITY", "MODEL", "grown", "loaded"]

CAPACITY = 1000.0  # tuples/s of a channel
TUPLE_BYTES = 140
STATE = StateModel(TUPLE_BYTES / 10)  # a tenth of the window's tuples
SERVICE = Fluid(CAPACITY, bytes_per_s=25e6, pause_s=1.0)
FIRST, LAST = 1000, 16_000  # tuples/s
SLOTS = 100

MODEL = (
    "A queueing model, not a cluster: tuples arrive evenly, a channel works off 1,000 per second, and a migration "
    "holds all channels up for 1 s and as long as its state takes at 25 MB/s (assumed; state is a tenth of a window's "
    "tuples at 140 bytes). Generated words stand in for the tweets, in 100 substreams."
)


def strategies() -> Mapping[str, Planned | Routed]:
    """The four, and CLB as it also sees means."""
    return {
        "CLB": Planned("clb", every=24),
        "CLB, means too": Planned(Clb(balance_means=True), every=24),
        "ELB": Planned(Elb(tolerance=0.3)),
        "UHLB": Planned("uhlb"),
        "PKG": Routed("pkg", count_pairs=False),
    }


@lru_cache(maxsize=1)
def grown(windows: int, seconds: float, utilisation: float) -> Replay:
    """Let the rate grow from 1,000 to 16,000 tuples/s, and N with it, so that channels are used to ``utilisation``."""

    def rate(window: int) -> float:
        return FIRST + (LAST - FIRST) * min(window, windows - 1) / max(windows - 1, 1)

    channels = [math.ceil(rate(window) / (utilisation * CAPACITY)) for window in range(windows)]
    planned = {name: one for name, one in strategies().items() if isinstance(one, Planned)}
    done = replay(
        _words(lambda window: seconds * rate(window), seconds),
        planned,
        channels=channels,
        windows=windows,
        slots=SLOTS,
        state=STATE,
        service=SERVICE,
    )
    # A router has one number of channels: as many as there are on average, at the average rate.
    mean = sum(rate(window) for window in range(windows)) / windows
    split = replay(
        _words(round(seconds * mean), seconds),
        {"PKG": strategies()["PKG"]},
        channels=math.ceil(mean / (utilisation * CAPACITY)),
        windows=windows,
        service=SERVICE,
    )
    return Replay(done.table, latencies={**done.latencies, **split.latencies})


def loaded(channels: Sequence[int], windows: int, seconds: float, utilisation: float) -> dict[int, Replay]:
    """Run every strategy with each number of channels, the rate in proportion."""
    return {
        n: replay(
            _words(round(seconds * utilisation * CAPACITY * n), seconds),
            strategies(),
            channels=n,
            windows=windows,
            slots=SLOTS,
            state=STATE,
            service=SERVICE,
        )
        for n in channels
    }


def _words(tuples: int | Callable[[int], float], seconds: float) -> Drifting:
    return Drifting(Zipf(50_000, 0.9, tuples=tuples, seconds=seconds), rate=0.02)
