"""Every measure that the papers use: imbalance, loads of resources, penalties, movement and latency.

Pure functions of arrays. Paper symbols are in the docstrings, next to our names.
"""

from evenkeel.metrics.imbalance import (
    average_imbalance,
    average_imbalance_fraction,
    balance_indicators,
    imbalance,
    imbalance_fraction,
    load_variance,
    max_min_ratio,
    relative_std_percent,
    skewness,
    total_load_variance,
    within_balance_bounds,
)
from evenkeel.metrics.latency import (
    LatencySummary,
    efficiency,
    fraction_of_ideal,
    ideal_time_ms,
    speed_up,
    summarise_latency,
)
from evenkeel.metrics.loads import channel_loads, over_windows
from evenkeel.metrics.movement import (
    UNPLACED,
    amortised_movement,
    moved_state,
    moved_state_percent,
    relative_migration,
    routing_agreement,
)
from evenkeel.metrics.penalties import (
    UtilityFunction,
    balance_penalties,
    balance_penalty,
    combined_objective,
)
from evenkeel.metrics.resources import (
    Resource,
    ResourceFunction,
    ResourceProfile,
    relative_imbalance,
    relative_imbalances,
    resource_loads,
    resource_ratios,
)
from evenkeel.metrics.thresholds import (
    allowed_deviation,
    predicted_total_load,
    refined_threshold,
    tracking_threshold,
)

__all__ = [
    "UNPLACED",
    "LatencySummary",
    "Resource",
    "ResourceFunction",
    "ResourceProfile",
    "UtilityFunction",
    "allowed_deviation",
    "amortised_movement",
    "average_imbalance",
    "average_imbalance_fraction",
    "balance_indicators",
    "balance_penalties",
    "balance_penalty",
    "channel_loads",
    "combined_objective",
    "efficiency",
    "fraction_of_ideal",
    "ideal_time_ms",
    "imbalance",
    "imbalance_fraction",
    "load_variance",
    "max_min_ratio",
    "moved_state",
    "moved_state_percent",
    "over_windows",
    "predicted_total_load",
    "refined_threshold",
    "relative_imbalance",
    "relative_imbalances",
    "relative_migration",
    "relative_std_percent",
    "resource_loads",
    "resource_ratios",
    "routing_agreement",
    "skewness",
    "speed_up",
    "summarise_latency",
    "total_load_variance",
    "tracking_threshold",
    "within_balance_bounds",
]
