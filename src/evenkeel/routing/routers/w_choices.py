"""W-Choices: all channels for the hot keys, two for the rest."""

from __future__ import annotations

from typing import ClassVar

from evenkeel.routing.routers.d_choices import DChoices

__all__ = ["WChoices"]


class WChoices(DChoices):
    """Partial key grouping in which a hot key's tuple may go to any channel, the least loaded one.

    The best balance of its kind, at the price of up to N partial states for each hot key; see :class:`DChoices` for how
    hot keys are found, and for the parameters (``tolerance`` and ``refresh_every`` have no effect here).
    O(log N) amortised per tuple of a hot key.

    References
    ----------
    M. A. U. Nasir et al., When Two Choices Are not Enough: Balancing at Scale in Distributed Stream Processing,
    ICDE 2016.
    """

    name = "w_choices"
    _sets_choices: ClassVar[bool] = False
