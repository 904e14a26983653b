"""Traces that can be looked over before they are cut into windows, and asked for the keys behind hashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenkeel.hashing import hash_keys
from evenkeel.routing.ragged import contains
from evenkeel.sim.workloads import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KnownTrace", "Survey"]


class Survey(NamedTuple):
    """How many tuples a trace has, and from when to when."""

    tuples: int
    first: float | None
    last: float | None


@dataclass(frozen=True)
class KnownTrace(Trace):
    """A trace that tells more than its hashes. Every question reads it once, in chunks."""

    def survey(self) -> Survey:
        """Count the tuples, and find the first and the last time."""
        tuples, first, last = 0, None, None
        for chunk in self._chunks():
            tuples += len(chunk)
            if chunk.times is not None:
                first = float(chunk.times.min()) if first is None else min(first, float(chunk.times.min()))
                last = float(chunk.times.max()) if last is None else max(last, float(chunk.times.max()))
        return Survey(tuples, first, last)

    def keys_of(self, hashes: NDArray[np.int64]) -> dict[int, str]:
        """Find the keys that have these hashes, as text; stops as soon as all are found."""
        names = (self.key,) if isinstance(self.key, str) else self.key
        wanted = np.sort(hashes)
        found: dict[int, str] = {}
        for batch in self._batches(list(names)):
            codes = hash_keys(*(batch[name] for name in names))
            codes, rows = np.unique(codes, return_index=True)
            mine = contains(wanted, codes)
            for code, row in zip(codes[mine].tolist(), rows[mine].tolist(), strict=True):
                found.setdefault(code, ", ".join(str(batch[name][row].as_py()) for name in names))
            if len(found) == len(wanted):
                break
        return found
