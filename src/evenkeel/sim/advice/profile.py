"""What a stream is like: how many keys, how hot the hottest are, and whether they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from evenkeel.sim.ledger import added

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from evenkeel.sim.workloads import Workload

__all__ = ["FOLDED", "HotKey", "KeysOf", "Profile"]

KeysOf: TypeAlias = "Callable[[NDArray[np.int64]], Mapping[int, str]]"

FOLDED = 1 << 20
"""A hash from 0 up to this stands for a bucket of cold keys, in histograms that do not name every key."""

_HEAD = 100  # keys of a window that are looked for in the next one
_NO_CHANCE = 25  # tuples that a key must have to be looked for: below, who is hot is drawn by lot


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key with many tuples: its hash, its share of them, and its value where it is known."""

    hash: int
    share: float
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """The figures of a stream.

    Parameters
    ----------
    tuples, keys, windows
        How many there are.
    folded
        Whether cold keys were counted together, so that there are more than ``keys``.
    hot
        The hottest keys of the whole stream, the hottest first.
    hottest_share
        The share of a window's hottest key, in an average window: no strategy that keeps keys together can have a
        busiest channel below it.
    head_share
        The share of the hundred hottest keys of a window.
    turnover
        How much of the head is new in the next window: 0 if the same keys stay hot, 1 if others take their place.
    tuples_per_key
        In an average window.
    """

    tuples: int
    keys: int
    windows: int
    folded: bool
    hot: tuple[HotKey, ...]
    hottest_share: float
    head_share: float
    turnover: float
    tuples_per_key: float

    @classmethod
    def of(cls, workload: Workload, hot: int = 10, keys_of: KeysOf | None = None) -> Profile:
        """Look at every window's histogram once; ``keys_of`` finds the keys behind hashes. Memory: 16 bytes per key."""
        hashes, counts = np.empty(0, np.int64), np.empty(0, np.int64)
        hottest, heads, turnovers, per_key = [], [], [], []
        before = np.empty(0, np.int64)  # the head of the window before
        windows = 0
        for window in workload.windows():
            histogram = window.histogram()
            windows += 1
            if histogram.tuples == 0:
                continue
            hashes, counts = added(hashes, counts, histogram.hashes, histogram.counts)
            keys, numbers = _known(histogram.hashes, histogram.counts)
            order = np.argsort(-numbers, kind="stable")[:_HEAD]
            hottest.append(numbers.max(initial=0) / histogram.tuples)
            heads.append(numbers[order].sum() / histogram.tuples)
            per_key.append(histogram.tuples / len(histogram))
            if len(before):
                stayed = numbers[np.isin(keys, before)].sum()
                turnovers.append(1 - stayed / numbers[order[: len(before)]].sum())
            before = keys[order[numbers[order] >= _NO_CHANCE]]
        keys, numbers = _known(hashes, counts)
        order = np.argsort(-numbers, kind="stable")[:hot]
        total = int(counts.sum())
        named = {} if keys_of is None else keys_of(keys[order])
        return cls(
            tuples=total,
            keys=len(hashes),
            windows=windows,
            folded=len(keys) < len(hashes),
            hot=tuple(HotKey(int(keys[i]), float(numbers[i] / total), named.get(int(keys[i]))) for i in order),
            hottest_share=_mean(hottest),
            head_share=_mean(heads),
            turnover=_mean(turnovers),
            tuples_per_key=_mean(per_key),
        )

    def as_dict(self) -> dict[str, Any]:
        """Give the figures, for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "hot"}
        return plain | {"hot": [{"hash": key.hash, "share": key.share, "key": key.name} for key in self.hot]}


def _known(hashes: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The keys that are named, without buckets of cold ones."""
    mine = (hashes < 0) | (hashes >= FOLDED)
    return hashes[mine], counts[mine]


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0
