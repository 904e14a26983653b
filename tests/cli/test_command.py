"""The command: version, help, and mistakes that end in one clear line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import evenkeel
from evenkeel import cli
from evenkeel.errors import InvalidArgumentError


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("evenkeel")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)


def test_it_knows_its_version():
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout == f"evenkeel {evenkeel.__version__}\n"


def test_help_names_the_subcommands():
    done = run("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout


@pytest.mark.parametrize("arguments", [["nothing"], ["demo", "--channels", "1"]], ids=["unknown", "out of range"])
def test_a_mistake_is_told_without_a_traceback(arguments):
    done = run(*arguments)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_an_error_of_ours_is_one_line(monkeypatch, capsys):
    def fail() -> None:
        raise InvalidArgumentError("channels must be at least 1; got 0.")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == "error: channels must be at least 1; got 0.\n"
