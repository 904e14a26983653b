"""``evenkeel demo``: a drifting word stream on Spark, by key grouping and balanced, batch by batch."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from evenkeel.errors import EvenkeelError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evenkeel.cli.demo_outcome import Outcome
    from evenkeel.cli.demo_view import View
    from evenkeel.spark.demo import WordStream, Work

__all__ = ["demo"]

_PLAIN = "key_grouping"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def demo(
    strategy: Annotated[str, typer.Option(help="What keeps the second run even: a planner or a router.")] = "keel",
    channels: Annotated[int, typer.Option(min=2, max=64, help="Parallel tasks.")] = 8,
    batches: Annotated[int, typer.Option(min=1, max=1000, help="Micro-batches.")] = 8,
    rows: Annotated[int, typer.Option(min=1, max=10_000_000, help="Words in each batch.")] = 12_000,
    words: Annotated[int, typer.Option(min=2, max=1_000_000, help="Different words.")] = 1000,
    skew: Annotated[float, typer.Option(help="Zipf exponent of the words' frequencies.")] = 1.0,
    drift: Annotated[float, typer.Option(help="Share of the words that trade popularity between two batches.")] = 0.02,
    word_ms: Annotated[float, typer.Option(help="Work on each word, in milliseconds; it is waited for.")] = 1.2,
    seed: Annotated[int, typer.Option(min=0, help="Which words are popular when.")] = 13,
    output: Annotated[Path, typer.Option(help="Where to write report.html.")] = Path("demo-report"),
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Run a skewed stream of words, whose popular words change, through the engine: placed by hash, then kept even.

    Both get the same words, and do the same work on each. All results are compared with the exact counts. Ctrl-C ends
    it and leaves nothing behind.
    """
    from evenkeel.cli.demo_view import View
    from evenkeel.spark.demo import WordStream, Work, make_strategy

    if strategy == _PLAIN:
        raise InvalidArgumentError(f"{_PLAIN} is what the first run does; take another --strategy, such as keel.")
    make_strategy(strategy, channels)
    stream, work = WordStream(batches, rows, words, skew, drift, seed), Work(channels, word_ms)
    _check_output(output)
    console = Console(stderr=True, highlight=False)
    asked, view = _Asked(), View(console, stream, work, (_PLAIN, strategy))
    try:
        with asked.listening(), view:
            outcome = _run(stream, work, strategy, view, asked)
            view.say("Writing the report …")
            report = _write(output, outcome)
    except KeyboardInterrupt:
        console.print("Stopped; no report was written.")
        raise typer.Exit(128 + (asked.signal or signal.SIGINT)) from None
    if as_json:
        typer.echo(json.dumps({**outcome.as_dict(), "report": report and str(report)}, allow_nan=False))
    else:
        outcome.show(report)


class _Asked:
    """Whether one asked to stop, by Ctrl-C or SIGTERM.

    Nothing is broken off by the signal itself: an answer of Spark's that is not read to its end would be taken for the
    answer to the next question. Spark's own handler would do so.
    """

    signal = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note signals, and do nothing else on them."""
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _frame: Any) -> None:
        self.signal = number

    def heed(self) -> None:
        """Stop, if one asked to."""
        if self.signal:
            raise KeyboardInterrupt


def _run(stream: WordStream, work: Work, strategy: str, view: View, asked: _Asked) -> Outcome:
    from evenkeel.cli.demo_outcome import Outcome
    from evenkeel.spark import demo as job
    from evenkeel.spark.sinks import Memory

    with tempfile.TemporaryDirectory(prefix="evenkeel-demo-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        view.say("Starting Spark …")
        stream.write(place / "input")
        spark = job.make_session(work.channels, place / "spark.log")
        with asked.listening():  # once more, for Spark has put its own handler in the place of ours
            try:
                asked.heed()
                view.say("Warming Spark up …")
                job.warm_up(spark, work, place / "warm-up", asked.heed)
                for name in (_PLAIN, strategy):
                    view.say(f"Running {name} …")
                    sink = Memory()
                    for progress in job.play(spark, place / "input", name, work, sink, place, asked.heed):
                        view.add(name, progress)
                    job.check_results(stream, sink)
            finally:
                view.say("Stopping Spark …")
                spark.stop()
    return Outcome(stream, work, _PLAIN, strategy, view.batches)


def _check_output(folder: Path) -> None:
    """Complain about a folder that cannot be written to before anything is worked out."""
    there = next(path for path in [folder, *folder.absolute().parents] if path.exists())
    if not there.is_dir():
        raise InvalidArgumentError(f"--output is a folder to write report.html to; {there} is a file.")
    if not os.access(there, os.W_OK):
        raise InvalidArgumentError(f"The report cannot be written to {folder}: {there} is not writable.")


def _write(folder: Path, outcome: Outcome) -> Path | None:
    """Write the page, whole or not at all; None where Matplotlib is missing."""
    if find_spec("matplotlib") is None:
        return None
    half, whole = folder / ".report.html", folder / "report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        outcome.write(half)
        half.replace(whole)
    except OSError as error:
        raise EvenkeelError(f"The report cannot be written to {folder}: {error.strerror or error}.") from error
    finally:
        half.unlink(missing_ok=True)
    return whole
