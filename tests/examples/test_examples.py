"""Every example runs as a user would run it; its output is what the docs show, and says what it should."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from examples.outputs import EXAMPLES, NOTEBOOK, PAGE, output_shown, outputs_stored, run_example, run_notebook

SAYS = {
    "aggregates": r"batch 3: 12:40 \d\d,\d+.*late: [1-9]\d?$",
    "decision_tree": r"batch 5: 1\d leaves, accuracy 0\.9\d",
    "first_story": r"the new story of the last batch was found: True",
    "fraud_rule": r"2 of 2 stolen cards found",
    "heavy_hitters": r"all true counts within their bounds: True",
    "naive_bayes": r"same predictions: True",
    "sessions": r"[\d,]{5} visits in all; equal to Spark's session_window: True",
    "window_join": r"([\d,]{5,}) pairs in the stream; \1 by a batch join of Spark",
    "word_count": r"as counted in plain Python: True",
}
"""The line that matters of each example, as a pattern; a new example needs one."""


def masked(text: str) -> list[str]:
    """The words of each line, with its numbers as ``#``: those that hang on the order of rows differ at times."""
    return [re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*", "#", line)).strip() for line in text.splitlines()]


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """Run the examples that are asked for two at a time: each has to start a JVM of its own."""
    chosen = [item.callspec.params["example"] for item in request.session.items if item.name.startswith("test_an_exam")]
    with ThreadPoolExecutor(2) as pool:
        yield {example: pool.submit(run_example, example, tmp_path_factory.mktemp(example.stem)) for example in chosen}


@pytest.mark.spark
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_the_docs_show_and_says_what_it_should(example, runs):
    assert example.stem in SAYS, f"say in {Path(__file__).name} what {example.name} must print"
    printed = runs[example].result()
    assert re.search(SAYS[example.stem], printed, re.MULTILINE), printed
    shown = output_shown(example, PAGE.read_text())
    assert shown, f"{PAGE.name} does not show what {example.name} prints; write it with tests/examples/outputs.py"
    assert re.search(SAYS[example.stem], shown[1], re.MULTILINE)
    assert masked(printed) == masked(shown[1])


@pytest.mark.spark
def test_the_notebook_prints_what_is_stored_in_it(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_notebook() == outputs_stored()


def test_the_notebook_shows_that_keys_were_moved_and_counts_are_right():
    stored = "".join(outputs_stored())
    assert "after batch 1: move." in stored
    assert stored.count("as counted in plain Python: True") == 2
    told = json.loads(NOTEBOOK.read_text())
    assert (told["nbformat"], told["nbformat_minor"]) == (4, 5)


def test_the_page_on_examples_names_each_of_them():
    page = PAGE.read_text()
    for example in EXAMPLES:
        assert f"(../examples/{example.name})" in page
    assert f"`examples/{NOTEBOOK.name}`" in page
