"""``evenkeel simulate``: strategies compared on a trace, without a cluster."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from evenkeel.cli import traces
from evenkeel.cli.pages import Part, check_report, write_report
from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from evenkeel.sim import Controlled, Planned, Replay, Routed

__all__ = ["simulate"]

_AS_EVEN = 1.005  # of the most even strategy: drawn as good as it


def simulate(
    trace: traces.TracePath,
    key: traces.KeyColumns = None,
    time: traces.TimeColumn = None,
    strategies: Annotated[
        str, typer.Option(help="Routers and planners by name, such as key_grouping,pkg,keel.")
    ] = "key_grouping,keel,pkg",
    channels: Annotated[str, typer.Option(help="How many channels; several numbers are tried one by one.")] = "8",
    controlled: Annotated[
        bool,
        typer.Option("--controlled", help="Let planners suggest and the controller decide, as on Spark."),
    ] = False,
    rate: traces.Rate = None,
    state_bytes: traces.StateBytes = 100.0,
    window_seconds: traces.WindowSeconds = None,
    window_tuples: traces.WindowTuples = None,
    windows: Annotated[int | None, typer.Option(min=1, help="Only the first so many windows.")] = None,
    form: traces.TraceFormat = None,
    spark: traces.OnSpark = False,
    save: traces.SaveTo = None,
    report: traces.ReportTo = None,
    as_json: traces.AsJson = False,
) -> None:
    """Send a trace through several strategies, and compare balance, moved state, tables and plans.

    Planners are asked after every window and obeyed, unless --controlled.
    """
    check_report(report)
    numbers = _numbers(channels)
    chosen = {name: _strategy(name, controlled) for name in traces.split_names(strategies)}
    with traces.watching(quiet=as_json) as tell:
        opened = traces.open_trace(
            trace,
            key,
            time=time,
            form=form,
            window_seconds=window_seconds,
            window_tuples=window_tuples,
            spark=spark,
            save=save,
            status=lambda what: tell(what, 0, None),
        )
        known = opened.windows if windows is None or opened.windows is None else min(windows, opened.windows)
        done = {}
        for number in numbers:

            def passed(window: int, number: int = number) -> None:
                tell(f"{number} channels", window, known)

            with traces.reading(trace):
                done[number] = _replay(
                    opened, chosen, number, windows=windows, rate=rate, state_bytes=state_bytes, tell=passed
                )
    rows = [row for number, replayed in done.items() for row in _rows(replayed, number)]
    if report is not None:
        _write(report, trace, rows, done)
    if as_json:
        typer.echo(json.dumps([{name: _finite(value) for name, value in row.items()} for row in rows]))
    else:
        _show(trace, rows, timed=opened.timed, rate=rate)
        if report is not None:
            traces.printer().print(f"The report is in {report}.", highlight=False, soft_wrap=True)


def _numbers(given: str) -> list[int]:
    try:
        numbers = [int(number) for number in traces.split_names(given)]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise InvalidArgumentError(f"--channels takes numbers from 1 on, such as 8 or 8,16,32; got {given!r}.")
    return numbers


def _strategy(name: str, controlled: bool) -> Routed | Planned | Controlled:
    """By name; ``router:`` or ``planner:`` before it tells apart what is both."""
    from evenkeel.control import Controller
    from evenkeel.errors import UnknownNameError
    from evenkeel.planning import PLANNERS, make_planner
    from evenkeel.routing import ROUTERS
    from evenkeel.sim import Controlled, Planned, Routed

    kind, _, bare = name.rpartition(":")
    known = {"": {*ROUTERS, *PLANNERS}, "router": {*ROUTERS}, "planner": {*PLANNERS}}
    if kind not in known:
        raise InvalidArgumentError(f"{name!r} is no strategy; before a name there may be router: or planner:.")
    if bare not in known[kind]:
        raise UnknownNameError(kind or "strategy", bare, known[kind])
    if not kind and bare in ROUTERS and bare in PLANNERS:
        raise InvalidArgumentError(f"{bare!r} is both a router and a planner; say router:{bare} or planner:{bare}.")
    if kind == "router" or bare not in PLANNERS:
        return Routed(bare)
    return Controlled(Controller(make_planner(bare))) if controlled else Planned(bare)


def _replay(
    opened: traces.Opened,
    strategies: dict[str, Any],
    channels: int,
    *,
    windows: int | None,
    rate: float | None,
    state_bytes: float,
    tell: Callable[[int], None],
) -> Replay:
    from evenkeel.sim import Histograms, MicroBatches, StateModel, replay
    from evenkeel.sim.advice import Costs, Watched

    workload = opened.workload
    has_state = isinstance(workload, Histograms) and "state_bytes" in workload.table.column_names
    speed = 1e3 * Costs().bytes_per_ms
    return replay(
        Watched(workload, tell),
        strategies,
        channels=channels,
        windows=windows,
        state=None if has_state else StateModel(state_bytes, "constant", windows=None),
        service=MicroBatches(rate, bytes_per_s=speed) if rate is not None and opened.timed else None,
    )


def _rows(done: Replay, channels: int) -> list[dict[str, Any]]:
    rows = []
    for row in done.summary().to_pylist():
        name = row["strategy"]
        columns = {column: done.column(name, column) for column in ("imbalance", "table_bytes")}
        tables = columns["table_bytes"].astype(float)
        largest = None if math.isnan(tables[0]) else int(tables.max())
        row |= {"max_imbalance": float(columns["imbalance"].max()), "table_bytes": largest}
        rows.append(row | {"channels": channels, "last_channels": row["channels"]})
    return rows


def _show(trace: str, rows: list[dict[str, Any]], *, timed: bool, rate: float | None) -> None:
    first = rows[0]
    out = traces.printer()
    out.print(f"[bold]{escape(trace)}[/]: {first['tuples']:,} tuples in {first['windows']} windows", highlight=False)
    for channels in dict.fromkeys(row["channels"] for row in rows):
        out.print(_table([row for row in rows if row["channels"] == channels]))
    told = "Busiest/mean is the busiest channel's load over the average one's, imbalance the difference of the two: "
    told += "the mean over all windows, and the worst. Counters are (key, channel) pairs."
    out.print(told, style="dim", highlight=False)
    if rate is not None and not timed:
        out.print("There is no latency: the windows have no times. Name a column by --time.", highlight=False)


def _table(rows: list[dict[str, Any]]) -> Table:
    from evenkeel.report.findings import number
    from evenkeel.sim.advice.reasons import size

    title = f"{rows[0]['channels']} channels"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    latency = "latency_p95_ms" in rows[0]
    heads = ["strategy", "busiest/mean", "imbalance", "moved", "pins", "table", "plan ms", "counters"]
    for head in heads + (["p95 s"] if latency else []):
        table.add_column(head, justify="left" if head == "strategy" else "right", no_wrap=True)
    best = min(row["mean_skewness"] for row in rows)
    for row in rows:
        told = [
            row["strategy"],
            f"{row['mean_skewness']:.2f}≤{row['max_skewness']:.2f}",
            f"{row['mean_imbalance']:,.0f}≤{row['max_imbalance']:,.0f}",
            "–" if row["moved_bytes"] is None else size(row["moved_bytes"]),
            number(row["pins"]),
            "–" if row["table_bytes"] is None else size(row["table_bytes"]),
            "–" if row["plan_ms"] is None else f"{row['plan_ms']:.1f}",
            number(row["pairs"]),
        ]
        told += [number(row["latency_p95_ms"] / 1e3)] if latency else []
        table.add_row(*told, style="green" if row["mean_skewness"] <= _AS_EVEN * best else "")
    return table


def _plot(done: dict[int, Replay]) -> Figure:
    """One pair of panels per number of channels: how even the windows are, and what moved."""
    import pyarrow as pa

    from evenkeel.report import Panel, draw

    tables = [
        replayed.table.add_column(0, "on", pa.array([number] * len(replayed.table)))
        for number, replayed in done.items()
    ]
    panels = []
    for number in done:
        where = {"on": number}
        panels += [
            Panel(x="window", y="skewness", where=where, title=f"{number} channels: busiest / average", reference=1.0),
            Panel(x="window", y="moved_bytes", where=where, title=f"{number} channels: bytes moved after the window"),
        ]
    return draw(pa.concat_tables(tables), panels)


def _write(path: Any, trace: str, rows: list[dict[str, Any]], done: dict[int, Replay]) -> None:
    import pyarrow as pa

    shown = (
        "channels",
        "strategy",
        "mean_skewness",
        "max_skewness",
        "mean_imbalance",
        "max_imbalance",
        "moves",
        "moved_bytes",
        "amortised_percent",
        "pins",
        "table_bytes",
        "plan_ms",
        "pairs",
        "latency_p50_ms",
        "latency_p95_ms",
        "latency_p99_ms",
    )
    table = pa.Table.from_pylist([{name: row[name] for name in shown if name in row} for row in rows])
    first = rows[0]
    words = f"{first['tuples']:,} tuples in {first['windows']} windows."
    parts = [Part("Window by window", figure=_plot(done)), Part("Summary", table=table)]
    write_report(path, f"Strategies on {trace}", words, parts)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
