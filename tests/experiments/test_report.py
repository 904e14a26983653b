"""Reports: numbers for people, tables, panels and pages."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.report import Document, Finding, Panel, Section, Verdict, draw, html_table, markdown_table, pivot, to_svg
from evenkeel.report.plots import INK

LONG = pa.table(
    {"n": [1, 1, 10, 10], "strategy": ["a", "b"] * 2, "load": [1.0, 2.0, 30.0, None], "part": ["x", "x", "y", "y"]}
)


@pytest.mark.parametrize(
    ("finding", "holds"),
    [
        (Finding.at_most("", 1.0, 1.0), True),
        (Finding.at_most("", 1.1, 1.0), False),
        (Finding.at_least("", 0.9, 1.0), False),
        (Finding.between("", 1.0, 1.0, 2.0), True),
        (Finding.between("", 2.1, 1.0, 2.0), False),
        (Finding.rising("", {"a": 1.0, "b": 1.0, "c": 2.0}), True),
        (Finding.rising("", {"a": 1.0, "b": 0.95}), False),
        (Finding.rising("", {"a": 1.0, "b": 0.95}, slack=0.1), True),
        (Finding.at_most("", float("nan"), 1.0), False),
        (Finding.at_least("", float("nan"), 1.0), False),
    ],
)
def test_a_finding_knows_its_bounds(finding, holds):
    assert finding.holds is holds


def test_a_verdict_holds_if_all_do():
    good, bad = Finding.at_most("", 0.0, 1.0), Finding.at_most("", 2.0, 1.0)
    assert (Verdict((good, good)).word, Verdict((good, bad)).word) == ("holds", "differs")
    assert Verdict((good, bad)).score == "1 of 2"


def test_a_table_is_turned_and_nothing_is_lost():
    wide = pivot(LONG, "n", "strategy", "load")
    assert wide.to_pydict() == {"n": [1, 10], "a": [1.0, 30.0], "b": [2.0, None]}


def test_a_column_that_would_be_there_twice_is_refused():
    with pytest.raises(InvalidArgumentError, match="twice"):
        pivot(pa.table({"n": [1], "strategy": ["n"], "load": [1.0]}), "n", "strategy", "load")


def test_text_cannot_break_out_of_a_table():
    nasty = pa.table({"<b>": ["<script>|x"], "n": [1234.5]})
    assert "<script>" not in html_table(nasty)
    assert markdown_table(nasty).splitlines()[2] == "| <script>\\|x | 1,234 |"


def test_a_series_has_one_colour_in_all_panels_and_one_place_in_the_legend():
    panels = (Panel(x="n", y="load", where={"part": "x"}), Panel(x="n", y="load", where={"part": "y"}, kind="bars"))
    figure = draw(LONG, panels)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    line = figure.axes[0].get_lines()[1].get_color()
    bar = figure.axes[1].containers[1].patches[0].get_facecolor()
    assert tuple(round(255 * part) for part in bar[:3]) == tuple(bytes.fromhex(line[1:]))


def test_an_unknown_column_is_told_with_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'load'"):
        draw(LONG, [Panel(x="n", y="laod")])


def test_a_plot_takes_the_ink_of_its_page():
    svg = to_svg(draw(LONG, [Panel(x="n", y="load", log_x=True, reference=1.0)]), "one")
    assert INK not in svg
    assert "currentColor" in svg


def test_a_page_lists_its_sections():
    sections = (
        Section(name="a/fig1", group="A", title="One", claim="It is so.", verdict=Verdict(()), table=LONG),
        Section(name="a/fig2", group="A", title="Two", claim="It is so, too.", missing="skipped", why="No engine."),
    )
    document = Document("Title & more", "Words.", sections)
    page = document.html()
    assert page.count("<h2>") == 1
    assert '<a href="#a-fig2">' in page
    assert 'id="a-fig2"' in page
    assert "Title &amp; more" in page
    assert "| a/fig2 | Two | skipped |" in document.markdown()
    assert "No engine." in document.markdown()
