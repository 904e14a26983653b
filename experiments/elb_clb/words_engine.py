"""The word counter of Section 5.2 on the engine: channels that take a millisecond for a tuple."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from evenkeel.control import Elasticity
from evenkeel.planning import Clb, Elb, Uhlb
from experiments.elb_clb.words import drifting_words
from experiments.engine import ENGINE, PacedCount, eager, paced, run, windows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenkeel.control import Controller
    from evenkeel.planning import Planner
    from experiments.engine import Batch

__all__ = ["MODEL", "STRATEGIES", "grown", "loaded"]

SLOTS = 100
CAPACITY = 1000.0  # tuples/s of a channel
PLANNERS: dict[str, Planner] = {"CLB": Clb(balance_means=True), "ELB": Elb(tolerance=0.3), "UHLB": Uhlb()}
STRATEGIES = (*PLANNERS, "PKG")
MODEL = (
    ENGINE + " Words are counted; a channel works off 1,000 tuples/s. Generated words that drift stand in for the "
    "tweets, in 100 substreams. A statistics window is one batch; ELB and UHLB plan after each, CLB (the form that "
    "also balances means) every few; a plan that would worsen the balance is not carried out."
)


@lru_cache(maxsize=2)
def loaded(
    channels: tuple[int, ...], windows: int, seconds: float, utilisation: float, period: int
) -> dict[tuple[int, str], list[Batch]]:
    """Run every strategy with each number of channels, the rate in proportion; one channel is the same for all."""
    found: dict[tuple[int, str], list[Batch]] = {}
    for n in channels:
        tuples = round(n * CAPACITY * seconds * utilisation)
        for name in STRATEGIES if n > 1 else ("CLB",):
            found[n, name] = _counted([tuples] * (windows + 1), name, n, period)
    return found


@lru_cache(maxsize=1)
def grown(
    rates: tuple[int, int], windows: int, seconds: float, utilisation: float, period: int
) -> dict[str, list[Batch]]:
    """Let the rate grow linearly, and N with it; PKG, whose N is fixed, gets the average of both."""
    first, last = rates
    each = utilisation * CAPACITY
    amounts = [
        round(seconds * (first + (last - first) * max(0, turn - 1) / (windows - 1))) for turn in range(windows + 1)
    ]
    elastic = Elasticity.around(each * seconds, max_channels=16)
    found = {name: _counted(amounts, name, math.ceil(first / each), period, elasticity=elastic) for name in PLANNERS}
    mean = (first + last) / 2
    return found | {"PKG": _counted([round(seconds * mean)] * (windows + 1), "PKG", math.ceil(mean / each), period)}


def _counted(
    amounts: Sequence[int], name: str, channels: int, period: int, elasticity: Elasticity | None = None
) -> list[Batch]:
    """Count words; gives the batches after the first."""
    strategy: str | Controller = "pkg"
    if name in PLANNERS:
        strategy = eager(PLANNERS[name], every=period if name == "CLB" else 1, elasticity=elasticity)
    batches = paced(windows_of(drifting_words(amounts), len(amounts)), 1000 / CAPACITY)
    return run(
        batches,
        lambda rows: rows.apply(PacedCount(), strategy=strategy, channels=channels, slots=SLOTS, combine=False),
    )[1:]
