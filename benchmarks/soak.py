"""A long run under steady load with drift, plans and resizes: what grows that should not.

``python -m benchmarks.soak --minutes 60``. Hot keys change every minute or so, the load halves and doubles again, and
so does the number of channels. Memory of the processes, batch times, and the files of the checkpoint and of the
working copies are sampled; what grows is named. Writes ``soak.json`` and ``soak.png`` beside the other results.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.engine import COUNT_AND_SUM
from benchmarks.measure import descendants, own_mb
from benchmarks.spark_peers import Workplace, discard, session
from evenkeel.control import Controller, ControlOptions, Elasticity, WindowOptions
from evenkeel.planning import make_planner
from evenkeel.report.plots import Panel, draw, to_png

RESULTS = Path(__file__).parent / "results"
ROWS, KEYS = 20_000, 100_000
DRIFT_BATCHES, PHASE_BATCHES = 50, 30
TOLERANCE = 0.1
"""How much of its median a series may grow by over the whole run, as a share."""
SETTLED_BATCHES = 400
"""Spark keeps the log of 100 batches, and memory and state fill up at first: before this many, all grows."""
MEMORY = ["driver JVM", "driver Python", "workers"]
FOLDERS = ["checkpoint", "Spark's own log", "working copies"]
UNITS = ["files", "MB"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one series: from about where to where it went, and whether that is flat."""

    what: str
    unit: str
    median: float
    growth: float
    flat: bool


def flat(what: str, unit: str, minutes: list[float], values: list[float]) -> Verdict:
    """Judge by the line of least squares, without the first tenth of the time."""
    at, seen = np.array(minutes), np.array(values)
    counted = at >= at[0] + (at[-1] - at[0]) / 10
    slope = np.polyfit(at[counted], seen[counted], 1)[0]
    middle = float(np.median(seen[counted]))
    growth = float(slope * (at[-1] - at[0]) / middle)
    return Verdict(what, unit, middle, growth, growth <= TOLERANCE)


def bounded(what: str, unit: str, minutes: list[float], values: list[float]) -> Verdict:
    """Judge what is cleaned up now and then: the most there was in the last quarter, and in the one before."""
    at, seen = np.array(minutes), np.array(values)
    half, last = at[0] + (at[-1] - at[0]) / 2, at[0] + 3 * (at[-1] - at[0]) / 4
    before, after = seen[(at >= half) & (at < last)].max(), seen[at >= last].max()
    growth = float(after / before - 1)
    return Verdict(what, unit, float(after), growth, growth <= TOLERANCE)


def words(spark):
    """An endless stream by a Zipf law: other hot words from time to time, and calm spells with half the rows."""
    batch = f"floor(value / {ROWS})"
    uniform = "pmod(xxhash64(value), 1073741824) / 1073741824.0"
    rank = f"floor(exp({uniform} * ln({KEYS})))"
    shift = f"7919 * floor({batch} / {DRIFT_BATCHES})"
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    lively = rows.where(f"pmod(value, 2) = 0 OR pmod(floor({batch} / {PHASE_BATCHES}), 2) = 1")
    return lively.selectExpr(f"CAST(pmod({rank} + {shift}, {KEYS}) AS STRING) AS word", "pmod(value, 100) AS value")


def files(folder: Path, *, without: Path | None = None) -> tuple[int, float]:
    """How many files there are, and megabytes of them; those that vanish meanwhile do not count."""
    count, size = 0, 0
    for path in folder.rglob("*"):
        if without is not None and path.is_relative_to(without):
            continue
        try:
            if path.is_file():
                count, size = count + 1, size + 512 * path.stat().st_blocks
        except OSError:
            continue
    return count, size / 1e6


class Sampler:
    """Looks at a running query from time to time."""

    def __init__(self, query, checkpoint: str, local: str) -> None:
        from pyspark import SparkContext

        self.query, self.checkpoint, self.local = query, Path(checkpoint), Path(local)
        self.jvm = SparkContext._active_spark_context._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001
        self.started = time.monotonic()
        self.samples: list[dict[str, float]] = []
        self.batches: dict[int, dict[str, float]] = {}

    @property
    def minutes(self) -> float:
        """Since the query started."""
        return (time.monotonic() - self.started) / 60

    def look(self) -> None:
        """Take one sample of everything."""
        log = self.checkpoint / "spark"
        workers = descendants(self.jvm)
        sizes = [files(self.checkpoint, without=log), files(log), files(self.local)]
        sample = {"minutes": self.minutes, "channels": self.query.table.channels}
        sample |= dict(zip(MEMORY, (own_mb(self.jvm), own_mb(os.getpid()), own_mb(*workers)), strict=True))
        for name, (count, size) in zip(FOLDERS, sizes, strict=True):
            sample |= {f"{name}, files": count, f"{name}, MB": size}
        self.samples.append(sample)
        for batch in self.query.history:
            moved = sum(report["imported_bytes"] for report in batch["reports"][0])
            self.batches.setdefault(
                batch["batch"], {"minutes": self.minutes, "ms": batch["ms"], "moved_bytes": float(moved)}
            )

    def verdicts(self) -> list[Verdict]:
        """Judge every series."""
        minutes = [sample["minutes"] for sample in self.samples]

        def series(name: str) -> list[float]:
            return [sample[name] for sample in self.samples]

        batches = list(self.batches.values())[1:]  # the first one starts workers
        at, took = [batch["minutes"] for batch in batches], [batch["ms"] for batch in batches]
        found = [flat(f"memory of {name}", "MB", minutes, series(name)) for name in MEMORY]
        found.append(flat("batch time", "ms", at, took))
        kinds = [(f"{name}, {unit}", unit) for name in FOLDERS for unit in UNITS]
        return found + [bounded(what, unit, minutes, series(what)) for what, unit in kinds]

    def picture(self) -> bytes:
        """Draw every series."""
        rows = []
        for sample in self.samples:
            rows += [(sample["minutes"], "memory", name, sample[name]) for name in MEMORY]
            rows += [(sample["minutes"], unit, name, sample[f"{name}, {unit}"]) for name in FOLDERS for unit in UNITS]
            rows.append((sample["minutes"], "channels", "channels", sample["channels"]))
        rows += [(batch["minutes"], "ms", "batch time", batch["ms"]) for batch in self.batches.values()]
        names = ("minutes", "panel", "series", "value")
        table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        labels = {
            "memory": "MB of memory",
            "ms": "ms per batch",
            "files": "files",
            "MB": "MB on disk",
            "channels": "channels",
        }
        panels = [
            Panel(x="minutes", y="value", by="series", where={"panel": panel}, y_label=label)
            for panel, label in {**labels, "channels": "channels"}.items()
        ]
        return to_png(draw(table, panels))


def main(
    minutes: Annotated[float, typer.Option(min=0.5, help="How long to run.")] = 60,
    cores: Annotated[int, typer.Option(min=1, help="Cores of the local Spark.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Run a balanced query for a while, and say what grows."""
    from evenkeel.spark.api import stream

    options = ControlOptions(
        windows=WindowOptions(batches=3), elasticity=Elasticity.around(ROWS / 8, slack=0.2, max_channels=16)
    )
    place = Workplace(files=1)
    checkpoint, local = place.fresh("checkpoint"), place.fresh("local")
    with session(cores, 2, memory="1g") as spark:
        flow = stream(words(spark), key="word").apply(
            COUNT_AND_SUM, strategy=Controller(make_planner("keel"), options), channels=8, combine=False
        )
        query = flow.start(
            discard, checkpoint=checkpoint, local_directory=local, trigger={"processingTime": "500 milliseconds"}
        )
        sampler = Sampler(query, checkpoint, local)
        try:
            _watch(sampler, minutes, quiet=as_json)
        finally:
            query.stop()
        choices = [decision.choice.value for decision in query.decisions]
    place.remove()
    verdicts = sampler.verdicts()
    report = {
        "minutes": sampler.minutes,
        "batches": len(sampler.batches),
        "settled": len(sampler.batches) >= SETTLED_BATCHES,
        "batches that moved state": sum(batch["moved_bytes"] > 0 for batch in sampler.batches.values()),
        "last decisions": {choice: choices.count(choice) for choice in sorted(set(choices))},
        "numbers of channels": sorted({sample["channels"] for sample in sampler.samples}),
        "median batch ms": median(batch["ms"] for batch in sampler.batches.values()),
        "verdicts": [asdict(verdict) for verdict in verdicts],
        "samples": sampler.samples,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "soak.json").write_text(json.dumps(report, indent=2))
    (RESULTS / "soak.png").write_bytes(sampler.picture())
    _show(report, verdicts, as_json=as_json)
    raise typer.Exit(1 if report["settled"] and not all(verdict.flat for verdict in verdicts) else 0)


def _watch(sampler: Sampler, minutes: float, *, quiet: bool) -> None:
    every = max(1.0, 60 * minutes / 600)
    columns = (*Progress.get_default_columns(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
    with Progress(*columns, console=Console(stderr=True, quiet=quiet)) as progress:
        task = progress.add_task("Running", total=minutes, now="")
        while sampler.minutes < minutes:
            if sampler.query.await_termination(int(every)):
                break
            sampler.look()
            progress.update(task, completed=sampler.minutes, now=f"{len(sampler.batches)} batches")


def _show(report: dict, verdicts: list[Verdict], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report))
        return
    table = Table(title=f"{report['minutes']:.0f} minutes, {report['batches']} batches")
    for name, side in (("what", "left"), ("median or most", "right"), ("growth", "right"), ("verdict", "left")):
        table.add_column(name, justify=side)
    for verdict in verdicts:
        grows = "GROWS" if report["settled"] else "too early to say"
        said = "flat" if verdict.flat else grows
        table.add_row(verdict.what, f"{verdict.median:.4g} {verdict.unit}", f"{verdict.growth:+.1%}", said)
    Console().print(table)
    if not report["settled"]:
        Console().print(f"{SETTLED_BATCHES} batches are needed to tell growth from filling up; run it for longer.")
    Console().print(f"Written to {RESULTS}/soak.{{json,png}}")


if __name__ == "__main__":
    sys.exit(typer.run(main))
