"""On-line greedy: a new key goes to the least loaded channel."""

from __future__ import annotations

from evenkeel.routing.routers.base import StickyRouter

__all__ = ["OnGreedy"]


class OnGreedy(StickyRouter):
    """Give a new key to the channel that is least loaded of all, and keep it there.

    The lowest channel wins a tie. O(1) per tuple of a known key, O(log N) amortised for a new one.

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §V (On-Greedy).
    """

    name = "on_greedy"
