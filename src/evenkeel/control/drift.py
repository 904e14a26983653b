"""Drift: whether the stream has changed since the last plan, or only its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.control.divergence import compare
from evenkeel.control.gates import Answer, check_range
from evenkeel.control.loads import load_loads, save_loads
from evenkeel.control.saved import Saved
from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from evenkeel.control.divergence import Comparison
    from evenkeel.planning import LoadSnapshot

__all__ = ["DriftDetector", "DriftOptions"]

_FADING = 0.2
"""Weight of the newest window in the estimate of how noisy the stream is."""
_LEARNING = 3
"""Pairs of consecutive windows after which that estimate is relied on."""


@dataclass(frozen=True, slots=True)
class DriftOptions:
    """What counts as drift.

    Parameters
    ----------
    sudden_z
        Alarm at once if a window is so many standard deviations of noise from the reference.
    allowance, patience_z
        Slow drift: excess over ``allowance`` accumulates from window to window; alarm when its sum passes
        ``patience_z``. The noise of the reference itself is in every comparison (half a standard deviation), so an
        allowance near it would accumulate.
    share
        Whatever the certainty, less than about this share of all tuples having moved is no drift.
    false_peaks
        A single slot or key that became hotter raises an alarm by mere chance in at most this share of windows.
    """

    sudden_z: float = 4.0
    allowance: float = 1.25
    patience_z: float = 6.0
    share: float = 0.02
    false_peaks: float = 1e-4

    def __post_init__(self) -> None:
        for name in ("sudden_z", "allowance", "patience_z"):
            check_range(name, getattr(self, name), 0)
        check_range("share", self.share, 0, 1)
        if not 0 < self.false_peaks < 1:
            raise InvalidArgumentError(f"false_peaks must be between 0 and 1; got {self.false_peaks}.")


class DriftDetector:
    """Compares each window with the one at the last plan, and accumulates what is too small to be seen at once.

    Three tests, any of which raises an alarm: the distance to the reference is beyond noise; one slot or key rose
    beyond noise; or small excesses add up (Page's CUSUM). Streams burst, so their noise may exceed that of Poisson
    counts: how much is learnt from consecutive windows, which slow drift hardly tells apart.

    Guarantee: on a stationary Poisson stream fewer than 1 % of windows raise an alarm.

    References
    ----------
    E. S. Page, Continuous Inspection Schemes, Biometrika 41 (1954).
    """

    def __init__(self, options: DriftOptions) -> None:
        self.options = options
        self._reference: LoadSnapshot | None = None
        self._previous: LoadSnapshot | None = None
        self._dispersion = 1.0
        self._pairs = 0
        self._excess = 0.0

    def renew(self, reference: LoadSnapshot) -> None:
        """Compare with this window from now on: a plan was made for it."""
        self._reference, self._excess = reference, 0.0

    def observe(self, window: LoadSnapshot) -> Answer:
        """Say whether the stream has drifted away from the reference; the first window becomes the reference."""
        if self._reference is None or self._reference.slots != window.slots:
            self.renew(window)
            self._previous = window
            return Answer("drift", False, 0.0, "This is the first window; later ones are compared with it.")
        found = compare(self._reference, window)
        answer = self._judge(found)
        self._learn_noise(window)
        return answer

    def _judge(self, found: Comparison) -> Answer:
        options, dispersion = self.options, self._dispersion
        z, share = found.z(dispersion), found.share(dispersion)
        if self._pairs >= _LEARNING:  # before, noise that is not known yet would accumulate
            self._excess = max(0.0, self._excess + z - options.allowance)
        peak_z = found.peak_z / math.sqrt(dispersion)
        # Hoeffding: a fair coin's excess beyond √(2 ln(cells/α)) deviations has a chance below α in all cells together.
        peak_limit = math.sqrt(2 * math.log(found.peaks / options.false_peaks))
        if peak_z > peak_limit and found.peak_share >= options.share:
            reason = f"The share of {found.peak} rose by {found.peak_share:.1%}, {peak_z:.1f} deviations of noise."
            return Answer("drift", True, peak_z, reason)
        enough = share >= options.share
        about = f"About {share:.1%} of the tuples are elsewhere than at the last plan"
        if z > options.sudden_z and enough:
            return Answer("drift", True, z, f"{about}: {z:.1f} deviations of noise, over {options.sudden_z:g}.")
        if self._excess > options.patience_z and enough:
            reason = f"{about}, slowly: the excess adds up to {self._excess:.1f}, over {options.patience_z:g}."
            return Answer("drift", True, self._excess, reason)
        return Answer("drift", False, z, f"No drift beyond noise: {z:.1f} deviations, adding up to {self._excess:.1f}.")

    def _learn_noise(self, window: LoadSnapshot) -> None:
        """Follow χ² per degree of freedom between consecutive windows; 1 for Poisson counts, and never below."""
        if self._previous is not None:
            found = compare(self._previous, window)
            # A sudden change is no noise: one window may at most double the estimate.
            ratio = min(found.chi_square / max(found.cells - 1, 1), 2 * self._dispersion)
            self._pairs += 1
            weight = max(_FADING, 1 / self._pairs)
            self._dispersion = max(1.0, self._dispersion + weight * (ratio - self._dispersion))
        self._previous = window

    def snapshot(self) -> Saved:
        """Give the reference and what was accumulated, to be stored."""
        own = Saved({"dispersion": self._dispersion, "pairs": self._pairs, "excess": self._excess})
        loads = {
            name: save_loads(window)
            for name, window in (("reference", self._reference), ("previous", self._previous))
            if window is not None
        }
        return Saved.of_parts(own=own, **loads)

    def restore(self, saved: Saved) -> None:
        """Continue from what :meth:`snapshot` gave."""
        facts = saved.part("own").facts
        self._dispersion, self._pairs, self._excess = facts["dispersion"], facts["pairs"], facts["excess"]
        self._reference, self._previous = (
            load_loads(saved.part(name)) if name in saved.facts else None for name in ("reference", "previous")
        )
