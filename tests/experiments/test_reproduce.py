"""The command: chooses, runs, tells and writes; mistakes end in one clear line."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from experiments.experiment import Experiment
from experiments.registry import Entry, find
from typer.testing import CliRunner

from evenkeel.cli import app
from evenkeel.errors import EvenkeelError, UnknownNameError
from evenkeel.report import Finding, Panel
from experiments import registry


@pytest.fixture(autouse=True)
def _generated_streams(monkeypatch):
    monkeypatch.delenv("EVENKEEL_DATA", raising=False)


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *arguments])


def an_experiment(**changes):
    options = {
        "title": "A <title>",
        "claim": "It `works` & holds.",
        "setup": "By hand.",
        "settings": {"small": {"n": 2}, "full": {"n": 3}},
        "measure": lambda n: pa.table({"x": list(range(n)), "y": [1.0, float("nan"), 3.0][:n], "strategy": ["a"] * n}),
        "findings": lambda table: [Finding.at_least("rows", table.num_rows, 2)],
        "panels": (Panel(x="x", y="y"),),
    }
    return Experiment(**options | changes)


@pytest.fixture
def only_this(monkeypatch):
    """Let the registry have just the given experiments."""

    def put(*experiments):
        entries = [Entry("pkg", f"fig{number}", one) for number, one in enumerate(experiments, 1)]
        monkeypatch.setattr(registry, "find", lambda paper, only=None: entries)  # noqa: ARG005

    return put


def test_json_has_findings_and_rows():
    done = run("pkg", "--only", "Table 1", "--json")
    assert done.exit_code == 0
    (told,) = json.loads(done.stdout)
    assert (told["paper"], told["name"], told["verdict"], told["scale"]) == ("pkg", "table1", "holds", "small")
    assert {row["symbol"] for row in told["rows"]} == {"WP", "TW", "CT", "LN1", "LN2"}
    assert all(finding["holds"] for finding in told["findings"])


def test_json_knows_no_nan(only_this):
    only_this(an_experiment())
    (told,) = json.loads(run("pkg", "--json").stdout)
    assert [row["y"] for row in told["rows"]] == [1.0, None]


def test_a_report_is_written_and_needs_nothing_else(only_this, tmp_path):
    only_this(an_experiment(), an_experiment(findings=lambda _: [Finding.at_most("is 1 small?", 1.0, 0.5)]))
    done = run("all", "--output", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert "fig2 differs: is 1 small?: 1 (allowed: ≤ 0.5)" in done.stdout
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "A &lt;title&gt;" in page
    assert "<code>works</code> &amp; holds" in page
    assert "prefers-color-scheme: dark" in page
    assert "1 hold, 1 differ" in page
    assert not re.findall(r'(?:src|href)="(?!#)', re.sub(r"xlink:href", "link", page))
    names = re.findall(r'id="(m[0-9a-f]+|p[0-9a-f]+)"', page)
    assert len(names) == len(set(names)), "marks of one plot would be taken for another's"
    text = (tmp_path / "out" / "report.md").read_text()
    assert "**Verdict: differs.**" in text
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (tmp_path / "out" / picture).read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "data" / "pkg-fig1.csv").read_text().startswith('"x","y"')


def test_a_plot_in_the_page_is_well_formed(only_this, tmp_path):
    only_this(an_experiment())
    run("pkg", "--output", str(tmp_path))
    svg = re.search(r"<svg.*?</svg>", (tmp_path / "report.html").read_text(), re.DOTALL)
    assert ET.fromstring(svg.group()).tag.endswith("svg")


def test_what_cannot_be_run_is_told_and_the_rest_goes_on(only_this):
    def fail(n):
        raise EvenkeelError(f"No room for {n}.")

    only_this(an_experiment(measure=fail), an_experiment(needs=("no_such_engine",)), an_experiment())
    done = run("all", "--json")
    assert done.exit_code == 1
    assert [told["verdict"] for told in json.loads(done.stdout)] == ["failed", "skipped", "holds"]
    assert "No room for 2." in done.stdout
    assert "it needs no_such_engine" in done.stdout


def test_it_is_told_where_the_report_cannot_be_written(only_this, tmp_path):
    only_this(an_experiment())
    (tmp_path / "file").write_text("")
    done = run("pkg", "--output", str(tmp_path / "file"))
    assert isinstance(done.exception, EvenkeelError)
    assert "cannot be written" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gedick"], "Did you mean 'gedik'?"),
        (["gedik", "--only", "fig99"], "no table or figure of gedik called 'fig99'"),
        (["gedik", "--scale", "huge"], "no scale called 'huge'"),
    ],
    ids=["unknown paper", "unknown figure", "unknown scale"],
)
def test_a_mistake_is_one_line(arguments, words):
    command = Path(sys.executable).with_name("evenkeel")
    done = subprocess.run([command, "reproduce", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_checkout_it_says_so(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module("evenkeel.cli.reproduce")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "site-packages" / "evenkeel" / "cli" / "reproduce.py"))
    done = run("all")
    assert isinstance(done.exception, EvenkeelError)
    assert "run the command in a checkout" in str(done.exception)


@pytest.mark.parametrize("only", ["fig4", "Fig. 4", "figure 4", "FIG4"])
def test_a_figure_is_found_however_it_is_written(only):
    (found,) = find("gedik", only)
    assert (found.paper, found.name) == ("gedik", "fig4")


def test_the_experiments_come_in_the_order_of_the_paper():
    assert [entry.name for entry in find("gedik")] == [f"fig{number}" for number in range(3, 15)]


def test_an_unknown_figure_is_told_with_those_that_exist():
    with pytest.raises(UnknownNameError, match="table2"):
        find("pkg", "fig17")
