"""Run the benchmarks and write what they found as JSON and Markdown."""

from __future__ import annotations

import importlib
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

MODULES = [
    *("hashing", "routing", "sketches", "planning", "pareto", "optimum", "state", "sim", "operators"),
    *("engine", "skew", "applications", "repartition", "footprint", "recovery", "peers", "breakdown"),
]
RESULTS = Path(__file__).parent / "results"


def main(
    only: Annotated[list[str] | None, typer.Argument(help=f"Which: {', '.join(MODULES)}; all by default.")] = None,
    quick: Annotated[bool, typer.Option(help="A first look in ten minutes: some cases, smaller inputs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure ratios against peers and limits, in one run, on one core."""
    unknown = set(only or []) - set(MODULES)
    if unknown:
        typer.echo(
            f"error: no benchmark called {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}.", err=True
        )
        raise typer.Exit(2)
    _stay_on_one_core()
    progress = Console(stderr=True)
    report = {"machine": _machine(), "quick": quick, "results": {}}
    for name in only or MODULES:
        with progress.status(f"Measuring {name} …"):
            started = time.perf_counter()
            report["results"][name] = importlib.import_module(f"benchmarks.{name}").run(quick)
        progress.print(f"{name}: {time.perf_counter() - started:.0f} s")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "latest.json").write_text(json.dumps(report, indent=2, default=float))
        (RESULTS / "latest.md").write_text(_markdown(report))
    if as_json:
        typer.echo(json.dumps(report, default=float))
        return
    for name, rows in report["results"].items():
        Console(width=160).print(_table(name, rows))
    missed = [row["what"] for rows in report["results"].values() for row in rows if row.get("met") is False]
    Console().print(
        f"Targets missed: {', '.join(missed) if missed else 'none'}. Written to {RESULTS}/latest.{{json,md}}"
    )


def _stay_on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _machine() -> dict[str, object]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {
            name: version(name)
            for name in ("pyspark", "numpy", "numba", "pyarrow", "lmdb", "scipy", "datasketches", "evenkeel")
        },
        "commit": commit.stdout.strip() or "unknown",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


COLUMNS = ["what", "value", "unit", "target", "met", "ratio", "peer", "repeats", "spread"]


def _cells(row: dict[str, object]) -> list[str]:
    cells = []
    for column in COLUMNS:
        value = row.get(column)
        if column == "spread" and value is not None:
            cells.append(f"{value:.0%}")
        elif isinstance(value, bool):
            cells.append("yes" if value else "NO")
        else:
            cells.append(f"{value:.4g}" if isinstance(value, (int, float)) else str(value or ""))
    return cells


def _table(name: str, rows: list[dict[str, object]]) -> Table:
    table = Table(title=name)
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in {"value", "ratio", "repeats", "spread"} else "left")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _markdown(report: dict[str, object]) -> str:
    lines = [f"Machine: `{json.dumps(report['machine'])}`", ""]
    for name, rows in report["results"].items():
        lines += [f"## {name}", "", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
        lines += ["| " + " | ".join(_cells(row)) + " |" for row in rows]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(typer.run(main))
