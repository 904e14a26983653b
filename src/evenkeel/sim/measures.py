"""Measures of one's own for a replay: the papers' that need more than the loads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenkeel import metrics
from evenkeel.errors import UnknownNameError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evenkeel.metrics import ResourceProfile
    from evenkeel.sim.runs import Measure, Sight

__all__ = ["max_min_ratio", "relative_imbalance", "resource_imbalance"]

_RESOURCES = ("state", "computation", "communication")


def relative_imbalance(profile: ResourceProfile) -> Measure:
    """Make a column of the relative imbalance b of all three resources, of all keys, tracked or not.

    NaN for a strategy that is replayed tuple by tuple.

    References
    ----------
    B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing, §3.4, Equation 11.
    """

    def measure(sight: Sight) -> float:
        loads = _resource_loads(sight, profile)
        return math.nan if loads is None else metrics.relative_imbalance(loads, profile)

    return measure


def resource_imbalance(profile: ResourceProfile, resource: str) -> Measure:
    """Make a column of the relative imbalance of one resource: "state", "computation" or "communication"."""
    if resource not in _RESOURCES:
        raise UnknownNameError("resource", resource, _RESOURCES)

    def measure(sight: Sight) -> float:
        loads = _resource_loads(sight, profile)
        if loads is None:
            return math.nan
        return float(metrics.relative_imbalances(loads, profile)[_RESOURCES.index(resource)])

    return measure


def max_min_ratio(sight: Sight) -> float:
    """Divide the fullest channel's load by the emptiest's."""
    return metrics.max_min_ratio(sight.loads)


def _resource_loads(sight: Sight, profile: ResourceProfile) -> NDArray[np.float64] | None:
    if sight.measured is None or sight.homes is None:
        return None
    active = sight.measured.counts > 0
    return metrics.resource_loads(sight.measured.counts[active], sight.homes[active], len(sight.loads), profile)
