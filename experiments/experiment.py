"""What an experiment is: a claim, settings, a run, a plot and a check."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evenkeel.errors import UnknownNameError
from evenkeel.report import Finding, Panel, Verdict, draw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from matplotlib.figure import Figure

__all__ = ["Experiment", "Result", "Scale"]

Scale: TypeAlias = Literal["small", "full"]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a run gave.

    Parameters
    ----------
    table
        Tidy: one row per measurement.
    scale, settings
        What was run.
    seconds
        How long it took.
    """

    table: pa.Table
    scale: Scale
    settings: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """One table or figure of a paper.

    Parameters
    ----------
    title
        What it is about, in a few words.
    claim
        What the paper reports, in our words.
    setup
        How it is measured here; names what stands in for data that is not public.
    settings
        The arguments of ``measure`` at each scale; ``"full"`` is the paper's, as far as it says.
    measure
        Gives the tidy table.
    findings
        Checks the shape of the table: who wins, by what factor, where the knee is; each with its tolerance.
    panels
        The plot.
    digest
        The table to show where the tidy one is long.
    remark
        What to know about the result: where and why it differs from the paper.
    needs
        Modules that must be there to run it, such as ``("pyspark",)`` for what is measured on the engine.
    columns
        Panels side by side.
    """

    title: str
    claim: str
    setup: str
    settings: Mapping[Scale, Mapping[str, Any]]
    measure: Callable[..., pa.Table]
    findings: Callable[[pa.Table], Sequence[Finding]]
    panels: Sequence[Panel]
    digest: Callable[[pa.Table], pa.Table] = field(default=lambda table: table)
    remark: str = ""
    needs: tuple[str, ...] = ()
    columns: int = 2

    def run(self, scale: Scale = "small") -> Result:
        """Measure at a scale."""
        if scale not in self.settings:
            raise UnknownNameError("scale", scale, self.settings)
        settings = self.settings[scale]
        started = time.perf_counter()
        table = self.measure(**settings)
        return Result(table, scale, settings, time.perf_counter() - started)

    def check(self, result: Result) -> Verdict:
        """Compare the shape of a result with the claim."""
        return Verdict(tuple(self.findings(result.table)))

    def plot(self, result: Result) -> Figure:
        """Draw a result."""
        return draw(result.table, self.panels, columns=self.columns)

    def missing(self) -> tuple[str, ...]:
        """Name the modules that it needs and that are not installed."""
        return tuple(name for name in self.needs if importlib.util.find_spec(name) is None)
