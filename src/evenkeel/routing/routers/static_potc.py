"""The power of two choices, made once for each key."""

from __future__ import annotations

from evenkeel.errors import InvalidArgumentError
from evenkeel.routing.routers.base import StickyRouter

__all__ = ["StaticPoTC"]


class StaticPoTC(StickyRouter):
    """Give a new key to the less loaded of its two candidates, and keep it there.

    Keeps keys whole, but a key that grows hot later stays where it is, and every choice must be remembered.

    Parameters
    ----------
    channels, sources, seed
        As for every router.
    choices
        Candidates per key (d).

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §III-A (static PoTC).
    """

    name = "potc"

    def __init__(self, channels: int, *, sources: int = 1, seed: int = 0, choices: int = 2) -> None:
        if choices < 1:
            raise InvalidArgumentError(f"choices must be at least 1; got {choices}.")
        super().__init__(channels, sources=sources, seed=seed, choices=choices)
