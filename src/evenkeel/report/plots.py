"""Plots of tidy tables: panels of lines, steps or bars, one series per strategy.

Needs Matplotlib, which comes with ``evenkeel[report]`` and is imported on first use.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenkeel.errors import EvenkeelError, UnknownNameError
from evenkeel.report.findings import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["Panel", "draw", "to_png", "to_svg"]

# Told apart also in grey and by those who do not see all colours; readable on white and on black.
COLOURS = ("#3f8fd2", "#e08214", "#2e9f74", "#d1495b", "#9467bd", "#8c8c8c", "#c9a227", "#17a2b8")
MARKERS = "os^Dvp*X"
STYLES = ("-", "--", "-.", ":")
INK = "#1f2328"
MOST_MARKED = 30  # points; a line with more has no markers
LETTERS_PER_PANEL = 70  # of a legend


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One set of axes over some rows of a tidy table.

    Parameters
    ----------
    x, y
        Columns.
    by
        The column that tells series apart; None for just one.
    kind
        ``"lines"``, ``"steps"`` or ``"bars"`` (grouped by ``x``).
    where
        Only rows with these values in these columns.
    title, x_label, y_label
        Words; by default the columns' names.
    log_x, log_y
        Logarithmic axes.
    reference
        Where to draw a thin horizontal line.
    """

    x: str
    y: str
    by: str | None = "strategy"
    kind: Literal["lines", "steps", "bars"] = "lines"
    where: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    x_label: str | None = None
    y_label: str | None = None
    log_x: bool = False
    log_y: bool = False
    reference: float | None = None


def draw(table: pa.Table, panels: Sequence[Panel], *, columns: int = 2) -> Figure:
    """Draw panels side by side, with one legend for all; a series has the same colour in every panel."""
    figure_class = _matplotlib()
    across = min(columns, len(panels))
    down = -(-len(panels) // across)
    figure = figure_class(figsize=(4.6 * across, 3.0 * down + 0.5), layout="constrained")
    looks = _looks(table, panels)
    for place, panel in enumerate(panels):
        _fill(figure.add_subplot(down, across, place + 1), table, panel, looks)
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        fitting = int(LETTERS_PER_PANEL * across / (max(map(len, handles)) + 6))
        figure.legend(
            list(handles.values()), list(handles), loc="outside upper center", ncols=max(1, min(len(handles), fitting))
        )
    return figure


def to_svg(figure: Figure, name: str) -> str:
    """Give the figure as SVG to put into a page: its ink is the page's own colour, its background the page's.

    ``name`` must differ between the figures of one page: it keeps the marks within them apart.
    """
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        _inked(figure)
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", svg, count=1)


def to_png(figure: Figure) -> bytes:
    """Give the figure as PNG on white."""
    out = io.BytesIO()
    _inked(figure)
    figure.savefig(out, format="png", dpi=110, facecolor="white")
    return out.getvalue()


def _matplotlib() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise EvenkeelError("Plots need Matplotlib; install it with: pip install 'evenkeel[report]'") from missing
    return Figure


def _looks(table: pa.Table, panels: Sequence[Panel]) -> dict[str, int]:
    """A number for each series, the same in all panels."""
    series: dict[str, None] = {}
    for panel in panels:
        if panel.by is not None:
            series |= dict.fromkeys(str(value) for value in _rows(table, panel)[panel.by])
    return {name: place for place, name in enumerate(series)}


def _rows(table: pa.Table, panel: Panel) -> dict[str, list[Any]]:
    wanted = [panel.x, panel.y, *([panel.by] if panel.by else []), *panel.where]
    for column in wanted:
        if column not in table.column_names:
            raise UnknownNameError("column", column, table.column_names)
    rows = [
        row
        for row in table.select(list(dict.fromkeys(wanted))).to_pylist()
        if all(row[column] == value for column, value in panel.where.items())
    ]
    return {column: [row[column] for row in rows] for column in wanted}


def _fill(axes: Axes, table: pa.Table, panel: Panel, looks: Mapping[str, int]) -> None:
    rows = _rows(table, panel)
    labels = [str(value) for value in rows[panel.by]] if panel.by else [""] * len(rows[panel.x])
    series = list(dict.fromkeys(labels))
    places = {value: place for place, value in enumerate(dict.fromkeys(rows[panel.x]))}
    named = panel.kind == "bars" or any(isinstance(value, str) for value in places)
    for turn, name in enumerate(series):
        mine = [i for i, label in enumerate(labels) if label == name]
        y = np.array([np.nan if rows[panel.y][i] is None else rows[panel.y][i] for i in mine], np.float64)
        x = np.array([places[rows[panel.x][i]] if named else rows[panel.x][i] for i in mine], np.float64)
        look = looks.get(name, 0)
        colour = COLOURS[look % len(COLOURS)]
        if panel.kind == "bars":
            width = 0.8 / len(series)
            axes.bar(x + (turn - (len(series) - 1) / 2) * width, y, width, color=colour, label=name or None)
            continue
        axes.plot(
            x,
            y,
            color=colour,
            label=name or None,
            linestyle=STYLES[look // len(COLOURS) % len(STYLES)] if panel.kind == "lines" else "-",
            marker=MARKERS[look % len(MARKERS)] if len(x) <= MOST_MARKED else "",
            markersize=4,
            linewidth=1.4,
            drawstyle="steps-post" if panel.kind == "steps" else "default",
        )
    _scales(axes, panel)
    if named:
        axes.set_xticks(list(places.values()), [str(value) for value in places], rotation=20 if len(places) > 5 else 0)


def _scales(axes: Axes, panel: Panel) -> None:
    if panel.log_x:
        axes.set_xscale("log")
        _label_powers(axes.xaxis)
    if panel.log_y:
        axes.set_yscale("log")
        _label_powers(axes.yaxis)
    if panel.kind == "bars" and not panel.log_y:
        axes.set_ylim(bottom=0)
    if panel.reference is not None:
        axes.axhline(panel.reference, color=INK, linewidth=0.8, linestyle=":")
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x if panel.x_label is None else panel.x_label, fontsize=9)
    axes.set_ylabel(panel.y if panel.y_label is None else panel.y_label, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _label_powers(axis: Axis) -> None:
    """Label 1, 2 and 5 of each power of ten, or just the powers where there are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    few = low > 0 and high / low < 1e3
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(NullFormatter())


def _inked(figure: Figure) -> None:
    """Draw frames, ticks and words in one ink, which a page may replace by its own."""
    for axes in figure.axes:
        axes.tick_params(which="both", colors=INK)
        for words in (axes.title, axes.xaxis.label, axes.yaxis.label):
            words.set_color(INK)
        for spine in axes.spines.values():
            spine.set_edgecolor(INK)
    for legend in figure.legends:
        legend.get_frame().set_visible(False)
        for text in legend.get_texts():
            text.set_color(INK)
            text.set_fontsize(8)
