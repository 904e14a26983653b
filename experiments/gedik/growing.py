"""How all of Gedik's figures are measured: N grows from 1, a channel at a time, under a stream that stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel import metrics
from evenkeel.metrics import ResourceProfile
from evenkeel.planning import LoadSnapshot, make_planner
from evenkeel.routing import ConsistentHashRing, RoutingTable, make_router
from evenkeel.sim import Histogram, Zipf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["CONSTRUCTED", "STRATEGIES", "Growth", "best", "grown", "mean_of", "profile_of", "stream_of", "sweep"]

CONSTRUCTED = ("scan", "redist", "readj")
STRATEGIES = (*CONSTRUCTED, "consistent", "uniform")

_FUNCTIONS = {"C": "constant", "L": "linear", "Q": "quadratic"}
_TUPLES_PER_KEY = 10
_MOST_TRACKED = 10_000


def profile_of(letters: str, tolerance: float = 1.2) -> ResourceProfile:
    """Give a profile by the paper's letters: LCL is linear state, constant computation, linear communication."""
    return ResourceProfile.named(*(_FUNCTIONS[letter] for letter in letters), tolerance=tolerance)


@dataclass(frozen=True)
class Growth:
    """One setting; the defaults are those of the paper's Table 1."""

    strategy: str
    resources: str = "LCL"
    exponent: float = 1.0
    untracked_share: float = 0.1
    channels: int = 10
    utility: str = "APM"
    keys: int = 1_000_000
    slots: int = 1 << 17
    salt: int = 0


@dataclass(frozen=True)
class Placement:
    """Where keys are, and what it took to decide that."""

    route: Callable[[NDArray[np.int64]], NDArray[np.int32]]
    pins: int = 0
    seconds: float | None = None


@lru_cache(maxsize=2)
def stream_of(keys: int, exponent: float, salt: int) -> Histogram:
    """Draw a period's tuples: ten per key on average."""
    return next(Zipf(keys, exponent, tuples=_TUPLES_PER_KEY * keys, salt=salt).windows()).histogram()


def grown(setting: Growth, at: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
    """Grow to the setting's number of channels, and measure the last step, or each step to a number in ``at``.

    Relative imbalance b (Eq. 11) and its three resources are of all keys, tracked or not; relative migration m (Eq. 12)
    is what the step moves, in shares of a channel's state.
    """
    histogram = stream_of(setting.keys, setting.exponent, setting.salt)
    profile = profile_of(setting.resources)
    states = profile.state.function(histogram.counts)
    wanted = set(at or [setting.channels])
    placed = _uniform() if setting.strategy == "uniform" else _planned(setting, histogram, profile)
    before = Placement(lambda hashes: np.zeros(len(hashes), np.int32))
    for channels in range(2, max(wanted) + 1):
        now = placed(channels)
        if channels in wanted:
            homes = now.route(histogram.hashes)
            loads = metrics.resource_loads(histogram.counts, homes, channels, profile)
            by_resource = metrics.relative_imbalances(loads, profile)
            yield {
                **vars(setting),
                "channels": channels,
                "m": metrics.relative_migration(states, before.route(histogram.hashes), homes, channels),
                "b": metrics.relative_imbalance(loads, profile),
                "b_state": float(by_resource[0]),
                "b_computation": float(by_resource[1]),
                "b_communication": float(by_resource[2]),
                "pins": now.pins,
                "seconds": now.seconds,
            }
        before = now


def sweep(settings: Iterable[dict[str, Any]], runs: int, at: Sequence[int] | None = None) -> pa.Table:
    """Measure many settings, averaged over runs with other keys; rows come in the order of the settings."""
    listed = list(settings)
    # Those that share a stream come one after the other, so that it is drawn once.
    turns = sorted(range(len(listed)), key=lambda i: (listed[i].get("keys", 0), listed[i].get("exponent", 0)))
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for salt, turn in product(range(runs), turns):
        setting = Growth(salt=salt, **listed[turn])
        for row in _remembered(_relevant(setting), tuple(at or ())):
            found.setdefault((turn, row["channels"]), []).append(row | vars(setting) | {"channels": row["channels"]})
    rows = []
    for place in sorted(found):
        measured = {
            name: None if found[place][0][name] is None else float(np.mean([row[name] for row in found[place]]))
            for name in ("m", "b", "b_state", "b_computation", "b_communication", "pins", "seconds")
        }
        rows.append({name: value for name, value in found[place][0].items() if name != "salt"} | measured)
    return pa.Table.from_pylist(rows)


@lru_cache(maxsize=256)
def _remembered(setting: Growth, at: tuple[int, ...]) -> tuple[dict[str, Any], ...]:
    """What :func:`grown` gives; figures share settings."""
    return tuple(grown(setting, at))


def _relevant(setting: Growth) -> Growth:
    """Hashes know neither thresholds nor utilities."""
    if setting.strategy in CONSTRUCTED:
        return setting
    return replace(setting, untracked_share=Growth.untracked_share, utility=Growth.utility)


def mean_of(table: pa.Table, column: str, **where: Any) -> float:
    """Average a column over the rows with these values."""
    values = [row[column] for row in table.to_pylist() if all(row[name] == value for name, value in where.items())]
    return float(np.mean(values))


def best(table: pa.Table, column: str, strategies: Sequence[str], **where: Any) -> float:
    """Give the least of some strategies' values."""
    return min(mean_of(table, column, strategy=strategy, **where) for strategy in strategies)


def _uniform() -> Callable[[int], Placement]:
    return lambda channels: Placement(make_router("key_grouping", channels).route)


def _planned(setting: Growth, histogram: Histogram, profile: ResourceProfile) -> Callable[[int], Placement]:
    """A chain of plans, each from the table of the one before."""
    if setting.strategy == "consistent":
        planner, track = make_planner("consistent_hash"), 0
    else:
        options = {"profile": profile, "utility": setting.utility, "untracked_share": setting.untracked_share}
        planner, track = make_planner(setting.strategy, **options), _MOST_TRACKED
    snapshot = LoadSnapshot.of_keys(
        histogram.hashes,
        histogram.counts,
        slots=setting.slots,
        state_bytes=profile.state.function(histogram.counts),
        track=track,
    )
    table = RoutingTable.from_ring(ConsistentHashRing(1), setting.slots)

    def placed(channels: int) -> Placement:
        nonlocal table
        plan = planner.plan(snapshot, table, channels)
        table = plan.table
        return Placement(table.home, len(table.pin_hashes), plan.seconds)

    return placed
