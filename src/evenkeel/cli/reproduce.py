"""``evenkeel reproduce``: the papers' tables and figures, measured again, with a verdict on each."""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from evenkeel.errors import EvenkeelError, UnknownNameError

if TYPE_CHECKING:
    from types import ModuleType

    from evenkeel.report import Section

__all__ = ["reproduce"]

SCALES = ("small", "full")
COLOURS = {"holds": "green", "differs": "yellow", "failed": "red", "skipped": "dim"}
OUTCOMES = {"holds": "hold", "differs": "differ in some statement", "failed": "failed", "skipped": "were not run"}
DEFAULT_OUTPUT = Path("reproduction")


def reproduce(
    paper: Annotated[str, typer.Argument(help="elb-clb, gedik, dlb-cep, pkg, ftlb, or all.")],
    only: Annotated[str | None, typer.Option(help="Just one table or figure, such as fig4 or table1.")] = None,
    scale: Annotated[
        str, typer.Option(help="small (seconds each) or full (the paper's size, as far as it can be).")
    ] = "small",
    as_json: Annotated[bool, typer.Option("--json", help="Print findings and rows as JSON; write no report.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Where to write report.html, report.md, plots and data [default: reproduction].")
    ] = None,
) -> None:
    """Measure the tables and figures of a paper again, say which claims hold, and write a report.

    A claim that does not hold is a finding, not an error: the command fails only where an experiment could not be run.
    """
    if scale not in SCALES:
        raise UnknownNameError("scale", scale, SCALES)
    entries = load_registry().find(paper, only)
    folder = output if as_json else output or DEFAULT_OUTPUT
    runs = _run_all(entries, scale, plots=folder is not None)
    if folder is not None:
        _write(folder, runs, scale)
    if as_json:
        typer.echo(json.dumps([_as_json(run) for run in runs], allow_nan=False))
    else:
        _show(runs, folder)
    if any(run["word"] == "failed" for run in runs):
        raise typer.Exit(1)


def load_registry() -> ModuleType:
    """Import the experiments of the checkout that the command is run in, or that it is installed from."""
    roots = [Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[3]]
    root = next((root for root in roots if (root / "experiments" / "registry.py").is_file()), None)
    if root is None:
        raise EvenkeelError(
            "The experiments are not part of the installed package; run the command in a checkout of the repository, "
            f"whose folder 'experiments' was not found in {Path.cwd()} or above."
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return importlib.import_module("experiments.registry")


def _run_all(entries: list[Any], scale: str, *, plots: bool) -> list[dict[str, Any]]:
    """Run one after the other, with a bar on a terminal and with lines in a log."""
    runs = []
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(entries))
        for number, entry in enumerate(entries, 1):
            progress.update(task, description=f"{entry.paper} {entry.name}")
            run = _run(entry, scale, plots=plots)
            runs.append(run)
            progress.advance(task)
            if not console.is_terminal:
                took = f" in {run['result'].seconds:.1f} s" if run["result"] else ""
                line = f"{number}/{len(entries)} {entry.paper} {entry.name}: {run['word']}{took}"
                console.print(line, highlight=False, soft_wrap=True)
    return runs


def _run(entry: Any, scale: str, *, plots: bool) -> dict[str, Any]:
    experiment = entry.experiment
    run = {"entry": entry, "result": None, "verdict": None, "figure": None, "why": ""}
    missing = experiment.missing()
    if missing:
        return run | {"word": "skipped", "why": f"Not run: it needs {' and '.join(missing)}."}
    try:
        result = experiment.run(scale)
        verdict = experiment.check(result)
        figure = experiment.plot(result) if plots else None
    except EvenkeelError as error:
        return run | {"word": "failed", "why": str(error)}
    return run | {"word": verdict.word, "result": result, "verdict": verdict, "figure": figure}


def _write(folder: Path, runs: list[dict[str, Any]], scale: str) -> None:
    """Write the page, the Markdown, and a picture and the rows of each experiment."""
    from pyarrow import csv

    import evenkeel
    from evenkeel.report import Document, to_png

    try:
        for part in ("plots", "data"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        sections = []
        for run in runs:
            sections.append(_section(run))
            if run["result"] is not None:
                (folder / _picture(run)).write_bytes(to_png(run["figure"]))
                csv.write_csv(run["result"].table, folder / "data" / f"{_file(run)}.csv")
        counted = {words: sum(run["word"] == word for run in runs) for word, words in OUTCOMES.items()}
        told = ", ".join(f"{number} {words}" for words, number in counted.items() if number)
        document = Document(
            "What the papers claim, measured again",
            f"{len(runs)} tables and figures of the papers that Evenkeel {evenkeel.__version__} implements, at {scale} "
            f"scale: {told}. A claim holds if every statement taken from it does, within the tolerance told beside it; "
            f"where it differs, the reason is told where it is known.",
            tuple(sections),
        )
        (folder / "report.html").write_text(document.html(), encoding="utf-8")
        (folder / "report.md").write_text(document.markdown(), encoding="utf-8")
    except OSError as error:
        raise EvenkeelError(f"The report cannot be written to {folder}: {error.strerror or error}.") from error


def _section(run: dict[str, Any]) -> Section:
    from evenkeel.report import Section, to_svg

    entry, result = run["entry"], run["result"]
    experiment = entry.experiment
    described = {
        "name": f"{entry.paper}/{entry.name}",
        "group": importlib.import_module("experiments.registry").PAPERS[entry.paper],
        "title": experiment.title,
        "claim": experiment.claim,
        "setup": experiment.setup,
    }
    if result is None:
        return Section(**described, missing=run["word"], why=run["why"])
    settings = ", ".join(f"{name} = {value}" for name, value in result.settings.items())
    return Section(
        **described,
        verdict=run["verdict"],
        table=experiment.digest(result.table),
        svg=to_svg(run["figure"], described["name"]),
        picture=_picture(run),
        remark=experiment.remark,
        facts={
            "scale": result.scale,
            "settings": settings,
            "EVENKEEL_DATA": "set" if os.environ.get("EVENKEEL_DATA") else "not set",
            "took": f"{result.seconds:.1f} s",
        },
    )


def _file(run: dict[str, Any]) -> str:
    return f"{run['entry'].paper}-{run['entry'].name}"


def _picture(run: dict[str, Any]) -> str:
    return f"plots/{_file(run)}.png"


def _as_json(run: dict[str, Any]) -> dict[str, Any]:
    entry, result, verdict = run["entry"], run["result"], run["verdict"]
    told = {"paper": entry.paper, "name": entry.name, "title": entry.experiment.title, "verdict": run["word"]}
    if result is None:
        return told | {"why": run["why"]}
    rows = [{name: _finite(value) for name, value in row.items()} for row in result.table.to_pylist()]
    return told | {
        "scale": result.scale,
        "seconds": round(result.seconds, 3),
        "findings": [finding.as_dict() for finding in verdict.findings],
        "rows": rows,
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(runs: list[dict[str, Any]], folder: Path | None) -> None:
    out = Console()
    table = Table(title="What the papers claim, measured again")
    for column in ("paper", "what", "about", "verdict", ""):
        table.add_column(column)
    for run in runs:
        entry = run["entry"]
        colour = COLOURS[run["word"]]
        score = run["verdict"].score if run["verdict"] else ""
        table.add_row(entry.paper, entry.name, escape(entry.experiment.title), f"[{colour}]{run['word']}[/]", score)
    out.print(table)
    for run in runs:
        where = f"{run['entry'].paper} {run['entry'].name}"
        if run["why"]:
            out.print(f"{where}: {run['why']}", markup=False, highlight=False, soft_wrap=True)
        for finding in run["verdict"].findings if run["verdict"] else ():
            if not finding.holds:
                told = f"{where} differs: {finding.says}: {finding.measured} (allowed: {finding.allowed})"
                out.print(told, markup=False, highlight=False, soft_wrap=True)
    if folder is not None:
        out.print(
            f"The report is in {folder / 'report.html'} and {folder / 'report.md'}.", highlight=False, soft_wrap=True
        )
