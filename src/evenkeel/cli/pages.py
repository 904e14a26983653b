"""Reports of ``simulate`` and ``advise``: one page with tables and a plot, or just the plot."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from evenkeel.errors import EvenkeelError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from matplotlib.figure import Figure

__all__ = ["Part", "check_report", "write_report"]

_ENDINGS = (".html", ".png", ".svg")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page: words, a plot, a table, code; whatever there is of them."""

    title: str
    words: Sequence[str] = ()
    figure: Figure | None = None
    table: pa.Table | None = None
    code: str = ""

    def html(self, name: str) -> str:
        """Write it as HTML; ``name`` tells its plot from the others of the page."""
        from evenkeel.report import html_table, to_svg

        inner = [f"<h3>{escape(self.title)}</h3>"]
        inner += [f"<p>{escape(words)}</p>" for words in self.words]
        if self.figure is not None:
            inner.append(f'<figure role="img" aria-label="{escape(self.title)}">{to_svg(self.figure, name)}</figure>')
        if self.table is not None:
            inner.append(f'<div class="wide">{html_table(self.table)}</div>')
        if self.code:
            inner.append(f"<pre>{escape(self.code)}</pre>")
        return "<section>" + "\n".join(inner) + "</section>"


def check_report(path: Path | None) -> None:
    """Complain about an ending that says nothing, before anything is worked out."""
    if path is not None and path.suffix not in _ENDINGS:
        raise InvalidArgumentError(f"--report writes {', '.join(_ENDINGS)}; the ending of {path.name} is none of them.")


def write_report(path: Path, title: str, introduction: str, parts: Sequence[Part]) -> None:
    """Write all parts as one page that needs nothing else, or just the first plot, by the file's ending."""
    from evenkeel.report import to_png, to_svg
    from evenkeel.report.page import PAGE

    try:
        if path.suffix == ".html":
            sections = "\n".join(part.html(f"part{place}") for place, part in enumerate(parts))
            page = PAGE.substitute(
                title=escape(title), introduction=escape(introduction), overview="", sections=sections
            )
            path.write_text(page, encoding="utf-8")
            return
        figure = next(part.figure for part in parts if part.figure is not None)
        path.write_bytes(to_png(figure) if path.suffix == ".png" else to_svg(figure, "plot").encode())
    except OSError as error:
        raise EvenkeelError(f"The report cannot be written to {path}: {error.strerror or error}.") from error
