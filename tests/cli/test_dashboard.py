"""``evenkeel dashboard``: served by the real command, ended by Ctrl-C, and refused where it would be unsafe."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
import typer
from typer.testing import CliRunner

from dashboard.checkpoints import Query
from evenkeel.cli.dashboard import dashboard
from evenkeel.errors import EvenkeelError, InvalidArgumentError

app = typer.Typer()
app.command()(dashboard)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("dashboard")
    Query(path).run(2)
    return str(path)


def refusal(*arguments, **environment):
    return CliRunner().invoke(app, list(arguments), env={"EVENKEEL_DASHBOARD_TOKEN": None, **environment}).exception


def test_it_serves_until_ctrl_c(checkpoint):
    code = "import typer; from evenkeel.cli.dashboard import dashboard; typer.run(dashboard)"
    command = [sys.executable, "-c", code, checkpoint, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
        try:
            told = json.loads(served.stdout.readline())
            assert told["url"].startswith("http://127.0.0.1:")
            with urllib.request.urlopen(told["metrics"], timeout=10) as answer:
                assert b"evenkeel_up 1.0" in answer.read()
            with urllib.request.urlopen(told["state"], timeout=10) as answer:
                assert json.load(answer)["checkpoint"]["job"] in {"", "words"}
        finally:
            served.send_signal(signal.SIGINT)
            _, errors = served.communicate(timeout=20)
    assert served.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_beyond_this_machine_it_does_not_start_without_a_token(checkpoint, host):
    error = refusal(checkpoint, "--host", host)
    assert isinstance(error, InvalidArgumentError)
    assert "EVENKEEL_DASHBOARD_TOKEN" in str(error)
    assert "at least 16" in str(refusal(checkpoint, "--host", host, EVENKEEL_DASHBOARD_TOKEN="short"))


def test_a_port_that_is_taken_is_one_clear_line(checkpoint):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = refusal(checkpoint, "--port", str(taken.getsockname()[1]))
    assert isinstance(error, InvalidArgumentError)
    assert "--port 0" in str(error)


def test_a_directory_without_a_checkpoint_is_told(tmp_path):
    assert "no checkpoint.json" in str(refusal(str(tmp_path)))


def test_without_its_libraries_it_says_what_to_install(checkpoint, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    error = refusal(checkpoint)
    assert isinstance(error, EvenkeelError)
    assert "evenkeel[dashboard]" in str(error)
