"""What was to be seen, what was seen, and whether it is the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = ["Finding", "Verdict", "number"]


def number(value: Any) -> str:
    """Write a number for people: four significant digits, no exponent where it can be read without.

    >>> [number(value) for value in (0.123456, 12, 1234567.0, 1.5e9, 2e-6, float("nan"), None)]
    ['0.1235', '12', '1,234,567', '1.5e+09', '2e-06', '–', '–']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if value and math.isfinite(value) and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.4g}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement that was checked against a measurement.

    Parameters
    ----------
    says
        What is to be seen, in words.
    measured
        What was seen, with numbers.
    allowed
        The tolerance: what counts as the same.
    holds
        Whether it does.

    Examples
    --------
    >>> Finding.at_most("b is kept under 1.2", 1.15, 1.2)
    Finding(says='b is kept under 1.2', measured='1.15', allowed='≤ 1.2', holds=True)
    """

    says: str
    measured: str
    allowed: str
    holds: bool

    @classmethod
    def at_most(cls, says: str, measured: float, bound: float) -> Finding:
        """Check that a number is no larger than a bound."""
        return cls(says, number(float(measured)), f"≤ {number(bound)}", bool(measured <= bound))

    @classmethod
    def at_least(cls, says: str, measured: float, bound: float) -> Finding:
        """Check that a number is no smaller than a bound."""
        return cls(says, number(float(measured)), f"≥ {number(bound)}", bool(measured >= bound))

    @classmethod
    def between(cls, says: str, measured: float, low: float, high: float) -> Finding:
        """Check that a number lies within bounds, both allowed."""
        return cls(says, number(float(measured)), f"{number(low)} to {number(high)}", bool(low <= measured <= high))

    @classmethod
    def rising(cls, says: str, measured: dict[str, float], slack: float = 0.0) -> Finding:
        """Check that named numbers come in ascending order; each may be below the one before by a share ``slack``."""
        values = [float(value) for value in measured.values()]
        told = " · ".join(f"{name} {number(float(value))}" for name, value in measured.items())
        allowed = "in this order" + (f", each at most {slack:.0%} below the one before" if slack else "")
        pairs = pairwise(values)
        return cls(says, told, allowed, all(after >= before - slack * abs(before) for before, after in pairs))

    def as_dict(self) -> dict[str, Any]:
        """Give the fields, for JSON."""
        return {"says": self.says, "measured": self.measured, "allowed": self.allowed, "holds": self.holds}


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings about one claim: it holds if each of them does.

    >>> Verdict((Finding.at_least("it gains", 2.0, 1.5), Finding.at_most("it costs little", 9.0, 1.0))).word
    'differs'
    """

    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether every finding holds."""
        return all(finding.holds for finding in self.findings)

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return "holds" if self.holds else "differs"

    @property
    def score(self) -> str:
        """How many findings hold, of how many."""
        return f"{sum(finding.holds for finding in self.findings)} of {len(self.findings)}"
