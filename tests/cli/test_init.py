"""``evenkeel init``: an example that is in order as it is, and that overwrites nothing by mistake."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from evenkeel.cli.init import init
from evenkeel.errors import EvenkeelError
from evenkeel.jobs import read_job
from evenkeel.spark.jobs import check_job

app = typer.Typer()
app.command()(init)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "file"),
    [([], "job.toml"), (["new/words.toml"], "new/words.toml"), (["."], "job.toml")],
    ids=["by default", "in a new folder", "in a folder that is there"],
)
def test_it_writes_an_example_that_is_in_order(folder, arguments, file):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    assert f"evenkeel run {file}" in done.output
    check_job(read_job(folder / file))


def test_it_overwrites_only_if_told_to(folder):
    (folder / "job.toml").write_text("mine")
    done = CliRunner().invoke(app, [])
    assert isinstance(done.exception, EvenkeelError)
    assert "--force" in str(done.exception)
    assert (folder / "job.toml").read_text() == "mine"
    assert CliRunner().invoke(app, ["--force"]).exit_code == 0
    check_job(read_job(folder / "job.toml"))


def test_a_place_that_cannot_be_written_is_told(folder):
    (folder / "file").touch()
    done = CliRunner().invoke(app, ["file/job.toml"])
    assert isinstance(done.exception, EvenkeelError)
    assert "file/job.toml cannot be written" in str(done.exception)
