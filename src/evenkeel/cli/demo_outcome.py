"""What the demo found: figures of both runs beside what is possible, as a table, as JSON and as a page with plots."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table

from evenkeel.cli.pages import Part, write_report
from evenkeel.cli.traces import printer
from evenkeel.dashboard.units import as_bytes, as_count, as_ms
from evenkeel.metrics import summarise_latency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from evenkeel.jobs import Progress
    from evenkeel.spark.demo import WordStream, Work

__all__ = ["Figures", "Outcome"]

_BOUND, _IDEAL = "whole words, at best", "evenly, at best"


@dataclass(frozen=True, slots=True)
class Figures:
    """Throughput, batch times and imbalance (busiest channel over the average) of a run, or of what is possible."""

    words_per_second: float
    batch_ms_p50: float
    batch_ms_p95: float
    batch_ms_max: float
    imbalance_mean: float
    imbalance_max: float

    @classmethod
    def of(cls, rows: int, batch_ms: NDArray[np.float64], imbalance: NDArray[np.float64]) -> Figures:
        """Sum up batches of so many rows each."""
        times = summarise_latency(batch_ms)
        return cls(
            1000 * rows / times.mean_ms,
            times.median_ms,
            times.p95_ms,
            times.max_ms,
            float(imbalance.mean()),
            float(imbalance.max()),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Both runs, batch by batch.

    Parameters
    ----------
    stream, work
        What was run.
    before, after
        The strategies.
    runs
        The batches of each; their results were found to be exact.
    """

    stream: WordStream
    work: Work
    before: str
    after: str
    runs: Mapping[str, Sequence[Progress]]

    def series(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Give milliseconds and imbalance of each batch: of both runs, and of what is possible."""
        counts = self.stream.counts()
        ideal, bound = self.work.ideal_ms(counts), self.work.bound_ms(counts)
        runs = {
            name: (np.array([one.ms for one in run]), np.array([one.imbalances[0] for one in run]))
            for name, run in self.runs.items()
        }
        return {**runs, _BOUND: (bound, bound / ideal), _IDEAL: (ideal, np.ones(len(ideal)))}

    def figures(self) -> dict[str, Figures]:
        """Sum up each series."""
        return {name: Figures.of(self.stream.rows, *both) for name, both in self.series().items()}

    @property
    def gain(self) -> float:
        """How many times as fast the second run was."""
        found = self.figures()
        return found[self.after].words_per_second / found[self.before].words_per_second

    def as_dict(self) -> dict[str, Any]:
        """Give everything, for JSON."""
        return {
            "stream": asdict(self.stream),
            "work": asdict(self.work),
            "before": self.before,
            "after": self.after,
            "gain": self.gain,
            "figures": {
                {_BOUND: "bound", _IDEAL: "ideal"}.get(name, name): asdict(found)
                for name, found in self.figures().items()
            },
            "words_counted": int(self.stream.counts().sum()),
            "results_exact": True,  # or the run would have ended with an error
            "batches": {name: [one.to_json() for one in run] for name, run in self.runs.items()},
        }

    def sentences(self) -> list[str]:
        """Say what was found, and what it means."""
        counts = self.stream.counts()
        hottest = self.work.channels * float((counts.max(axis=1) / counts.sum(axis=1)).max())
        moved = [one for one in self.runs[self.after] if one.moved_bytes]
        size = as_bytes(sum(one.moved_bytes for one in moved))
        parts = [
            f"{self.after} was {self.gain:.2f} times as fast as {self.before}, on the same {counts.sum():,} words.",
            "Every count after every batch is exact, in both runs.",
            f"{self.after} moved {size} of state, in {len(moved)} of {self.stream.batches} batches.",
            f"The hottest word alone is up to {hottest:.2f} times a channel's share: above 1, it bounds whole words.",
            "Both bounds are the work alone, without Spark's own time for a batch.",
            f"The work on a word is to wait {self.work.word_ms:g} ms, so that channels need no core each.",
        ]
        if self.stream.drift:
            parts.append("Which words are popular changes from batch to batch; it is seen only when a batch is done.")
        return parts

    # -- on the terminal --------------------------------------------------------------------------------------------

    def show(self, report: Path | None) -> None:
        """Print the summary."""
        out = printer()
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("")
        found = self.figures()
        for name, colour in zip(found, ("red", "green", "", ""), strict=True):
            table.add_column(name, justify="right", style=colour)
        for label, told in (
            ("words per second", [as_count(one.words_per_second) for one in found.values()]),
            ("batch time, median", [as_ms(one.batch_ms_p50) for one in found.values()]),
            ("batch time, 95 %", [as_ms(one.batch_ms_p95) for one in found.values()]),
            ("batch time, longest", [as_ms(one.batch_ms_max) for one in found.values()]),
            ("busiest over average, mean", [f"{one.imbalance_mean:.2f}×" for one in found.values()]),
            ("busiest over average, worst", [f"{one.imbalance_max:.2f}×" for one in found.values()]),
        ):
            table.add_row(label, *told)
        out.print(table)
        for words in self.sentences():
            out.print(words, markup=False, highlight=False, soft_wrap=True)
        missing = "No report was written: plots need Matplotlib; install it with: pip install 'evenkeel[report]'"
        out.print(f"The report is in {report}." if report else missing, markup=False, highlight=False, soft_wrap=True)

    # -- as a page --------------------------------------------------------------------------------------------------

    def write(self, path: Path) -> None:
        """Write the page."""
        import pyarrow as pa

        from evenkeel.report import Panel, draw

        times = draw(
            self._by_batch(),
            [
                Panel(x="batch", y="seconds", title="Batch time"),
                Panel(x="batch", y="busiest over average", title="Imbalance"),
            ],
        )
        loads = draw(
            self._by_channel(),
            [
                Panel(x="channel", y="words", kind="bars", title=f"Batch {batch + 1}", where={"batch": batch})
                for batch in (0, self.stream.batches - 1)
            ],
        )
        rows = [
            {
                "": name,
                "words/s": found.words_per_second,
                "median ms": found.batch_ms_p50,
                "95 % ms": found.batch_ms_p95,
                "longest ms": found.batch_ms_max,
                "busiest over average": found.imbalance_mean,
                "worst": found.imbalance_max,
            }
            for name, found in self.figures().items()
        ]
        decided = [
            {"batch": one.batch + 1, "decision": one.choice, "why": " ".join(one.reasons)}
            for one in self.runs[self.after]
            if one.choice
        ]
        parts = [
            Part("Summary", self.sentences(), table=pa.Table.from_pylist(rows)),
            Part("Batch by batch", figure=times),
            Part("Words per channel, in the first batch and in the last", figure=loads),
        ]
        if decided:
            parts.append(Part(f"What {self.after} decided after each batch", table=pa.Table.from_pylist(decided)))
        stream = self.stream
        introduction = (
            f"{stream.batches} batches of {stream.rows:,} words, {stream.words:,} different, Zipf {stream.skew:g}, "
            f"seed {stream.seed}, on {self.work.channels} channels."
        )
        write_report(path, f"{self.after} beside {self.before}", introduction, parts)

    def _by_batch(self) -> pa.Table:
        import pyarrow as pa

        rows = [
            {"batch": batch + 1, "strategy": name, "seconds": ms / 1000, "busiest over average": imbalance}
            for name, (times, imbalances) in self.series().items()
            for batch, (ms, imbalance) in enumerate(zip(times.tolist(), imbalances.tolist(), strict=True))
        ]
        return pa.Table.from_pylist(rows)

    def _by_channel(self) -> pa.Table:
        import pyarrow as pa

        rows = [
            {"batch": one.batch, "channel": channel, "strategy": name, "words": words}
            for name, run in self.runs.items()
            for one in run
            for channel, words in enumerate(one.loads[0])
        ]
        return pa.Table.from_pylist(rows)
