"""What is logged of decisions, and how it is written."""

from __future__ import annotations

import io
import json
import logging
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from evenkeel.cli import app
from evenkeel.control import Choice, Decision, DecisionLog
from evenkeel.jobs import Progress
from evenkeel.logs import LOGGER, StageTeller, show_logs, tell
from evenkeel.spark import jobs


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.DEBUG, "evenkeel")
    return caplog


@pytest.fixture
def own_handlers():
    """Takes away what a test adds to the logger."""
    before, level = list(LOGGER.handlers), LOGGER.level
    yield
    LOGGER.handlers[:] = before
    LOGGER.setLevel(level)


def decision(batch: int, choice: Choice) -> Decision:
    return Decision(batch, 0, float(batch), choice, (f"Reason {batch}.",), 4, 5, planner="keel", state_bytes=70)


def test_as_a_library_it_has_no_handler_that_writes():
    assert [type(handler) for handler in LOGGER.handlers] == [logging.NullHandler]
    assert LOGGER.level == logging.NOTSET
    assert LOGGER.propagate


def test_each_decision_is_told_once_also_when_it_is_filled_in_later(logged):
    log = DecisionLog()
    log.append(decision(1, Choice.MOVE))
    teller = StageTeller("stage0", log)
    teller.tell_decisions(log)
    assert not logged.records  # it was made before
    log.append(decision(2, Choice.RESIZE))
    log.append(decision(3, Choice.STAY))
    teller.tell_decisions(log)
    log.complete(2, achieved=1.1)
    teller.tell_decisions(log)
    log.append(decision(4, Choice.RECOVER))
    teller.tell_decisions(log)
    assert [(record.batch, record.choice, record.levelname) for record in logged.records] == [
        (2, "resize", "INFO"),
        (3, "stay", "DEBUG"),
        (4, "recover", "WARNING"),
    ]
    first = logged.records[0]
    assert first.getMessage() == "batch 2, stage0: resize. Reason 2."
    assert (first.event, first.stage, first.reasons, first.channels, first.next_channels) == (
        "decision",
        "stage0",
        ["Reason 2."],
        4,
        5,
    )


def test_json_is_a_line_with_all_facts(own_handlers):
    stream = io.StringIO()
    show_logs("json", stream)
    tell("rerun", "batch 7 runs again.\nIndeed.", logging.WARNING, batch=7, reason="a task was run twice")
    tell("none of that", "too quiet", logging.DEBUG)
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert told.pop("time").endswith("+00:00")
    assert told == {
        "level": "WARNING",
        "message": "batch 7 runs again.\nIndeed.",
        "event": "rerun",
        "batch": 7,
        "reason": "a task was run twice",
    }


def test_json_has_the_traceback_of_an_error(own_handlers):
    stream = io.StringIO()
    show_logs("json", stream)
    try:
        int("no")
    except ValueError:
        LOGGER.exception("failed")
    told = json.loads(stream.getvalue())
    assert told["exception"].endswith("'no'")


def test_text_is_for_people(own_handlers):
    stream = io.StringIO()
    show_logs("text", stream)
    tell("batch", "batch 0, stage0: 3 rows", batch=0)
    assert stream.getvalue().endswith(" INFO batch 0, stage0: 3 rows\n")


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job file, and in place of Spark a job that commits one batch and logs it."""
    file = tmp_path / "job.toml"
    stage = '[[stage]]\nkey = "value"\noperator = "count"\n'
    file.write_text(f'checkpoint = "checkpoint"\nsink = "console"\nsource.format = "rate"\n{stage}')

    class OneBatch:
        def __init__(self, *_):
            pass

        def batches(self, _):
            tell("batch", "batch 7, stage0: 4 rows", batch=7, rows=4)
            yield Progress(7, 1234.5, 4000, 0, 3, ((1000, 3000),), 0)

    monkeypatch.setattr(jobs, "make_session", lambda _: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(jobs, "RunningJob", OneBatch)
    return str(file)


def test_the_command_logs_in_place_of_its_table(job, own_handlers):
    done = CliRunner().invoke(app, ["run", job, "--log-format", "json"])
    assert done.exit_code == 0, done.output
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["rows"] == 4
    assert done.stdout == ""


def test_the_command_without_logs_shows_its_batches(job, own_handlers):
    done = CliRunner().invoke(app, ["run", job])
    assert "batch 7: 4,000 rows" in done.stderr
    assert "stage0: 4 rows" not in done.stderr


def test_an_unknown_format_is_told_in_a_line(job, own_handlers):
    done = CliRunner().invoke(app, ["run", job, "--log-format", "xml"])
    assert done.exit_code == 2
    assert "'text'" in done.stderr
