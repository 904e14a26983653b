"""From which frequency on a key deserves a place of its own in the routing table.

Keys below the threshold are left to the hash. The threshold is set so that the imbalance they can cause is a
given part of the imbalance that is tolerated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics._checks import as_amounts, check_count, check_tolerance
from evenkeel.metrics.resources import ResourceFunction, ResourceProfile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def allowed_deviation(tolerance: float, n_channels: int) -> float:
    r"""Tell how far a channel may be from the average load if max/min may not exceed a tolerance.

    .. math::

        \theta_k = (\alpha_k - 1) \left( 1 + \frac{\alpha_k}{N - 1} \right)^{-1}
                 = \frac{(\alpha_k - 1)(N - 1)}{\alpha_k + N - 1}

    It is reached when one channel has :math:`\alpha_k x` and all others have x; then every channel satisfies
    :math:`|L_k(i) - \bar{L}_k| \le \theta_k \bar{L}_k`. The second form, equal to the first, also answers for
    one channel: 0, as that channel is the average.

    References
    ----------
    Gedik, "Partitioning functions for stateful data parallelism in stream processing", §4.1.3, Equations 14
    and 15.

    Examples
    --------
    >>> allowed_deviation(2.0, n_channels=2)
    0.3333333333333333
    """
    check_count("n_channels", n_channels)
    check_tolerance(tolerance)
    return (tolerance - 1) * (n_channels - 1) / (tolerance + n_channels - 1)


def tracking_threshold(
    profile: ResourceProfile, *, n_channels: int, n_keys: int, untracked_share: float = 0.1
) -> float:
    r"""Compute the relative frequency from which on keys must be tracked, before any frequency is known.

    .. math::

        \delta = \min_k \delta_k, \quad \beta_k(\delta_k) \le \sigma \theta_k \bar{L}_k, \quad
        \delta_k = \begin{cases}
            1                                          & \beta_k(x) = 1 \\
            \sigma \theta_k / N                        & \beta_k(x) = x \\
            \sqrt{\sigma \theta_k / (|\mathcal{D}| N)} & \beta_k(x) = x^2
        \end{cases}

    The text beside the equation slips twice, without harm to it. For the constant function it takes the
    average load of a channel to be :math:`|\mathcal{D}|`, which is that of all channels together; with
    :math:`|\mathcal{D}| / N` the inequality holds for :math:`|\mathcal{D}| \ge N / (\sigma \theta_k)`, and
    else for no threshold at all, so 1 stays the answer. For the quadratic function it calls
    :math:`1/|\mathcal{D}|` an upper bound of the load of all channels; by the inequality of Cauchy and
    Schwarz it is the lower bound, and hence the threshold the cautious one.

    One channel has nothing to balance, so its threshold is 1, where the equation would track every key.

    Parameters
    ----------
    profile
        The resource functions and their tolerances, :math:`\beta_k` and :math:`\alpha_k`.
    n_channels
        The number of channels, N.
    n_keys
        The number of distinct keys, :math:`|\mathcal{D}|`.
    untracked_share
        The part :math:`\sigma \in (0, 1]` of the tolerated imbalance that the untracked keys may use up.

    References
    ----------
    Gedik, §4.1.3, Equations 16 and 17.

    Examples
    --------
    >>> tracking_threshold(ResourceProfile.named(), n_channels=10, n_keys=10**6)
    0.0017647058823529412
    """
    check_count("n_keys", n_keys)
    return _threshold(profile, n_channels, untracked_share, quadratic_load=1 / n_keys)


def refined_threshold(
    tracked_frequencies: ArrayLike,
    profile: ResourceProfile,
    *,
    n_channels: int,
    n_keys: int,
    untracked_share: float = 0.1,
) -> float:
    r"""Raise the threshold of quadratic resources, once the frequencies of the tracked keys are known.

    .. math:: \delta' = \min_k \delta'_k, \quad \delta'_k = \sqrt{\sigma \theta_k \bar{L}'_k}

    for quadratic functions, with the average load :math:`\bar{L}'_k` predicted by `predicted_total_load`; the
    others keep :math:`\delta_k`. Never below `tracking_threshold`, and equal to it without tracked keys.

    Parameters
    ----------
    tracked_frequencies
        The relative frequencies of the tracked keys I, adding up to at most 1.
    profile, n_channels, n_keys, untracked_share
        As for `tracking_threshold`.

    References
    ----------
    Gedik, §4.1.3, the post-processing step.

    Examples
    --------
    >>> join = ResourceProfile.named(computation="quadratic")
    >>> refined_threshold([], join, n_channels=10, n_keys=10**6)
    4.2008402520840296e-05
    >>> refined_threshold([0.01, 0.005], join, n_channels=10, n_keys=10**6)
    0.0004714874340670745
    """
    check_count("n_keys", n_keys)
    predicted = predicted_total_load(tracked_frequencies, ResourceFunction.QUADRATIC, n_keys=n_keys)
    # A sketch may count too little, and then also the prediction is too low; the lower bound still holds.
    return _threshold(profile, n_channels, untracked_share, quadratic_load=max(predicted, 1 / n_keys))


def predicted_total_load(tracked_frequencies: ArrayLike, function: ResourceFunction, *, n_keys: int) -> float:
    r"""Predict the load of all channels together from the tracked keys alone.

    .. math::

        N \bar{L}'_k = \sum_{d \in I} \beta_k(f(d))
            + (|\mathcal{D}| - |I|) \, \beta_k\left(
                \frac{1 - \sum_{d \in I} f(d)}{|\mathcal{D}| - |I|} \right)

    The second part shares out the rest of the stream evenly. The paper says that this maximises the load;
    for a convex function it is the minimum, which is what a cautious threshold needs. The paper also calls
    the sum :math:`\bar{L}_k`, the average per channel; it is N times that, and Equation 17 does divide by N.

    References
    ----------
    Gedik, §4.1.3, the post-processing step.

    Examples
    --------
    >>> predicted_total_load([0.5], ResourceFunction.QUADRATIC, n_keys=6)
    0.3
    """
    frequencies = as_amounts("tracked_frequencies", tracked_frequencies)
    n_rest = n_keys - len(frequencies)
    if n_rest < 0:
        raise InvalidArgumentError(
            f"n_keys={n_keys} must be at least the number of tracked keys, got {len(frequencies)}.",
            n_keys=n_keys,
        )
    total = float(frequencies.sum())
    if total > 1 + 1e-9:
        raise InvalidArgumentError(
            f"tracked_frequencies must be relative and add up to at most 1, got {total}; "
            "divide counts by the number of tuples.",
            total=total,
        )
    rest = [max(1 - total, 0.0) / n_rest] if n_rest else []
    return float(function(frequencies).sum() + n_rest * function(rest).sum())


def _threshold(profile: ResourceProfile, n_channels: int, untracked_share: float, *, quadratic_load: float) -> float:
    """Solve Equation 16 for every resource and take the lowest threshold."""
    check_count("n_channels", n_channels)
    if not 0 < untracked_share <= 1:
        raise InvalidArgumentError(
            f"untracked_share must be in (0, 1], got {untracked_share}.", untracked_share=untracked_share
        )
    thresholds = [1.0]
    if n_channels > 1:
        for resource in profile:
            allowed_load = untracked_share * allowed_deviation(resource.tolerance, n_channels) / n_channels
            if resource.function is ResourceFunction.LINEAR:
                thresholds.append(allowed_load)
            elif resource.function is ResourceFunction.QUADRATIC:
                thresholds.append(math.sqrt(allowed_load * quadratic_load))
    return min(thresholds)
