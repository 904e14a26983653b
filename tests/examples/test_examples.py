"""Every example runs as a user would run it, and its output says what it should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_what_it_should(example, tmp_path):
    assert example.stem in SAYS, f"say in {Path(__file__).name} what {example.name} must print"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(example)]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert re.search(SAYS[example.stem], ran.stdout, re.MULTILINE), ran.stdout


def test_the_page_on_examples_names_each_of_them():
    page = (Path(__file__).parents[2] / "docs" / "examples.md").read_text()
    for example in EXAMPLES:
        assert f"(../examples/{example.name})" in page
