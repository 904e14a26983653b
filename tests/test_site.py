"""The docs site: it builds without a warning, and asks nothing of other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MISSING = [name for name in ("mkdocs", "material", "mkdocstrings") if find_spec(name) is None]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the docs site needs what is not installed: {MISSING}")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built strictly: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement of the theme, not a warning of ours
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return folder


def test_every_page_is_in_the_menu(site):
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    for page in (ROOT / "docs").rglob("*.md"):
        assert f"{page.relative_to(ROOT / 'docs')}" in menu


def test_it_fetches_nothing_from_other_hosts(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        text = re.sub(r"<code.*?</code>", "", page.read_text(), flags=re.DOTALL)
        fetched = re.findall(r"<(?:script|img|iframe)[^>]+src=\"([^\"]+)|<link[^>]+href=\"([^\"]+)", text)
        assert [url for pair in fetched for url in pair if "//" in url] == [], page.name


def test_the_reference_has_signatures_without_marks_of_another_tool(site):
    page = (site / "api.html").read_text()
    for name in ("stream", "KeyedRows", "Controller", "RoutingTable", "EvenkeelError", "read_job"):
        assert re.search(rf'<h\d id="[\w.]*{name}"', page), name
    assert "null_keys" in page
    assert ":class:" not in page


def test_examples_are_there_to_read(site):
    links = re.findall(r'href="(examples/\w+\.py)"', (site / "examples.html").read_text())
    assert len(links) >= 9
    for link in links:
        assert (site / link).read_text().startswith('"""')
