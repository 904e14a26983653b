"""Docs tell the truth: every code block runs, every strategy has its page, every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenkeel.planning import PLANNERS
from evenkeel.routing import ROUTERS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(
        block,
        id=f"{page.relative_to(ROOT)} block {number}",
        marks=[pytest.mark.spark] if "SparkSession" in block else [],
    )
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE), 1)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_code_block_runs(block, capsys, monkeypatch, tmp_path, request):
    monkeypatch.chdir(tmp_path)
    if "SparkSession" in block:
        request.getfixturevalue("spark")  # the session that the block then finds
    exec(compile(block, "a code block", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("name", sorted({*ROUTERS, *PLANNERS}))
def test_every_strategy_has_a_page_that_says_what_users_ask(name):
    page = (ROOT / "docs" / "strategies" / f"{name}.md").read_text()
    for asked in ("When to use it", "Guarantee", "Cost", "Reference", "```python"):
        assert asked in page, f"{name}.md does not say: {asked}"
    index = (ROOT / "docs" / "strategies" / "README.md").read_text()
    assert f"({name}.md)" in index


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text()
    for command in ("make demo", "make test"):
        assert command in text
        assert re.search(rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
