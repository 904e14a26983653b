"""``evenkeel top``: once, as JSON, live, and on mistakes."""

from __future__ import annotations

import importlib
import io
import json

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from dashboard.checkpoints import Query
from evenkeel.cli.top import top
from evenkeel.errors import InvalidArgumentError, UnknownNameError

app = typer.Typer()
app.command()(top)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("top")
    Query(path, names=["secret-name"]).run(5)
    return str(path)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80"})


def test_once_prints_the_view_and_ends(checkpoint):
    done = run(checkpoint, "--once")
    assert done.exit_code == 0
    assert "load per channel" in done.stdout
    assert "secret-name" in done.stdout
    assert "secret-name" not in run(checkpoint, "--once", "--mask-keys").stdout


def test_where_there_is_no_terminal_it_ends_by_itself(checkpoint):
    assert "decisions" in run(checkpoint).stdout


def test_json_is_one_document_and_nothing_else(checkpoint):
    done = run(checkpoint, "--json")
    state = json.loads(done.stdout)
    assert state["batch"] == 4
    assert len(state["stages"][0]["channels"]) == 4


def test_a_stage_that_is_not_there_is_told_with_those_that_are(checkpoint):
    error = run(checkpoint, "--stage", "stage1").exception
    assert isinstance(error, UnknownNameError)
    assert "Did you mean 'stage0'?" in str(error)


def test_a_directory_without_a_checkpoint_is_told(tmp_path):
    assert isinstance(run(str(tmp_path)).exception, InvalidArgumentError)


def test_live_it_follows_the_query_until_it_is_interrupted(tmp_path, monkeypatch):
    query = Query(tmp_path).run(1)
    naps = []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 1:
            query.run(1)
        elif len(naps) == 2:
            (tmp_path / "checkpoint.json").unlink()
        else:
            raise KeyboardInterrupt

    screen = Console(file=io.StringIO(), force_terminal=True, width=80, height=40)
    module = importlib.import_module("evenkeel.cli.top")  # the package has the command by that name
    monkeypatch.setattr(module, "Console", lambda **options: Console(file=io.StringIO()) if options else screen)
    monkeypatch.setattr(module.time, "sleep", nap)
    done = run(str(tmp_path), "--interval", "0.5")
    shown = screen.file.getvalue()
    assert done.exit_code == 0
    assert naps == [0.5, 0.5, 0.5]
    assert "does not exist" in shown
    assert shown.index("batch 0: ") < shown.index("batch 1: ")
