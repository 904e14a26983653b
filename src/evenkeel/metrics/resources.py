"""What a key costs its channel in state, computation and communication, as a function of its frequency.

A channel is limited by three resources at once, and balancing one does not balance another: ten keys of
frequency 1 and one of frequency 10 need the same bandwidth, but a join works ten times harder for the latter.
Loads of several resources are kept as an array of resources x channels, in the order of `ResourceProfile`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import UnknownNameError
from evenkeel.metrics._checks import FloatArray, as_amounts, as_resource_loads, check_tolerance
from evenkeel.metrics.imbalance import max_min_ratio
from evenkeel.metrics.loads import channel_loads, over_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike


class ResourceFunction(Enum):
    r"""How the load of a key grows with its frequency, :math:`\beta_k(x)`; call it on frequencies.

    ==========  =============  ==========================================================
    name        load of a key  example
    ==========  =============  ==========================================================
    constant    1              state of a window over the last C tuples of each key
    linear      x              state of a window over the last T seconds; bytes on the wire
    quadratic   x²             a join that compares each tuple with all others of its key
    ==========  =============  ==========================================================

    References
    ----------
    Gedik, "Partitioning functions for stateful data parallelism in stream processing", §3.1 and §4.4.

    Examples
    --------
    >>> ResourceFunction("quadratic")([1.0, 3.0])
    array([1., 9.])
    """

    CONSTANT = "constant"
    LINEAR = "linear"
    QUADRATIC = "quadratic"

    def __call__(self, frequencies: ArrayLike) -> FloatArray:
        """Compute the load of each key from its frequency, relative or absolute."""
        return as_amounts("frequencies", frequencies) ** self.degree

    @property
    def degree(self) -> int:
        """The power of the frequency that the load grows with."""
        return {"constant": 0, "linear": 1, "quadratic": 2}[self.value]

    @classmethod
    def _missing_(cls, value: object) -> ResourceFunction:
        raise UnknownNameError("resource function", str(value), (member.value for member in cls))


@dataclass(frozen=True, slots=True)
class Resource:
    r"""One resource of the channels: how its load grows, and which imbalance is tolerated.

    Parameters
    ----------
    function
        The load of a key by its frequency, :math:`\beta_k`.
    tolerance
        The largest ratio of maximum to minimum load that is acceptable, :math:`\alpha_k \ge 1`. Where the
        fullest channel works at capacity, the others are then used to at least :math:`1/\alpha_k`.
    """

    function: ResourceFunction
    tolerance: float = 1.2

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)


@dataclass(frozen=True, slots=True)
class ResourceProfile:
    """The three resources that a keyed stage uses, in this order wherever there is one row per resource.

    References
    ----------
    Gedik, §3.1; the defaults of `named` are those of §5.1, "LCL" with a tolerance of 1.2.
    """

    state: Resource
    computation: Resource
    communication: Resource

    @classmethod
    def named(
        cls,
        state: str = "linear",
        computation: str = "constant",
        communication: str = "linear",
        *,
        tolerance: float = 1.2,
    ) -> ResourceProfile:
        """Build a profile from the names of resource functions and one tolerance for all."""
        return cls(*(Resource(ResourceFunction(name), tolerance) for name in (state, computation, communication)))

    def __iter__(self) -> Iterator[Resource]:
        return iter((self.state, self.computation, self.communication))


def resource_loads(
    frequencies: ArrayLike, channels_of_keys: ArrayLike, n_channels: int, profile: ResourceProfile
) -> FloatArray:
    r"""Compute the load of every channel in every resource, as resources x channels.

    .. math:: L_k(i) = \sum_{d : p(d) = i} \beta_k(f(d)), \quad k \in \{s, c, n\}

    Equation 3 prints :math:`f(d) \cdot \beta_c(f(d))` for computation. That is the same load if
    :math:`\beta_c` is the cost of one tuple; but the text (":math:`C(d) \propto \beta_c(f(d))`", a join has
    :math:`\beta_c(x) = x^2`), the toy scenario of §2, Equation 16 and §4.4 all mean the cost of a whole
    key, so that is what a resource function is here, for all three resources: a cost per tuple that is
    linear is a quadratic one per key.

    References
    ----------
    Gedik, §3.1, Equations 1, 3 and 5.

    Examples
    --------
    >>> resource_loads([5, 3, 4], [0, 0, 1], 2, ResourceProfile.named(computation="quadratic"))
    array([[ 8.,  4.],
           [34., 16.],
           [ 8.,  4.]])
    """
    by_resource = np.stack([resource.function(frequencies) for resource in profile])
    return channel_loads(channels_of_keys, by_resource, n_channels)


def resource_ratios(loads: ArrayLike) -> FloatArray:
    r"""Compute the ratio of maximum to minimum load of each resource: :math:`r_s, r_c, r_n`.

    See `max_min_ratio` for idle channels.

    References
    ----------
    Gedik, §3.1, Equations 2, 4 and 6.
    """
    return over_windows(max_min_ratio, as_resource_loads(loads))


def relative_imbalances(loads: ArrayLike, profile: ResourceProfile) -> FloatArray:
    r"""Compare the imbalance of each resource with the tolerated one.

    .. math:: b_k = r_k / \alpha_k

    1 at the limit, more beyond it.

    References
    ----------
    Gedik, §3.4, Equation 11.
    """
    tolerances: FloatArray = np.array([resource.tolerance for resource in profile])
    return resource_ratios(loads) / tolerances


def relative_imbalance(loads: ArrayLike, profile: ResourceProfile) -> float:
    r"""Combine the relative imbalances of the three resources by their geometric mean.

    .. math:: b = \left( \prod_{k \in \{s, c, n\}} b_k \right)^{1/3}

    Infinite as soon as one channel is idle in a resource that another one uses.

    References
    ----------
    Gedik, §3.4, Equation 11.

    Examples
    --------
    >>> relative_imbalance([[12, 10], [1, 1], [12, 10]], ResourceProfile.named(tolerance=1.2))
    0.9410360288810286
    """
    return geometric_mean(relative_imbalances(loads, profile))


def geometric_mean(values: FloatArray) -> float:
    """Compute the n-th root of the product; an infinite value outweighs a 0.

    Values are divided by the largest first, so that the product cannot overflow.
    """
    largest = float(values.max())
    if largest in {0.0, math.inf}:
        return largest
    product = float(np.prod(values / largest))
    return largest * math.pow(product, 1 / len(values))
