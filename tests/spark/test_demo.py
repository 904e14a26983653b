"""The demo: what it shows, refuses and leaves behind without Spark, and its job on Spark, small."""

from __future__ import annotations

import importlib
import io
import json
import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from evenkeel.cli import app
from evenkeel.cli.demo_view import View
from evenkeel.errors import EvenkeelError, InvalidArgumentError, UnknownNameError
from evenkeel.jobs import Progress
from evenkeel.spark import demo as job
from evenkeel.spark.demo import WordStream, Work, check_results
from evenkeel.spark.sinks import Memory

pytestmark = pytest.mark.spark

STREAM, WORK = WordStream(2, 1000, 20, 1.0, 1, 3), Work(4, 1.0)
RUNS = {
    "key_grouping": [
        Progress(0, 900.0, 1000, 0, 20, ((700, 100, 100, 100),), 0, "stay", ("By design.",)),
        Progress(1, 800.0, 1000, 0, 20, ((600, 200, 100, 100),), 0, "stay", ("By design.",)),
    ],
    "keel": [
        Progress(0, 890.0, 1000, 0, 20, ((700, 100, 100, 100),), 0, "move", ("The plan [has] 3 moves.",)),
        Progress(1, 400.0, 1000, 0, 20, ((250, 250, 250, 250),), 2048, "stay", ("Even.",)),
    ],
}


class FakeSession:
    stopped = False

    def stop(self):
        self.stopped = True


@pytest.fixture
def no_spark(monkeypatch):
    """A session that is none; what is to be run comes from above, and is right."""
    session = FakeSession()
    monkeypatch.setattr(job, "make_session", lambda *_: session)
    monkeypatch.setattr(job, "warm_up", lambda *_: None)
    monkeypatch.setattr(job, "play", lambda _spark, _folder, name, *_: iter(RUNS[name]))
    monkeypatch.setattr(job, "check_results", lambda *_: None)
    return session


def run_demo(folder, *options):
    settings = ["--batches", "2", "--rows", "1000", "--words", "20", "--channels", "4", "--word-ms", "1", "--seed", "3"]
    return CliRunner().invoke(app, ["demo", *settings, "--output", str(folder / "out"), *options])


# -- the stream -------------------------------------------------------------------------------------------------------


def test_popular_words_change_and_files_hold_exactly_what_is_counted(tmp_path):
    stream = WordStream(batches=4, rows=5000, words=50, skew=1.0, drift=0.2, seed=7)
    counts = stream.counts()
    assert counts.sum(axis=1).tolist() == [5000] * 4
    assert (counts == stream.counts()).all()
    changed = (np.abs(np.diff(counts, axis=0)) > 0.5 * counts[:-1].clip(10)).sum(axis=1)
    assert (changed >= 2).all()
    assert (changed <= 10).all()  # a fifth of the words
    stream.write(tmp_path / "in")
    for batch, file in enumerate(sorted((tmp_path / "in").iterdir())):
        found = pq.read_table(file)["word"].value_counts().to_pylist()
        exact = {f"word{word}": count for word, count in enumerate(counts[batch].tolist()) if count}
        assert {row["values"]: row["counts"] for row in found} == exact


def test_bounds_are_the_even_share_and_the_hottest_word():
    counts = np.array([[6, 1, 1], [3, 3, 2]])
    assert Work(4, 10.0).ideal_ms(counts).tolist() == [20.0, 20.0]
    assert Work(4, 10.0).bound_ms(counts).tolist() == [60.0, 30.0]
    assert Work(2, 10.0).bound_ms(counts).tolist() == [60.0, 40.0]


def exact_results(stream):
    sink, counts = Memory(), stream.counts()
    for batch, totals in enumerate(counts.cumsum(axis=0)):
        touched = np.flatnonzero(counts[batch])
        sink.batches[batch] = pa.table({"word": [f"word{word}" for word in touched], "count": totals[touched]})
    return sink


@pytest.mark.parametrize("change", ["a count", "a row twice", "a batch missing"])
def test_results_are_compared_with_exact_counts(change):
    sink = exact_results(STREAM)
    check_results(STREAM, sink)
    last = sink.batches[1]
    if change == "a count":
        sink.batches[1] = last.set_column(1, "count", pa.array([1, *last["count"].to_pylist()[1:]]))
    elif change == "a row twice":
        sink.batches[1] = pa.concat_tables([last, last.slice(0, 1)])
    else:
        del sink.batches[1]
    with pytest.raises(EvenkeelError, match="batch 1 are not the exact counts"):
        check_results(STREAM, sink)


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        (["--strategy", "kel"], UnknownNameError, "Did you mean 'keel'?"),
        (["--strategy", "key_grouping"], InvalidArgumentError, "take another --strategy"),
        (["--drift", "2"], InvalidArgumentError, "drift must be from 0 to 1"),
        (["--skew", "nan"], InvalidArgumentError, "skew must be from 0 to 10"),
        (["--word-ms", "-1"], InvalidArgumentError, "word_ms must be from 0.001 to 1000"),
        (["--output", __file__], InvalidArgumentError, "is a file"),
    ],
    ids=["a misspelt strategy", "the first run's own", "too much drift", "no number", "negative work", "a file"],
)
def test_a_mistake_is_told_before_spark_starts(options, error, told, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "make_session", lambda *_: pytest.fail("Spark was started"))
    done = run_demo(tmp_path, *options)
    assert isinstance(done.exception, error)
    assert told in str(done.exception)


def test_a_log_has_a_line_per_batch_a_summary_and_no_control_characters(no_spark, tmp_path):
    done = run_demo(tmp_path)
    assert done.exit_code == 0, done.output
    assert "key_grouping batch 1 of 2: 900 ms, busiest 2.80 times the average\n" in done.stderr
    moves = "keel batch 1 of 2: 890 ms (before: 900 ms), busiest 2.80 times the average · move: The plan [has] 3 moves."
    moved = "keel batch 2 of 2: 400 ms (before: 800 ms), busiest 1.00 times the average, 2 KiB of state moved"
    assert {moves, moved} <= set(done.stderr.splitlines())
    assert "keel was 1.32 times as fast as key_grouping, on the same 2,000 words." in done.stdout
    assert not [letter for letter in done.output if ord(letter) < 32 and letter != "\n"]
    assert no_spark.stopped


def test_json_is_all_there_is_on_stdout_and_the_page_has_the_plots(no_spark, tmp_path):
    done = run_demo(tmp_path, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["gain"] == pytest.approx(1700 / 1290)
    assert told["figures"]["keel"]["batch_ms_p50"] == 400
    assert told["figures"]["ideal"]["words_per_second"] == pytest.approx(4000)
    assert told["figures"]["bound"]["words_per_second"] < 4000
    assert [batch["ms"] for batch in told["batches"]["key_grouping"]] == [900, 800]
    page = (tmp_path / "out" / "report.html").read_text()
    assert told["report"] == str(tmp_path / "out" / "report.html")
    assert page.count("<svg") == 2
    for drawn in ("Batch time", "Imbalance", "whole words, at best", "The plan [has] 3 moves."):
        assert drawn in page
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["report.html"]


def test_without_matplotlib_it_runs_and_says_why_there_is_no_page(no_spark, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("evenkeel.cli.demo"), "find_spec", lambda _: None)
    done = run_demo(tmp_path)
    assert done.exit_code == 0, done.output
    assert "No report was written: plots need Matplotlib" in done.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_it_in_one_line_and_leaves_nothing(number, code, no_spark, tmp_path, monkeypatch):
    def warm_up(_spark, _work, place, heed):
        seen.append(place.parent)
        os.kill(os.getpid(), number)
        heed()

    seen = []
    monkeypatch.setattr(job, "warm_up", warm_up)
    before = signal.getsignal(number)
    done = run_demo(tmp_path, "--json")
    assert done.exit_code == code
    assert done.stdout == ""
    assert done.stderr.endswith("Stopped; no report was written.\n")
    assert no_spark.stopped
    assert not (tmp_path / "out").exists()
    assert not seen[0].exists()
    assert signal.getsignal(number) is before


def test_a_live_view_fits_the_terminal_and_draws_both_runs_on_one_scale():
    for width in (80, 120):
        console = Console(file=io.StringIO(), width=width, height=24, force_terminal=True)
        view = View(console, STREAM, WORK, ("key_grouping", "keel"))
        for name, run in RUNS.items():
            for progress in run:
                view.add(name, progress)
        plain = Console(file=io.StringIO(), width=width)
        plain.print(view.render())
        lines = plain.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        assert len(lines) <= 24
        first = next(line for line in lines if line.startswith("channel 0"))
        assert first.split()[3] == "600"
        assert first.split()[5] == "250"
        assert len(first.split()[2]) / len(first.split()[4]) == pytest.approx(600 / 250, rel=0.1)
        assert any("The plan [has] 3 moves." in line for line in lines)


# -- on Spark ---------------------------------------------------------------------------------------------------------


def test_the_demo_takes_work_off_the_busiest_channel_of_an_extremely_skewed_stream(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "make_session", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    settings = {"batches": 3, "rows": 2000, "words": 4, "skew": 0.5, "drift": 0, "channels": 2, "word-ms": 0.2}
    options = [f"--{name}={value}" for name, value in settings.items()] + ["--seed=6"]
    done = CliRunner().invoke(app, ["demo", *options, "--json", "--output", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["results_exact"]
    before, after = (told["batches"][name] for name in ("key_grouping", "keel"))
    assert [batch["rows"] for batch in (*before, *after)] == [2000] * 6
    assert after[0]["choice"] == "move"
    assert after[1]["moved_bytes"] > 0
    busiest = [[max(batch["stages"][0]["loads"]) for batch in run] for run in (before, after)]
    assert busiest[0][0] == busiest[1][0]
    assert min(busiest[0][1:]) > 1.3 * max(busiest[1][1:])
    # How much shorter batches get is for a quiet machine to say; but none is shorter than its busiest channel's work.
    for run, most in zip((before, after), busiest, strict=True):
        assert all(batch["ms"] >= 0.2 * words for batch, words in zip(run, most, strict=True))
    assert told["figures"]["bound"]["batch_ms_max"] < told["figures"]["keel"]["batch_ms_max"]
    assert (tmp_path / "out" / "report.html").read_text().count("<svg") == 2
