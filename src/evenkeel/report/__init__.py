"""Reports: findings with verdicts, tables and plots, as Markdown and as one HTML page."""

from evenkeel.report.document import Document, Section
from evenkeel.report.findings import Finding, Verdict
from evenkeel.report.plots import Panel, draw, to_png, to_svg
from evenkeel.report.tables import html_table, markdown_table, pivot

__all__ = [
    "Document",
    "Finding",
    "Panel",
    "Section",
    "Verdict",
    "draw",
    "html_table",
    "markdown_table",
    "pivot",
    "to_png",
    "to_svg",
]
