"""What is shown while the demo runs: a live view on a terminal, a line per batch in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from evenkeel.dashboard.terminal import sparkline
from evenkeel.dashboard.units import as_bytes, as_count, as_ms

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from evenkeel.jobs import Progress
    from evenkeel.spark.demo import WordStream, Work

__all__ = ["View"]

_LABEL = 11  # characters of the first column
_COLOURS = ("red", "green")
_DECISIONS, _REASON_LINES = 2, 5
_OTHER_LINES = 15  # than those of channels


class View:
    """The two runs beside each other, batch by batch.

    While the second one runs, the first is shown as it was in the same batch.

    Parameters
    ----------
    console
        Where to show it.
    stream, work
        What is run.
    names
        The strategies of the two runs.
    """

    def __init__(self, console: Console, stream: WordStream, work: Work, names: tuple[str, str]) -> None:
        self.batches: dict[str, list[Progress]] = {name: [] for name in names}
        """What was added, by strategy."""
        self._console = console
        self._of, self._channels = stream.batches, work.channels
        self._title = Text(
            f"{stream.batches} batches of {stream.rows:,} words, {stream.words:,} different, Zipf {stream.skew:g}, on "
            f"{work.channels} channels; {work.word_ms:g} ms of work on each word",
            style="bold",
        )
        self._spinner, self._ended = Spinner("dots"), False
        live = console.is_terminal and not console.is_dumb_terminal
        self._live = Live(get_renderable=self.render, console=console, refresh_per_second=4) if live else None

    def __enter__(self) -> None:
        if self._live:
            self._live.start()
        else:
            self._print(self._title.plain)

    def __exit__(self, *_: object) -> None:
        self._ended = True
        if self._live:
            self._live.stop()

    def say(self, what: str) -> None:
        """Show what is being done."""
        self._spinner.update(text=Text(what, style="dim"))
        if not self._live:
            self._print(what)

    def add(self, name: str, progress: Progress) -> None:
        """Show one more batch of a run."""
        self.batches[name].append(progress)
        if self._live:
            return
        line = f"{name} batch {progress.batch + 1} of {self._of}: {progress.ms:,.0f} ms"
        first = next(iter(self.batches.values()))
        if self.batches[name] is not first:
            line += f" (before: {first[progress.batch].ms:,.0f} ms)"
        line += f", busiest {progress.imbalances[0]:.2f} times the average"
        if progress.moved_bytes:
            line += f", {as_bytes(progress.moved_bytes)} of state moved"
        if progress.choice not in {"", "stay"}:
            line += f" · {progress.choice}: {' '.join(progress.reasons)}"
        self._print(line)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)

    # -- on a terminal ----------------------------------------------------------------------------------------------

    def render(self) -> RenderableType:
        """Draw all of it, as wide and high as the terminal."""
        parts: list[RenderableType] = [self._title]
        if any(self.batches.values()):
            parts += [self._side_by_side(), *self._decisions()]
        return Group(*parts, *([] if self._ended else [self._spinner]))

    def _side_by_side(self) -> Table:
        half = (self._console.width - _LABEL - 4) // 2
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("", width=_LABEL, no_wrap=True, style="dim")
        for name, colour in zip(self.batches, _COLOURS, strict=True):
            done = len(self.batches[name])
            told = f"{name}  {done} of {self._of}" if done else f"{name}  to come"
            table.add_column(Text(told, style=f"bold {colour}"), width=half, no_wrap=True)
        room = half - 8
        runs = list(self.batches.values())
        at = (min(map(len, runs)) or max(map(len, runs))) - 1  # the batch that both are shown in
        for label, low, series in (
            ("imbalance", 1.0, [[one.imbalances[0] for one in run] for run in runs]),
            ("batch time", 0.0, [[one.ms for one in run] for run in runs]),
        ):
            high = max(max(values, default=low) for values in series)
            cells = []
            for values, colour in zip(series, _COLOURS, strict=True):
                now = values[at] if len(values) > at else None
                told = "" if now is None else as_ms(now) if label == "batch time" else f"{now:.2f}×"
                cells.append(Text.assemble((sparkline(values, room, low, high), colour), " ", told))
            table.add_row(label, *cells)
        moved = [[one.moved_bytes for one in run if one.moved_bytes] for run in runs]
        table.add_row(
            "state moved",
            *(f"{as_bytes(sum(sizes))} in {len(sizes)} batch{'es' * (len(sizes) != 1)}" for sizes in moved),
        )
        self._add_channels(table, at, room)
        return table

    def _add_channels(self, table: Table, at: int, room: int) -> None:
        """Add bars of the words that each channel had in a batch, those of both runs on one scale."""
        loads = [run[at].loads[0] if len(run) > at else () for run in self.batches.values()]
        heaviest = [max(load[channel] for load in loads if load) for channel in range(self._channels)]
        fullest = sorted(range(self._channels), key=heaviest.__getitem__, reverse=True)
        shown = sorted(fullest[: max(3, self._console.height - _OTHER_LINES)])
        which = "words per channel" if len(shown) == self._channels else f"the {len(shown)} fullest channels"
        table.add_row(f"batch {at + 1}", *(which if load else "" for load in loads))
        longest = max(*heaviest, 1)
        for channel in shown:
            cells = [
                Text.assemble(("█" * round(room * load[channel] / longest), colour), f" {as_count(load[channel])}")
                if load
                else ""
                for load, colour in zip(loads, _COLOURS, strict=True)
            ]
            table.add_row(f"channel {channel}", *cells)

    def _decisions(self) -> list[Text]:
        """The last changes, newest first: that one with all reasons, those before in a line each."""
        changes = [(name, one) for name, run in self.batches.items() for one in run if one.choice not in {"", "stay"}]
        lines: list[Text] = []
        for name, one in changes[: -_DECISIONS - 1 : -1]:
            line = Text.assemble((f"{name}, batch {one.batch + 1}: {one.choice} ", "bold"), " ".join(one.reasons))
            line.truncate(self._console.width * (1 if lines else _REASON_LINES), overflow="ellipsis")
            lines.append(line)
        return lines
