"""``evenkeel run``: checks without Spark, and what is shown of each batch."""

from __future__ import annotations

import importlib
import io
import json
import os
import signal
import subprocess
import sys

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from evenkeel.cli.run import run
from evenkeel.errors import InvalidArgumentError
from evenkeel.jobs import Progress, read_job
from evenkeel.spark import jobs

command = importlib.import_module("evenkeel.cli.run")  # by its name in the package, `run` is the function
app = typer.Typer()
app.command()(run)

JOB = """\
checkpoint = "checkpoint"
sink = "console"
source.format = "rate"
[[stage]]
key = "value"
operator = "count"
"""
BATCHES = [
    Progress(7, 1234.5, 4000, 0, 3, ((1000, 3000),), 0),
    Progress(8, 900.0, 4000, 0, 3, ((1900, 2100),), 2500, "move", ("Uneven [by far].",)),
]


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    return file


class FakeJob:
    """Commits two batches, prints as a sink does, and then waits for Ctrl-C if it is to."""

    waits = False

    def __init__(self, *_):
        print("a row of results")  # noqa: T201

    def batches(self, stop):
        yield from BATCHES
        if self.waits:
            os.kill(os.getpid(), signal.SIGINT)
            assert stop.wait(5)


@pytest.fixture
def no_spark(monkeypatch):
    class Session:
        def stop(self):
            self.stopped = True

    session = Session()
    monkeypatch.setattr(jobs, "make_session", lambda _: session)
    monkeypatch.setattr(jobs, "RunningJob", FakeJob)
    return session


def test_a_check_says_that_all_is_in_order_and_loads_no_spark(file):
    code = (
        "import sys; from typer.testing import CliRunner; import typer; from evenkeel.cli.run import run\n"
        "app = typer.Typer(); app.command()(run)\n"
        "done = CliRunner().invoke(app, ['--check', sys.argv[1]])\n"
        "print(done.output.strip(), done.exit_code, 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{file} is in order. 0 False\n"


def test_a_mistake_is_found_before_spark_starts(file, no_spark):
    file.write_text(JOB + 'strategy = "kel"\n')
    for option in (["--check"], []):
        done = CliRunner().invoke(app, [str(file), *option])
        assert isinstance(done.exception, InvalidArgumentError)
        assert str(done.exception) == f"{file}:7: unknown strategy 'kel'. Did you mean 'keel'?"
    assert not hasattr(no_spark, "stopped")


def test_each_batch_is_a_line_of_json_and_nothing_else_is(file, no_spark):
    done = CliRunner().invoke(app, [str(file), "--json"])
    assert done.exit_code == 0, done.output
    assert [json.loads(line) for line in done.stdout.splitlines()] == [batch.to_json() for batch in BATCHES]
    assert "a row of results" in done.stderr
    assert no_spark.stopped


def test_in_a_log_each_batch_is_a_line(file, no_spark):
    done = CliRunner().invoke(app, [str(file)])
    assert "batch 7: 4,000 rows in 1,234 ms, imbalance 1.50, 0 B moved\n" in done.stderr
    assert "batch 8: 4,000 rows in 900 ms, imbalance 1.05, 2.5 kB moved · move: Uneven [by far].\n" in done.stderr


def test_ctrl_c_asks_the_job_to_stop_and_is_no_failure(file, no_spark, monkeypatch):
    monkeypatch.setattr(FakeJob, "waits", True)
    before = signal.getsignal(signal.SIGINT)
    done = CliRunner().invoke(app, [str(file)])
    assert done.exit_code == 0
    assert "Stopping after the batch in progress" in done.stderr
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_does_not_wait(file, no_spark, monkeypatch):
    def batches(self, stop):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        yield from BATCHES

    monkeypatch.setattr(FakeJob, "batches", batches)
    assert CliRunner().invoke(app, [str(file)]).exit_code == 130
    assert no_spark.stopped


def test_on_a_terminal_there_are_bars_and_the_last_reason(file, monkeypatch):
    screen = io.StringIO()
    real = Console
    monkeypatch.setattr(
        command, "Console", lambda **_: real(file=screen, force_terminal=True, width=100, color_system=None)
    )
    shown = command._Shown(read_job(file), quiet=False)
    with shown:
        for batch in BATCHES:
            shown.add(batch)
        shown.say("Stopping")
    view = screen.getvalue()
    assert "evenkeel: rate → count" in view
    assert "▇" * 30 + "  3,000" in view
    assert "Last decision, batch 8: move. Uneven [by far]." in view
    assert "Stopping" in view


@pytest.mark.parametrize(("count", "told"), [(999, "999 B"), (25_000, "25 kB"), (3.2e9, "3.2 GB"), (5e12, "5e+03 GB")])
def test_bytes_are_told_in_units(count, told):
    assert command._bytes(count) == told
