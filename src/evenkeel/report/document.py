"""A report: sections with a claim, a verdict, a table and a plot, as Markdown and as one HTML page."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from evenkeel.report.page import PAGE
from evenkeel.report.tables import html_table, markdown_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evenkeel.report.findings import Verdict

__all__ = ["Document", "Section"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One figure or table: what is claimed, what was measured, what to make of it.

    Parameters
    ----------
    name
        Short and unique, such as ``"gedik/fig4"``.
    group
        What it is listed under, such as the paper.
    title, claim, setup
        In words: what it shows, what is to be seen, how it was measured and with what data.
    verdict
        What the checks say; None where there was nothing to check.
    table
        What to show; it may be a digest.
    svg, picture
        The plot for the page, and the path of its picture for Markdown.
    remark
        What to know about the result, such as why it differs.
    missing, why
        ``"failed"`` or ``"skipped"`` where there is no result, and the reason.
    facts
        Settings, times and the like.
    """

    name: str
    group: str
    title: str
    claim: str
    setup: str = ""
    verdict: Verdict | None = None
    table: pa.Table | None = None
    svg: str = ""
    picture: str = ""
    remark: str = ""
    missing: Literal["", "failed", "skipped"] = ""
    why: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """The verdict in one word."""
        if self.missing:
            return self.missing
        return self.verdict.word if self.verdict is not None else "–"

    @property
    def score(self) -> str:
        """How many of the findings hold."""
        return self.verdict.score if self.verdict is not None else ""


@dataclass(frozen=True, slots=True)
class Document:
    """A title, an introduction and sections, listed by group."""

    title: str
    introduction: str
    sections: tuple[Section, ...]

    def markdown(self) -> str:
        """Give the report as Markdown; plots are linked pictures."""
        parts = [f"# {self.title}", self.introduction, markdown_table(self._overview())]
        group = ""
        for section in self.sections:
            if section.group != group:
                group = section.group
                parts.append(f"## {group}")
            parts += _markdown(section)
        return "\n\n".join(part for part in parts if part) + "\n"

    def html(self) -> str:
        """Give the report as one page that needs nothing else; it follows the reader's light or dark setting."""
        body, group = [], ""
        for section in self.sections:
            if section.group != group:
                group = section.group
                body.append(f"<h2>{escape(group)}</h2>")
            body.append(_html(section))
        listed = "".join(
            f'<tr><td><a href="#{_anchor(section.name)}">{escape(section.name)}</a></td>'
            f"<td>{escape(section.title)}</td><td>{_badge(section.word)}</td><td>{section.score}</td></tr>"
            for section in self.sections
        )
        return PAGE.substitute(
            title=escape(self.title),
            introduction=_words(self.introduction),
            overview=f"<table><thead><tr><th>what</th><th>about</th><th>verdict</th><th>statements</th></tr></thead>{listed}</table>",
            sections="\n".join(body),
        )

    def _overview(self) -> pa.Table:
        return pa.table(
            {
                "what": [section.name for section in self.sections],
                "about": [section.title for section in self.sections],
                "verdict": [section.word for section in self.sections],
                "statements": [section.score for section in self.sections],
            }
        )


def _findings(verdict: Verdict) -> pa.Table:
    return pa.table(
        {
            "to be seen": [finding.says for finding in verdict.findings],
            "measured": [finding.measured for finding in verdict.findings],
            "allowed": [finding.allowed for finding in verdict.findings],
            "": ["holds" if finding.holds else "differs" for finding in verdict.findings],
        }
    )


def _markdown(section: Section) -> list[str]:
    facts = " · ".join(f"{name}: {value}" for name, value in section.facts.items())
    return [
        f"### {section.name}: {section.title}",
        f"**Claim.** {section.claim}",
        f"**Here.** {section.setup}" if section.setup else "",
        f"**Verdict: {section.word}.** {section.why or section.remark}".rstrip(),
        "" if section.verdict is None else markdown_table(_findings(section.verdict)),
        f"![{section.title}]({section.picture})" if section.picture else "",
        "" if section.table is None else markdown_table(section.table),
        f"<sub>{facts}</sub>" if facts else "",
    ]


def _html(section: Section) -> str:
    facts = " · ".join(f"{escape(name)}: {escape(value)}" for name, value in section.facts.items())
    told = section.why or section.remark
    parts = [
        f"<h3>{escape(section.name)} <span>{escape(section.title)}</span> {_badge(section.word)}</h3>",
        f"<p><b>Claim.</b> {_words(section.claim)}</p>",
        f"<p><b>Here.</b> {_words(section.setup)}</p>" if section.setup else "",
        f'<p class="told">{_words(told)}</p>' if told else "",
        f'<figure role="img" aria-label="{escape(section.title)}">{section.svg}</figure>' if section.svg else "",
        "" if section.verdict is None else f'<div class="wide">{_findings_html(section.verdict)}</div>',
        ""
        if section.table is None
        else f'<details open><summary>Numbers</summary><div class="wide">{html_table(section.table)}</div></details>',
        f'<p class="facts">{facts}</p>' if facts else "",
    ]
    return f'<section id="{_anchor(section.name)}">' + "\n".join(part for part in parts if part) + "</section>"


def _findings_html(verdict: Verdict) -> str:
    rows = "".join(
        f"<tr><td>{escape(finding.says)}</td><td>{escape(finding.measured)}</td><td>{escape(finding.allowed)}</td>"
        f"<td>{_badge('holds' if finding.holds else 'differs')}</td></tr>"
        for finding in verdict.findings
    )
    head = "<tr><th>to be seen</th><th>measured</th><th>allowed</th><th></th></tr>"
    return f'<table class="findings"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def _badge(word: str) -> str:
    return f'<span class="badge {word if word.isalpha() else "none"}">{escape(word)}</span>'


def _words(text: str) -> str:
    """Text with `code` in it."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _anchor(name: str) -> str:
    return re.sub(r"\W+", "-", name)
