"""Docs tell the truth: every code block is run or checked, every strategy has its page, every link leads somewhere."""

from __future__ import annotations

import json
import logging
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from evenkeel.cli import app
from evenkeel.dashboard.prometheus import METRICS
from evenkeel.jobs import read_job
from evenkeel.planning import PLANNERS
from evenkeel.routing import ROUTERS
from evenkeel.spark.jobs import check_job

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?P<indent> *)```(?P<language>\w*)")
NOT_RUN = re.compile(r"<!-- not run: (\w.{10,}) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    above: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    found, lines = [], page.read_text().splitlines()
    start = None
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence and start is None:
            start = number, fence["language"], len(fence["indent"])
        elif fence:
            first, language, indent = start
            text = "".join(f"{inner[indent:]}\n" for inner in lines[first + 1 : number])
            found.append(Block(page, first + 1, language, text, lines[first - 1] if first else ""))
            start = None
    assert start is None, f"{page} has a block that does not end"
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def in_language(*languages: str):
    """All blocks in some languages, but for those that are marked as not run."""
    return pytest.mark.parametrize(
        "block",
        [
            pytest.param(block, id=str(block), marks=[pytest.mark.spark] if "SparkSession" in block.text else [])
            for block in BLOCKS
            if block.language in languages and not NOT_RUN.match(block.above)
        ],
    )


def test_every_block_is_in_a_language_that_is_checked_or_says_why_it_is_not():
    checked = {"python", "toml", "sh", "yaml", "json", ""}
    unmarked = [block for block in BLOCKS if block.language not in checked and not NOT_RUN.match(block.above)]
    assert [f"{block} ({block.language})" for block in unmarked] == []
    for page in PAGES:
        marks = [line for line in page.read_text().splitlines() if "not run:" in line]
        above = [block.above for block in BLOCKS if block.page == page]
        assert all(NOT_RUN.match(mark) and mark in above for mark in marks), f"a reason of {page} is above no block"


@pytest.fixture
def own_logging():
    """Takes away what a block adds to the logger."""
    logger = logging.getLogger("evenkeel")
    before, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:] = before
    logger.setLevel(level)


@in_language("python")
def test_a_code_block_runs(block, capsys, monkeypatch, tmp_path, request, own_logging):
    monkeypatch.chdir(tmp_path)
    if "SparkSession" in block.text:
        request.getfixturevalue("spark")  # the session that the block then finds
    exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})


@in_language("toml")
def test_a_job_or_a_part_of_one_is_in_order(block, tmp_path):
    """What a part leaves out is added: it must go with a job as it stands."""
    said = tomllib.loads(block.text)
    text = "" if "checkpoint" in said else 'checkpoint = "checkpoint"\nsink = "console"\n'
    text += "" if "checkpoint" in said or "source" in said else '[source]\nformat = "rate"\n'
    text += '[[stage]]\nkey = "value"\n' if isinstance(said.get("stage"), dict) else ""
    text += block.text
    text += "" if "stage" in said else '\n[[stage]]\nkey = "value"\noperator = "count"\n'
    file = tmp_path / "job.toml"
    file.write_text(text)
    check_job(read_job(file))


@in_language("sh")
def test_a_command_is_one_that_there_is(block, tmp_path, monkeypatch):
    """Those that need no cluster and no data are run; of others, every option and value is checked."""
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line, comments=True) for line in block.text.replace("\\\n", " ").splitlines()]
    for program, *arguments in filter(None, commands):
        if program == "evenkeel":
            try_command(arguments)
        elif program == "make":
            assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), arguments
        elif program == "pip":
            name, extra = re.fullmatch(r"(\w+)(?:\[(\w+)\])?", arguments[-1]).groups()
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            assert name == project["name"]
            assert extra is None or extra in project["optional-dependencies"]
        elif program == "python":
            assert (ROOT / arguments[0]).is_file(), arguments
        else:
            pytest.fail(f"{block}: say above the block why {program!r} is not run: <!-- not run: … -->")


def try_command(arguments: list[str]) -> None:
    command = get_command(app)
    if arguments[0].startswith("-") or arguments[0] == "init" or {"--check", "--help"} & set(arguments):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        return
    assert arguments[0] in command.commands, arguments
    command.commands[arguments[0]].make_context(arguments[0], arguments[1:])  # complains about what it does not know


@in_language("yaml")
def test_a_setting_parses_and_names_only_metrics_that_there_are(block):
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(block.text)
    assert set(re.findall(r"evenkeel_\w+", block.text)) <= set(METRICS)


@in_language("json")
def test_json_parses(block):
    assert json.loads(block.text)


@in_language("")
def test_a_block_without_a_language_is_a_drawing_or_an_output(block):
    """Code in it would be run by nobody."""
    assert not re.search(
        r"^(\$ |>>> |import |from \w+ import |evenkeel |make |pip |\[\[?\w+\]\])", block.text, re.MULTILINE
    )


def test_the_job_before_and_after_porting_gives_the_same():
    """Each block is run above; here, that they assert the same."""
    ways = ["applyInPandasWithState(", "transformWithStateInPandas(", "Sessions("]
    texts = [block.text for block in blocks_of(ROOT / "docs" / "porting.md")]
    jobs = [text for text in texts if "assert found == [" in text]
    assert [[way for way in ways if way in text] for text in jobs] == [[way] for way in ways]
    assert len({text.splitlines()[-1] for text in jobs}) == 1


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
