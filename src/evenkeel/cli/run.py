"""``evenkeel run``: a job file on Spark, watched batch by batch."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evenkeel.jobs import Job, Progress

__all__ = ["run"]

_SHOWN_BATCHES, _SHOWN_CHANNELS = 8, 16
_BAR = 30
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(
    file: Annotated[Path, typer.Argument(help="The job; `evenkeel init` writes an example.")] = Path("job.toml"),
    check: Annotated[bool, typer.Option("--check", help="Only look for mistakes; start no Spark.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each batch.")] = False,
    log_format: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="Log batches, decisions and recoveries to standard error, in place of the live table."),
    ] = None,
) -> None:
    """Run a job that a TOML file describes, and show each batch.

    Ctrl-C (or SIGTERM) stops it after the batch in progress, with exit code 0: run again, it goes on from there. A
    second Ctrl-C does not wait, with exit code 130; the batch in progress then comes again.
    """
    from evenkeel.jobs import read_job
    from evenkeel.spark.jobs import check_job

    job = read_job(file)
    check_job(job)
    if check:
        typer.echo(json.dumps({"file": str(file), "stages": len(job.stage)}) if as_json else f"{file} is in order.")
        return
    if log_format is not None:
        from evenkeel.logs import show_logs

        show_logs(log_format)
    # What a sink prints must not end up between the lines of JSON.
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        for line in _run(job, _Shown(job, quiet=as_json or log_format is not None)):
            if as_json:
                print(line, file=out, flush=True)


def _run(job: Job, shown: _Shown) -> Iterator[str]:
    from evenkeel.spark.jobs import RunningJob, make_session, stop_session

    with shown.status("Starting Spark …"):
        spark = make_session(job)
    try:
        with shown, _signals(shown) as asked:
            with shown.status("Starting the query …" if job.source.stream else "Running …"):
                running = RunningJob(job, spark)
            for progress in running.batches(asked):
                shown.add(progress)
                yield json.dumps(progress.to_json())
    finally:
        stop_session(spark)


@contextlib.contextmanager
def _signals(shown: _Shown) -> Iterator[threading.Event]:
    """Ask to stop on a first signal, end on a second; Spark's own handler of Ctrl-C would break off every task."""
    asked = threading.Event()

    def ask(number: int, _frame: Any) -> None:
        if asked.is_set():
            raise typer.Exit(128 + number)
        asked.set()
        shown.say("Stopping after the batch in progress; once more to stop at once.")

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Shown:
    """What is shown while a job runs: a live table on a terminal, a line per batch in a log."""

    def __init__(self, job: Job, *, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        self._title = f"{job.name}: {job.source.format} → " + " → ".join(stage.operator.name for stage in job.stage)
        self._batches: list[Progress] = []
        self._decided = ""
        self._note = ""
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None

    def __enter__(self) -> None:
        if self._live:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    @contextlib.contextmanager
    def status(self, text: str) -> Iterator[None]:
        """Show that something takes its time."""
        if self._live and self._live.is_started:
            self._live.update(Text(text, style="dim"), refresh=True)
            yield
        else:
            with self._console.status(text):
                yield

    def say(self, note: str) -> None:
        """Show a note."""
        self._note = note
        if self._live and self._batches:
            self._live.update(self._view(), refresh=True)
        else:
            self._console.print(note)

    def add(self, progress: Progress) -> None:
        """Show one more batch."""
        self._batches = [*self._batches, progress][-_SHOWN_BATCHES:]
        if progress.choice:
            self._decided = f"batch {progress.batch}: {progress.choice}. {' '.join(progress.reasons)}"
        if self._live:
            self._live.update(self._view(), refresh=True)
            return
        told = f" · {progress.choice}: {' '.join(progress.reasons)}" if progress.choice else ""
        line = (
            f"batch {progress.batch}: {progress.rows:,} rows in {progress.ms:,.0f} ms, imbalance "
            f"{progress.imbalance:.2f}, {_bytes(progress.moved_bytes)} moved{told}"
        )
        self._console.print(line, markup=False, soft_wrap=True)

    def _view(self) -> Group:
        batches = Table(title=escape(self._title), title_justify="left", box=None, pad_edge=False)
        for column in ("batch", "rows", "ms", "results", "imbalance", "moved"):
            batches.add_column(column, justify="right")
        batches.add_column("decision")
        for one in self._batches:
            uneven = f"[{_colour(one.imbalance)}]{one.imbalance:.2f}[/]"
            moved = _bytes(one.moved_bytes) if one.moved_bytes else ""
            figures = (str(one.batch), f"{one.rows:,}", f"{one.ms:,.0f}", f"{one.results:,}", uneven, moved)
            batches.add_row(*figures, one.choice)
        parts: list[Any] = [batches, "", *self._bars()]
        parts += [Text(f"Last decision, {self._decided}", style="dim")] if self._decided else []
        parts += [Text(self._note, style="yellow")] if self._note else []
        return Group(*parts)

    def _bars(self) -> Iterator[Any]:
        """Rows of the fullest channels in the last batch, stage by stage."""
        last = self._batches[-1]
        for number, (loads, imbalance) in enumerate(zip(last.loads, last.imbalances, strict=True)):
            stage = Table(box=None, pad_edge=False, show_header=False)
            longest = max(*loads, 1)
            fullest = sorted(range(len(loads)), key=loads.__getitem__)[-_SHOWN_CHANNELS:]
            for channel in sorted(fullest):
                rows = loads[channel]
                bar = Text("▇" * round(_BAR * rows / longest), style=_colour(rows * len(loads) / max(sum(loads), 1)))
                stage.add_row(f"stage {number} channel {channel}", bar, f"{rows:,}")
            yield stage
            yield Text(f"the fullest channel has {imbalance:.2f} times the average", style="dim")


def _colour(ratio: float) -> str:
    return "green" if ratio < 1.2 else "yellow" if ratio < 1.5 else "red"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
