"""What ``simulate`` and ``advise`` share: how a trace is named, read, cut into windows and watched."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from evenkeel.errors import EvenkeelError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from evenkeel.sim import Histograms, Workload

__all__ = [
    "AsJson",
    "KeyColumns",
    "OnSpark",
    "Opened",
    "Rate",
    "ReportTo",
    "SaveTo",
    "StateBytes",
    "TimeColumn",
    "TraceFormat",
    "TracePath",
    "WindowSeconds",
    "WindowTuples",
    "open_trace",
    "printer",
    "reading",
    "split_names",
    "watching",
]

Format = Literal["parquet", "csv", "lines", "words", "edges"]
_WINDOWS = 24  # that a trace is cut into if nothing is said
_MOST_TUPLES = 5_000_000  # of such a window: it must fit into memory
_DEFAULT_KEYS = {"lines": ("line",), "words": ("word",)}
_PREPARED = {"window", "hash", "count"}


TracePath = Annotated[str, typer.Argument(help="Parquet, CSV, text or an edge list; or histograms written by --save.")]
KeyColumns = Annotated[list[str] | None, typer.Option("--key", help="The key's column; again for a composite key.")]
TimeColumn = Annotated[str | None, typer.Option("--time", help="The column of times: timestamps, or seconds.")]
TraceFormat = Annotated[
    Format | None, typer.Option("--format", help="How to read TRACE; by the file's ending if not given.")
]
WindowSeconds = Annotated[
    float | None, typer.Option(min=1e-9, help="Cut windows by time: one window is one micro-batch.")
]
WindowTuples = Annotated[int | None, typer.Option(min=1, help="Cut windows by number of tuples.")]
OnSpark = Annotated[bool, typer.Option("--spark", help="Count keys on Spark, for a trace larger than memory.")]
SaveTo = Annotated[
    Path | None, typer.Option(help="Write the histograms to this Parquet file, to be used as TRACE next time.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Rate = Annotated[float | None, typer.Option(min=1e-9, help="Tuples that one channel works off in a second.")]
StateBytes = Annotated[float, typer.Option(min=0, help="State that a key holds.")]
ReportTo = Annotated[
    Path | None, typer.Option(help="Write a report (.html), or just the plot (.png or .svg), to this file.")
]


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A trace that is ready to be replayed.

    Parameters
    ----------
    workload
        The stream.
    key
        The key's columns.
    timed
        Whether its windows are as long as they say.
    windows
        How many there are, about; None if that is not known.
    keys_of
        Finds the keys behind hashes, as far as they are known.
    """

    workload: Workload
    key: tuple[str, ...]
    timed: bool
    windows: int | None
    keys_of: Callable[[NDArray[np.int64]], dict[int, str]]


@dataclass(frozen=True, slots=True)
class _Cut:
    """How the windows are cut."""

    seconds: float | None
    tuples: int | None

    def decided(self, tuples: int, first: float | None, last: float | None) -> _Cut:
        """Cut into a few dozen windows where nothing was said: by time, if there is one."""
        if self.seconds is not None or self.tuples is not None:
            return self
        if tuples == 0:
            raise InvalidArgumentError("There is not a single tuple in the trace.")
        if first is not None and last is not None and last > first:
            return _Cut((last - first) / _WINDOWS * (1 + 1e-9), None)
        return _Cut(None, min(-(-tuples // _WINDOWS), _MOST_TUPLES))


def open_trace(
    trace: str,
    key: list[str] | None,
    *,
    time: str | None,
    form: Format | None,
    window_seconds: float | None,
    window_tuples: int | None,
    spark: bool,
    save: Path | None,
    status: Callable[[str], None],
) -> Opened:
    """Open a trace, look it over, and cut it; on Spark, count its keys there."""
    if window_seconds is not None and window_tuples is not None:
        raise InvalidArgumentError("Cut windows either by --window-seconds or by --window-tuples, not by both.")
    if window_seconds is not None and time is None:
        raise InvalidArgumentError("--window-seconds needs a column of times; name it by --time.")
    if "://" not in trace and not Path(trace).exists():
        raise InvalidArgumentError(f"There is no file or folder {trace}.", path=trace)
    cut = _Cut(window_seconds, window_tuples)
    with reading(trace):
        if not key and form is None and _is_prepared(trace):
            opened = _prepared(trace)
        else:
            opened = (_on_spark if spark else _here)(trace, key, time, form, cut, status)
        if save is not None:
            opened = _saved(opened, save)
    return opened


def split_names(given: str) -> list[str]:
    """Take names apart that are set apart by commas or blanks.

    >>> split_names("keel, pkg readj")
    ['keel', 'pkg', 'readj']
    """
    return given.replace(",", " ").split()


def printer() -> Console:
    """Give what to print tables with: as wide as the terminal, or wide enough for a log."""
    out = Console()
    return out if out.is_terminal else Console(width=max(out.width, 120))


@contextmanager
def reading(trace: str) -> Iterator[None]:
    """Tell in one line what is wrong with a file that cannot be read."""
    import pyarrow as pa

    try:
        yield
    except EvenkeelError:
        raise
    except (OSError, pa.ArrowException) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise EvenkeelError(f"{trace} cannot be read: {first}.", path=trace) from error


@contextmanager
def watching(*, quiet: bool = False) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show what is being done, and how far it is, on a terminal; give a function to tell it."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("", total=None)

        def tell(what: str, done: int, of: int | None) -> None:
            progress.update(task, description=what, completed=done, total=of)

        yield tell


def _key_of(trace: Any, key: list[str] | None, form: str, columns: Callable[[], list[str]]) -> tuple[str, ...]:
    if key:
        return tuple(key)
    if form in _DEFAULT_KEYS:
        return _DEFAULT_KEYS[form]
    known = "src, dst" if form == "edges" else ", ".join(columns())
    raise InvalidArgumentError(f"Which column of {trace} is the key? Name it by --key; there are: {known}.")


def _here(
    trace: str,
    key: list[str] | None,
    time: str | None,
    form: Format | None,
    cut: _Cut,
    status: Callable[[str], None],
) -> Opened:
    from evenkeel.sim.advice import KnownTrace

    def made(how: _Cut, columns: tuple[str, ...]) -> KnownTrace:
        timed = time if how.seconds is not None or how == undecided else None
        return KnownTrace(trace, columns, timed, window_seconds=how.seconds, window_tuples=how.tuples, format=form)

    undecided = _Cut(None, 1)
    kind = KnownTrace(trace, window_tuples=1, format=form).format
    assert kind is not None
    columns = _key_of(trace, key, kind, lambda: _columns(trace, kind))
    status("Looking the trace over …")
    found = made(undecided, columns).survey()
    cut = cut.decided(*found)
    workload = made(cut, columns)
    windows = -(-found.tuples // cut.tuples) if cut.tuples else None
    if cut.seconds and found.first is not None and found.last is not None:
        windows = int((found.last - found.first) / cut.seconds) + 1
    return Opened(workload, columns, cut.seconds is not None, windows, workload.keys_of)


def _on_spark(
    trace: str,
    key: list[str] | None,
    time: str | None,
    form: Format | None,
    cut: _Cut,
    status: Callable[[str], None],
) -> Opened:
    from evenkeel.sim import Histograms, Trace
    from evenkeel.spark import traces

    kind = form or Trace(trace, window_tuples=1).format
    assert kind is not None
    status("Starting Spark …")
    session = traces.local_session()
    rows = traces.read_trace(session, trace, kind)
    columns = _key_of(trace, key, kind, lambda: rows.columns)
    if cut.seconds is None and cut.tuples is None:
        status("Looking the trace over …")
        cut = cut.decided(*traces.survey(rows, time))
    status("Counting keys on Spark …")
    table = traces.count_keys(rows, columns, time=time, window_seconds=cut.seconds, window_tuples=cut.tuples)
    workload = Histograms(table, cut.seconds or 1.0)
    known = _windows_of(workload)
    return Opened(
        workload,
        columns,
        cut.seconds is not None,
        known,
        lambda hashes: traces.find_keys(rows, columns, hashes.tolist()),
    )


# -- prepared histograms ---------------------------------------------------------------------------------------------


def _columns(trace: str, kind: str) -> list[str]:
    import pyarrow.dataset as ds

    return list(ds.dataset(trace, format="csv" if kind == "csv" else "parquet").schema.names)


def _is_prepared(trace: str) -> bool:
    path = Path(trace)
    return path.suffix == ".parquet" and path.is_file() and set(_columns(trace, "parquet")) >= _PREPARED


def _prepared(trace: str) -> Opened:
    from pyarrow import parquet

    from evenkeel.sim import Histograms

    table = parquet.read_table(trace)
    told = (table.schema.metadata or {}).get(b"evenkeel.window_seconds")
    key = (table.schema.metadata or {}).get(b"evenkeel.key", b"key").decode().split("\n")
    workload = Histograms(table, float(told) if told else 1.0)
    return Opened(workload, tuple(key), told is not None, _windows_of(workload), lambda _: {})


def _saved(opened: Opened, path: Path) -> Opened:
    """Keep the histograms in a file, and go on with them."""
    from pyarrow import parquet

    from evenkeel.sim import Histograms

    kept = opened.workload if isinstance(opened.workload, Histograms) else Histograms.of(opened.workload)
    metadata = {"evenkeel.key": "\n".join(opened.key)}
    if opened.timed:
        metadata["evenkeel.window_seconds"] = repr(kept.seconds)
    parquet.write_table(kept.table.replace_schema_metadata(metadata), path)
    return Opened(kept, opened.key, opened.timed, _windows_of(kept), opened.keys_of)


def _windows_of(workload: Histograms) -> int:
    numbers = workload.table["window"].to_numpy()
    return int(numbers.max()) + 1 if len(numbers) else 0
