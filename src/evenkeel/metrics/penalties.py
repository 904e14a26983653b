"""What a planner minimises: the penalty for imbalance, the utility functions, and the overall objective.

The penalties are defined for a placement that is still being built, where the ratios of
`evenkeel.metrics.relative_imbalance` would be infinite as long as one channel is empty.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, overload

import numpy as np

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.metrics._checks import FloatArray, as_resource_loads, scaled_to_unit
from evenkeel.metrics.resources import ResourceFunction, ResourceProfile, geometric_mean
from evenkeel.metrics.thresholds import allowed_deviation

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def balance_penalties(loads: ArrayLike, profile: ResourceProfile) -> FloatArray:
    r"""Compare the gap between the fullest and the emptiest channel with the gap allowed, for each resource.

    .. math:: \rho_k = \frac{\max_i L_k(i) - \min_i L_k(i)}{\theta_k \bar{L}_k}

    0 for equal loads, also where there is no load or only one channel. Infinite for unequal loads with a
    tolerance of 1, which allows no gap.

    Parameters
    ----------
    loads
        Resources x channels, as from `evenkeel.metrics.resource_loads`, of the keys placed so far.
    profile
        The tolerances, from which :math:`\theta_k` follows (`evenkeel.metrics.allowed_deviation`).

    References
    ----------
    Gedik, "Partitioning functions for stateful data parallelism in stream processing", §4.2.1, Equation 19.

    Examples
    --------
    >>> balance_penalties([[3, 1], [2, 2], [3, 1]], ResourceProfile.named(tolerance=3.0))
    array([2., 0., 2.])
    """
    scaled = scaled_to_unit(as_resource_loads(loads))
    gaps = np.ptp(scaled, axis=1)
    deviations = [allowed_deviation(resource.tolerance, scaled.shape[1]) for resource in profile]
    allowed = np.array(deviations) * scaled.mean(axis=1)
    penalties = np.divide(gaps, allowed, out=np.full(3, np.inf), where=allowed > 0)
    return np.where(gaps == 0, 0.0, penalties)


def balance_penalty(loads: ArrayLike, profile: ResourceProfile) -> float:
    r"""Combine the balance penalties of the resources by their geometric mean.

    .. math:: \rho = \left( \prod_{k} \rho_k \right)^{1 / |\{k\}|}, \quad k \in \{s, c, n\}, \beta_k \ne 1

    Equation 20 takes the mean of all three; §4.4 leaves resources with a constant function out, as the hash
    balances them well enough. So does this function, and the root is that of the resources left; without any
    there is nothing to balance, and the penalty is 0. A gap where none is allowed is infinitely bad,
    even when another resource is perfectly balanced.

    References
    ----------
    Gedik, §4.2.1, Equation 20, and §4.4.

    Examples
    --------
    >>> balance_penalty([[3, 1], [2, 2], [3, 1]], ResourceProfile.named(tolerance=3.0))
    2.0
    """
    counts = [resource.function is not ResourceFunction.CONSTANT for resource in profile]
    penalties = balance_penalties(loads, profile)[counts]
    return geometric_mean(penalties) if len(penalties) else 0.0


class UtilityFunction(Enum):
    r"""How a planner weighs balance against migration; call it with both penalties, the lower the better.

    With the balance penalty :math:`\rho` and the migration penalty :math:`\gamma` as floats it returns a
    float, with both as arrays of candidates an array.

    ===========================  ====  =========================================
    member                       name  utility
    ===========================  ====  =========================================
    BALANCE                      A     :math:`\rho`
    BALANCE_PLUS_MIGRATION       APM   :math:`\rho + \gamma`
    BALANCE_PLUS_LOG_MIGRATION   APLM  :math:`\rho + \log(1 + \gamma)`
    BALANCE_TIMES_MIGRATION      ATM   :math:`\rho (1 + \gamma)`
    BALANCE_TIMES_LOG_MIGRATION  ATLM  :math:`\rho (1 + \log(1 + \gamma))`
    ===========================  ====  =========================================

    References
    ----------
    Gedik, §4.3; APM is the default of the paper (§5.1).

    Examples
    --------
    >>> UtilityFunction("APM")(0.5, 1.0), UtilityFunction("ATM")(0.5, 1.0)
    (1.5, 1.0)
    """

    BALANCE = "A"
    BALANCE_PLUS_MIGRATION = "APM"
    BALANCE_PLUS_LOG_MIGRATION = "APLM"
    BALANCE_TIMES_MIGRATION = "ATM"
    BALANCE_TIMES_LOG_MIGRATION = "ATLM"

    @overload
    def __call__(self, balance: float, migration: float) -> float: ...

    @overload
    def __call__(self, balance: FloatArray, migration: FloatArray) -> FloatArray: ...

    def __call__(self, balance: float | FloatArray, migration: float | FloatArray) -> float | FloatArray:
        """Combine the two penalties; neither may be negative, and migration must be finite."""
        balances, migrations = np.array(balance, np.float64), np.array(migration, np.float64)
        if not (balances >= 0).all():
            raise InvalidArgumentError(f"balance must not be negative or NaN, got {balance}.")
        if not ((migrations >= 0) & (migrations < np.inf)).all():
            raise InvalidArgumentError(f"migration must be finite and not negative, got {migration}.")
        utilities = self._combine(balances, migrations)
        return utilities if utilities.ndim else float(utilities)

    def _combine(self, balances: FloatArray, migrations: FloatArray) -> FloatArray:
        damped: FloatArray = np.log1p(migrations)
        if self is UtilityFunction.BALANCE:
            return balances
        if self is UtilityFunction.BALANCE_PLUS_MIGRATION:
            return balances + migrations
        if self is UtilityFunction.BALANCE_PLUS_LOG_MIGRATION:
            return balances + damped
        if self is UtilityFunction.BALANCE_TIMES_MIGRATION:
            return balances * (1 + migrations)
        return balances * (1 + damped)

    @classmethod
    def _missing_(cls, value: object) -> UtilityFunction:
        raise UnknownNameError("utility function", str(value), (member.value for member in cls))


def combined_objective(relative_imbalance: float, relative_migration: float) -> float:
    r"""Combine the imbalance and the migration of a finished plan into one number to minimise.

    .. math:: b \cdot (1 + m)

    References
    ----------
    Gedik, §3.4, Equation 13; b is `evenkeel.metrics.relative_imbalance` and m is
    `evenkeel.metrics.relative_migration`.

    Examples
    --------
    >>> combined_objective(1.2, 0.5)
    1.7999999999999998
    """
    return UtilityFunction.BALANCE_TIMES_MIGRATION(float(relative_imbalance), float(relative_migration))
