"""One committed batch of a stage: what its channels reported, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.metrics import skewness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["COLD", "HotKey", "StageBatch"]

COLD = "rebuilt"
"""How a channel was opened that did not find its working copy on the host."""

_MOST_KEYS, _MOST_SLOTS = 50, 20


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key with many tuples in a batch.

    Parameters
    ----------
    key_hash, name
        The key's hash, and what it is called if the channels said so.
    count, share
        Its tuples, and the part of the batch that they are.
    state_bytes
        Its state, on all channels together.
    channels
        The channels that saw it.
    """

    key_hash: int
    name: str | None
    count: float
    share: float
    state_bytes: int
    channels: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StageBatch:
    """What the channels of a stage reported of a batch; all columns are by ascending channel.

    Parameters
    ----------
    batch, ended, took_ms
        The batch, when it was committed (seconds), and how long it took; None where that is not stored.
    rows, tuples
        Rows that came to each channel, and the tuples that they stand for if they were combined before.
    busy_ms, state_bytes, keys_held, imported_bytes
        Time worked, state held, keys held, and state that came from other channels.
    hosts, opened
        Where each channel ran, and how it found its state.
    late, results
        Of all channels together.
    hot_keys, heavy_slots
        The keys, and (slot, tuples), with most tuples; most first.
    """

    batch: int
    ended: float | None
    took_ms: float | None
    channels: NDArray[np.int64]
    rows: NDArray[np.int64]
    tuples: NDArray[np.int64]
    busy_ms: NDArray[np.float64]
    state_bytes: NDArray[np.int64]
    keys_held: NDArray[np.int64]
    imported_bytes: NDArray[np.int64]
    hosts: tuple[str, ...]
    opened: tuple[str, ...]
    late: int
    results: int
    hot_keys: tuple[HotKey, ...]
    heavy_slots: tuple[tuple[int, float], ...]

    @classmethod
    def of(
        cls, batch: int, reports: Sequence[dict[str, Any]], ended: float | None = None, took_ms: float | None = None
    ) -> StageBatch:
        """Put the reports of a batch side by side; what is no report raises. O(channels + slots + heavy keys · log)."""
        reports = sorted(reports, key=lambda report: report["channel"])

        def column(name: str, kind: type = np.int64) -> NDArray[Any]:
            return np.array([report.get(name, 0) for report in reports], kind)

        def held(name: str) -> NDArray[np.int64]:
            return np.array([sum(report["loads"][name]) for report in reports], np.int64)

        busy_ms = column("busy_ms", np.float64)
        if not np.isfinite(busy_ms).all():
            raise ValueError("busy_ms must be finite.")
        return cls(
            batch,
            ended,
            None if took_ms is None else float(took_ms),
            column("channel"),
            column("rows"),
            np.array([report.get("tuples", report["rows"]) for report in reports], np.int64),
            busy_ms,
            held("held_bytes"),
            held("held_keys"),
            column("imported_bytes"),
            tuple(str(report.get("host", "")) for report in reports),
            tuple(str(report.get("opened", "")) for report in reports),
            int(column("late").sum()),
            int(column("results").sum()),
            _hot_keys(reports),
            _heavy_slots(reports),
        )

    @property
    def skewness(self) -> float:
        """The rows of the fullest channel over those of the average one."""
        return skewness(self.rows)

    @property
    def cold(self) -> int:
        """How many channels had to rebuild their working copy."""
        return sum(how == COLD for how in self.opened)


def _joined(reports: Sequence[dict[str, Any]], name: str, kind: type) -> NDArray[Any]:
    return np.concatenate([np.asarray(report["loads"][name], kind) for report in reports])


def _hot_keys(reports: Sequence[dict[str, Any]]) -> tuple[HotKey, ...]:
    hashes, counts = _joined(reports, "keys", np.int64), _joined(reports, "key_counts", np.float64)
    sizes = _joined(reports, "key_bytes", np.int64)
    where = np.repeat([report["channel"] for report in reports], [len(report["loads"]["keys"]) for report in reports])
    found, places = np.unique(hashes, return_inverse=True)
    count_of = np.bincount(places, weights=counts, minlength=len(found))
    bytes_of = np.bincount(places, weights=sizes, minlength=len(found))
    total = float(_joined(reports, "slot_counts", np.float64).sum()) or 1.0
    most = np.argsort(-count_of, kind="stable")[:_MOST_KEYS].tolist()
    names = _names(reports, set(found[most].tolist()))
    return tuple(
        HotKey(
            int(found[key]),
            names.get(int(found[key])),
            float(count_of[key]),
            float(count_of[key]) / total,
            int(bytes_of[key]),
            tuple(where[places == key].tolist()),
        )
        for key in most
        if count_of[key] > 0
    )


def _names(reports: Sequence[dict[str, Any]], wanted: set[int]) -> dict[int, str]:
    """What keys are called, for those reports that say so."""
    return {
        key: str(name)
        for report in reports
        if "key_names" in report["loads"]
        for key, name in zip(report["loads"]["keys"], report["loads"]["key_names"], strict=True)
        if key in wanted
    }


def _heavy_slots(reports: Sequence[dict[str, Any]]) -> tuple[tuple[int, float], ...]:
    slots, places = np.unique(_joined(reports, "slots", np.int64), return_inverse=True)
    counts = np.bincount(places, weights=_joined(reports, "slot_counts", np.float64), minlength=len(slots))
    most = np.argsort(-counts, kind="stable")[:_MOST_SLOTS]
    return tuple(zip(slots[most].tolist(), counts[most].tolist(), strict=True))
