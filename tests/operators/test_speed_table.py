"""The table of the operators' speeds: every operator is in it, and every case of the benchmark works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.operators import CASES, measure, public_operators

PAGE = Path(__file__).parents[2] / "docs" / "operators" / "README.md"


def test_every_public_operator_has_a_case():
    assert public_operators() <= {type(operator) for operator in CASES.values()}


def test_the_page_has_a_figure_for_every_case():
    figures = dict(re.findall(r"^\| ([^|]+?) \| ([\d.]+) \|$", PAGE.read_text(), re.MULTILINE))
    assert list(figures) == list(CASES)
    assert all(float(figure) > 0 for figure in figures.values())


@pytest.mark.parametrize("name", CASES)
def test_a_case_can_be_measured(name):
    found = measure(name, 400, batches=2)
    assert found["what"] == name
    assert found["value"] > 0
