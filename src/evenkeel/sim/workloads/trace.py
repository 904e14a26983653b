"""Real streams, read from files in chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.hashing import hash_keys, mix64
from evenkeel.sim.window import Histogram, Tuples, Window
from evenkeel.sim.workloads.base import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Trace"]

_ENDINGS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "lines", ".edges": "edges"}
_BLOCK = 1 << 22  # bytes of text read at once


@dataclass(frozen=True)
class Trace(Workload):
    r"""A stream in files: any column is the key, any the time, any says the source.

    Read in chunks, in the files' order; what is in memory is one window (8 bytes per tuple, 24 with times and sources),
    or the whole stream if it is to be shuffled. A tuple that is older than the window which is open belongs to that
    window.

    Parameters
    ----------
    path
        A file, or a folder of Parquet or CSV files; text may be compressed (``.gz``, ``.bz2``, …).
    key
        The key's column, or several for a composite key.
    time
        The column of times: timestamps, or numbers in seconds.
    source
        The column that says who sends a tuple: hashed to one of ``source_count`` sources, as key grouping would.
    source_count
        How many sources there are, where ``source`` is given.
    window_seconds
        Cut windows by time, from the first tuple's on; windows without tuples are given, too.
    window_tuples
        Or cut them by number of tuples.
    format
        ``"parquet"``, ``"csv"``, ``"lines"`` (column ``line``), ``"words"`` (the words of lines, column ``word``) or
        ``"edges"`` (columns ``src`` and ``dst``, numbers set apart by blanks; lines that start with # are left out). By
        the file's ending by default.
    shuffle_seed
        Give the tuples in random order. They are all read into memory first, and lose their times.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "graph.edges")
    ...     _ = file.write_text("# src dst\n1 2\n1 3\n2 3\n")
    ...     graph = Trace(file, key="dst", source="src", source_count=2, window_tuples=2)
    ...     [window.size for window in graph.windows()]
    [2, 1]
    """

    name = "trace"

    path: str | Path
    key: str | tuple[str, ...] = "key"
    time: str | None = None
    source: str | None = None
    source_count: int = 1
    window_seconds: float | None = None
    window_tuples: int | None = None
    format: Literal["parquet", "csv", "lines", "words", "edges"] | None = None
    shuffle_seed: int | None = None

    def __post_init__(self) -> None:
        if (self.window_seconds is None) == (self.window_tuples is None):
            raise InvalidArgumentError("Cut windows either by window_seconds or by window_tuples.")
        if self.window_seconds is not None:
            if self.time is None or self.shuffle_seed is not None:
                raise InvalidArgumentError(
                    "window_seconds needs a column of times, and tuples in their order; use window_tuples without."
                )
            if not (math.isfinite(self.window_seconds) and self.window_seconds > 0):
                raise InvalidArgumentError(f"window_seconds must be finite and above 0; got {self.window_seconds}.")
        elif self.window_tuples is not None and self.window_tuples < 1:
            raise InvalidArgumentError(f"window_tuples must be at least 1; got {self.window_tuples}.")
        if self.source_count < 1 or (self.source is None and self.source_count != 1):
            raise InvalidArgumentError("source_count must be at least 1, and goes with a column source.")
        if self.format is None:
            object.__setattr__(self, "format", _format_of(Path(self.path)))

    @property
    def sources(self) -> int:
        """How many sources there are."""
        return self.source_count

    def windows(self) -> Iterator[Window]:
        """Read the stream and cut it."""
        chunks = self._chunks() if self.shuffle_seed is None else iter([self._shuffled(self.shuffle_seed)])
        cut = self._cut_by_tuples if self.window_tuples is not None else self._cut_by_time
        return cut(chunks)

    # -- reading ----------------------------------------------------------------------------------------------------

    def _chunks(self) -> Iterator[Tuples]:
        keys = (self.key,) if isinstance(self.key, str) else self.key
        wanted = list(dict.fromkeys([*keys, *(column for column in (self.time, self.source) if column)]))
        for batch in self._batches(wanted):
            if batch.num_rows == 0:
                continue
            sources = None
            if self.source is not None:
                mixed = mix64(hash_keys(batch[self.source]).view(np.uint64))
                sources = (mixed % np.uint64(self.source_count)).astype(np.int64)
            times = None if self.time is None else _seconds(batch[self.time], self.time)
            yield Tuples(hash_keys(*(batch[key] for key in keys)), None, times, sources)

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        if self.format in {"parquet", "csv"}:
            import pyarrow.dataset as ds
            from pyarrow import csv

            kind: Any = self.format
            if self.format == "csv" and ".tsv" in Path(self.path).suffixes:
                kind = ds.CsvFileFormat(csv.ParseOptions(delimiter="\t"))
            found = ds.dataset(self.path, format=kind)
            _check_columns(wanted, found.schema.names)
            yield from found.to_batches(columns=wanted)
            return
        for lines in _lines(self.path):
            table = _parsed(lines, self.format)
            _check_columns(wanted, table.column_names)
            yield from table.select(wanted).to_batches()

    def _shuffled(self, seed: int) -> Tuples:
        parts = list(self._chunks())
        if not parts:
            return Tuples(np.empty(0, np.int64))
        whole = _joined(parts)
        order = np.random.default_rng(seed).permutation(len(whole))
        return Tuples(whole.hashes[order], None, None, None if whole.sources is None else whole.sources[order])

    # -- cutting ----------------------------------------------------------------------------------------------------

    def _cut_by_tuples(self, chunks: Iterator[Tuples]) -> Iterator[Window]:
        assert self.window_tuples is not None
        number, open_parts, room = 0, list[Tuples](), self.window_tuples
        for chunk in chunks:
            done = 0
            while done < len(chunk):
                part = _slice(chunk, done, done + room)
                open_parts.append(part)
                done, room = done + len(part), room - len(part)
                if room == 0:
                    yield ReadWindow(number, 1.0, float(number), open_parts)
                    number, open_parts, room = number + 1, [], self.window_tuples
        if open_parts:
            yield ReadWindow(number, 1.0, float(number), open_parts)

    def _cut_by_time(self, chunks: Iterator[Tuples]) -> Iterator[Window]:
        assert self.window_seconds is not None
        number, open_parts, began = 0, list[Tuples](), None
        for chunk in chunks:
            assert chunk.times is not None
            began = float(chunk.times[0]) if began is None else began
            windows = np.floor((chunk.times - began) / self.window_seconds).astype(np.int64)
            windows = np.maximum(np.maximum.accumulate(windows), number)  # never back
            since = Tuples(chunk.hashes, None, chunk.times - began, chunk.sources)
            edges = np.flatnonzero(np.diff(windows)) + 1
            for low, high in zip([0, *edges.tolist()], [*edges.tolist(), len(windows)], strict=True):
                while number < windows[low]:
                    yield self._window(number, open_parts)
                    number, open_parts = number + 1, []
                open_parts.append(_slice(since, low, high))
        if open_parts:
            yield self._window(number, open_parts)

    def _window(self, number: int, parts: list[Tuples]) -> Window:
        assert self.window_seconds is not None
        return ReadWindow(number, self.window_seconds, number * self.window_seconds, parts)


class ReadWindow(Window):
    """A window whose tuples were read and are in memory."""

    def __init__(self, number: int, seconds: float, start: float, parts: list[Tuples]) -> None:
        self.number, self.seconds, self.start, self._parts = number, seconds, start, parts

    @property
    def size(self) -> int:
        """How many tuples there are."""
        return sum(len(part) for part in self._parts)

    def histogram(self) -> Histogram:
        """Count the tuples of each key; sorts them."""
        return Histogram.of(np.concatenate([np.empty(0, np.int64), *(part.hashes for part in self._parts)]))

    def tuples(self, *, full: bool = False) -> Iterator[Tuples]:  # noqa: ARG002  known or not, they are in the trace
        """Give the tuples as they were read."""
        return iter(self._parts)


def _format_of(path: Path) -> str:
    if path.is_dir():
        return "parquet"
    for ending in reversed(path.suffixes):
        if ending in _ENDINGS:
            return _ENDINGS[ending]
    raise InvalidArgumentError(
        f"The ending of {path.name} says nothing about its format; pass format='parquet', 'csv', 'lines', 'words' or "
        "'edges'."
    )


def _lines(path: str | Path) -> Iterator[Any]:
    """The lines of a text as Arrow strings, chunk by chunk."""
    from pyarrow import csv

    # One column: no line of text has the character that is taken for the delimiter.
    options = csv.ParseOptions(delimiter="\x01", quote_char=False, escape_char=False)
    with pa.input_stream(str(path), compression="detect") as stream:
        if not stream.read(1):
            return
    convert = csv.ConvertOptions(column_types={"line": pa.string()}, strings_can_be_null=False)
    read = csv.ReadOptions(column_names=["line"], block_size=_BLOCK)
    with (
        pa.input_stream(str(path), compression="detect") as stream,
        csv.open_csv(stream, read, options, convert) as csvs,
    ):
        for batch in csvs:
            yield batch["line"]


def _parsed(lines: Any, kind: str | None) -> pa.Table:
    if kind == "lines":
        return pa.table({"line": lines})
    if kind == "words":
        words = pc.list_flatten(pc.utf8_split_whitespace(lines))
        return pa.table({"word": words.filter(pc.not_equal(words, ""))})
    edges = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(lines.filter(pc.invert(pc.starts_with(lines, "#")))))
    try:
        ends = [pc.list_element(edges, place).cast(pa.int64()) for place in (0, 1)]
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(f"An edge list has two numbers on each line: {error}") from error
    return pa.table(dict(zip(("src", "dst"), ends, strict=True)))


def _seconds(column: Any, name: str) -> NDArray[np.float64]:
    if column.null_count:
        raise InvalidArgumentError(f"The column {name} has nulls; cut such a trace by window_tuples, without a time.")
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64()).to_numpy() / 1e6
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidArgumentError(f"The column {name} holds neither timestamps nor numbers: {error}") from error


def _check_columns(wanted: list[str], known: list[str]) -> None:
    for column in wanted:
        if column not in known:
            raise UnknownNameError("column", column, known)


def _slice(tuples: Tuples, low: int, high: int) -> Tuples:
    times, sources = tuples.times, tuples.sources
    return Tuples(
        tuples.hashes[low:high],
        None,
        None if times is None else times[low:high],
        None if sources is None else sources[low:high],
    )


def _joined(parts: list[Tuples]) -> Tuples:
    sources = None
    if parts[0].sources is not None:
        sources = np.concatenate([part.sources for part in parts if part.sources is not None])
    return Tuples(np.concatenate([part.hashes for part in parts]), None, None, sources)
