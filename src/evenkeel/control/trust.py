"""Trust in a planner: what it predicted beside what was achieved."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Trust"]

MOST_CAUTION = 8


@dataclass(frozen=True, slots=True)
class Trust:
    """How careful the controller is with a planner's promises.

    A prediction is *missed* if less than half of the promised fall in skewness was achieved. Two misses in a row double
    the caution, up to 8, and so does each further one; each prediction that is kept halves it, down to 1. Caution
    multiplies the cool-down, and what a plan must save to be worth its cost. So a planner that is wrong acts rarely and
    only where moving is cheap, but never loses its next chance.

    Parameters
    ----------
    caution
        From 1, full trust, to 8.
    misses
        How many predictions in a row were missed.

    Examples
    --------
    >>> trust = Trust()
    >>> for achieved in (1.5, 1.5, 1.5):  # skewness was 1.5 and was to become 1.1
    ...     trust = trust.after(before=1.5, predicted=1.1, achieved=achieved)
    >>> trust.caution
    4
    """

    caution: int = 1
    misses: int = 0

    def after(self, *, before: float, predicted: float, achieved: float) -> Trust:
        """Learn from one plan that was carried out; one that promised nothing teaches nothing."""
        if before <= predicted:
            return self
        if before - achieved >= (before - predicted) / 2:
            return Trust(max(1, self.caution // 2), 0)
        misses = self.misses + 1
        return Trust(min(MOST_CAUTION, 2 * self.caution) if misses >= 2 else self.caution, misses)
