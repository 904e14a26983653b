"""``evenkeel advise``: how skewed a stream is, and which strategy, channels and gain to expect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from evenkeel.cli import traces
from evenkeel.cli.pages import Part, check_report, write_report

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from matplotlib.figure import Figure
    from rich.console import Console

    from evenkeel.sim import Histograms
    from evenkeel.sim.advice import Advice, Answer, Costs, Profile
    from evenkeel.sim.advice.profile import KeysOf

__all__ = ["advise"]

_LINES, _WIDTH = 8, 24  # channels that are drawn on a terminal, and how wide
_BARS = 16  # channels that are drawn as bars in a plot


def advise(
    trace: Annotated[str, typer.Argument(help="A trace, as for simulate; or the checkpoint directory of a query.")],
    key: traces.KeyColumns = None,
    time: traces.TimeColumn = None,
    mergeable: Annotated[
        bool | None,
        typer.Option(
            "--mergeable/--not-mergeable",
            help="Whether partial states of the operator merge, so that hot keys may be split; both if not given.",
        ),
    ] = None,
    channels: Annotated[int, typer.Option(min=1, help="How many channels there may be at most.")] = 32,
    sources: Annotated[
        int | None, typer.Option(min=1, help="Map tasks that read the stream; as many as channels if not given.")
    ] = None,
    strategies: Annotated[str | None, typer.Option(help="What to try besides key_grouping, by name.")] = None,
    rate: traces.Rate = None,
    state_bytes: traces.StateBytes = 100.0,
    window_seconds: traces.WindowSeconds = None,
    window_tuples: traces.WindowTuples = None,
    stage: Annotated[str | None, typer.Option(help="Which stage of a checkpoint; the first if not given.")] = None,
    form: traces.TraceFormat = None,
    spark: traces.OnSpark = False,
    save: traces.SaveTo = None,
    report: traces.ReportTo = None,
    as_json: traces.AsJson = False,
) -> None:
    """Say what a stream wants: strategy, settings, number of channels, gain, cost, and the code to paste.

    Candidates are tried on the trace in the simulator, planners under the controller that runs on Spark; the simplest
    of those that are about as good as the best is advised, with the reasons.
    """
    from evenkeel.sim import StateModel
    from evenkeel.sim.advice import advise as advise_on
    from evenkeel.sim.advice import is_checkpoint

    check_report(report)
    with traces.watching(quiet=as_json) as tell, traces.reading(trace):
        if is_checkpoint(trace):
            subject = _of_checkpoint(trace, key, stage)
        else:
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
            subject = _of_trace(opened, tell)
        has_state = "state_bytes" in subject.workload.table.column_names
        advice = advise_on(
            subject.workload,
            key=subject.key,
            mergeable=mergeable,
            channels=channels,
            sources=sources,
            strategies=None if strategies is None else traces.split_names(strategies),
            state=None if has_state else StateModel(state_bytes, "constant", windows=None),
            rate=rate,
            timed=subject.timed,
            costs=subject.costs if rate is None else None,
            keys_of=subject.keys_of,
            progress=lambda what, done, of: tell(f"Trying {what} …", done, of),
        )
    notes = [*subject.notes, *advice.notes]
    if rate is not None and not subject.timed:
        notes.append("The windows have no times, so whether channels keep up is not known. Name a column by --time.")
    if report is not None:
        _write(report, trace, advice, notes)
    if as_json:
        typer.echo(json.dumps({**advice.as_dict(), "notes": notes}, allow_nan=False))
        return
    _show(trace, advice, notes)
    if report is not None:
        traces.printer().print(f"The report is in {report}.", highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """What is to be advised on."""

    workload: Histograms
    key: tuple[str, ...]
    timed: bool
    keys_of: KeysOf | None = None
    costs: Costs | None = None
    notes: tuple[str, ...] = ()


def _of_checkpoint(trace: str, key: list[str] | None, stage: str | None) -> _Subject:
    from evenkeel.sim.advice import Costs, observe_checkpoint

    seen = observe_checkpoint(trace, stage)
    costs = Costs(seen.ms_per_tuple) if seen.ms_per_tuple > 0 else None
    hint = "A checkpoint knows keys by their hashes; find them by xxhash64(key) in Spark."
    return _Subject(seen.workload, tuple(key or ["key"]), timed=False, costs=costs, notes=(*seen.notes(), hint))


def _of_trace(opened: traces.Opened, tell: Any) -> _Subject:
    from evenkeel.sim import Histograms
    from evenkeel.sim.advice import Watched

    workload = opened.workload
    if not isinstance(workload, Histograms):
        watched = Watched(workload, lambda window: tell("Counting keys …", window, opened.windows))
        workload = Histograms.of(watched)
    return _Subject(workload, opened.key, opened.timed, opened.keys_of)


# -- on the terminal -------------------------------------------------------------------------------------------------


def _show(trace: str, advice: Advice, notes: list[str]) -> None:
    out = traces.printer()
    out.print(f"[bold]{escape(trace)}[/]", highlight=False)
    for words in [*_about(advice.profile), *notes]:
        out.print(words, markup=False, highlight=False, soft_wrap=True)
    hot = Table(title="Hottest keys", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("key", "share", ""):
        hot.add_column(name, justify="right" if name == "share" else "left")
    largest = max((each.share for each in advice.profile.hot), default=1.0)
    for each in advice.profile.hot:
        bar = "▇" * max(1, round(_WIDTH * each.share / largest))
        hot.add_row(escape(each.name or f"hash {each.hash}"), f"{each.share:.2%}", f"[yellow]{bar}[/]")
    out.print(hot)
    for answer in advice.answers:
        _show_answer(out, answer)


def _about(profile: Profile) -> list[str]:
    keys = f"{'more than ' if profile.folded else ''}{profile.keys:,}"
    size = (
        f"{profile.tuples:,} tuples of {keys} keys in {profile.windows} windows, {profile.tuples_per_key:.1f} tuples "
        "per key and window."
    )
    skew = (
        f"In a window, the hottest key has {profile.hottest_share:.2%} of the tuples and the 100 hottest "
        f"{profile.head_share:.1%}; from window to window {profile.turnover:.0%} of that changes hands."
    )
    return [size, skew]


def _show_answer(out: Console, answer: Answer) -> None:
    if_so = "If partial states merge" if answer.mergeable else "If keys must stay whole"
    out.rule(f"[bold]{if_so}: [green]{answer.chosen.name}[/] on {answer.chosen.channels} channels[/]", align="left")
    out.print(f"{answer.gain:.2f} times as fast as plain Spark with as many tasks.", highlight=False)
    for reason in answer.reasons:
        out.print(f"  • {reason}", markup=False, highlight=False, soft_wrap=True)
    out.print(_tried(answer))
    if answer.chosen.name != answer.plain.name and answer.chosen.channels > 1:
        out.print(_channels(answer))
    out.print("To paste, with your rows as events and your operator:", highlight=False)
    out.print(Syntax(answer.code, "python", background_color="default"))


def _tried(answer: Answer) -> Table:
    from evenkeel.report.findings import number
    from evenkeel.sim.advice.reasons import size

    title = f"Tried on {answer.chosen.channels} channels"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    timed = answer.chosen.latency_p95_ms is not None
    heads = ["strategy", "work", "to plain", "busiest/mean", "moved/window", "pins"]
    for head in [*heads, *(["p95 s"] if timed else [])]:
        table.add_column(head, justify="left" if head == "strategy" else "right")
    for each in answer.outcomes:
        told = [
            each.name,
            number(round(each.makespan)),
            f"{each.makespan / answer.plain.makespan - 1:+.1%}" if answer.plain.makespan else "–",
            f"{each.skewness:.2f} ≤ {each.max_skewness:.2f}",
            size(each.moved_bytes),
            number(each.pins),
        ]
        told += [number((each.latency_p95_ms or 0.0) / 1e3)] if timed else []
        table.add_row(*told, style="green" if each.name == answer.chosen.name else "")
    return table


def _channels(answer: Answer) -> Table:
    """The busiest channels, under plain Spark and as advised."""
    title = f"The {_LINES} busiest channels of the last window"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in ("plain", answer.chosen.name, ""):
        table.add_column(head, justify="right" if head else "left")
    pairs = list(zip(answer.plain.loads.tolist(), answer.chosen.loads.tolist(), strict=True))[:_LINES]
    longest = max(max(pair) for pair in pairs) or 1
    for before, after in pairs:
        bars = [
            f"[{colour}]{'▇' * round(_WIDTH * load / longest)}[/]"
            for colour, load in (("red", before), ("green", after))
        ]
        table.add_row(f"{before:,.0f}", f"{after:,.0f}", "\n".join(bars))
    return table


# -- as a report -----------------------------------------------------------------------------------------------------


def _write(path: Path, trace: str, advice: Advice, notes: list[str]) -> None:
    import pyarrow as pa

    hot = pa.table(
        {
            "key": [each.name or f"hash {each.hash}" for each in advice.profile.hot],
            "share %": [100 * each.share for each in advice.profile.hot],
        }
    )
    parts = []
    for answer in advice.answers:
        if_so = "If partial states merge" if answer.mergeable else "If keys must stay whole"
        title = f"{if_so}: {answer.chosen.name} on {answer.chosen.channels} channels, {answer.gain:.2f} times as fast"
        parts.append(Part(title, answer.reasons, _plot(answer), _table(answer), answer.code))
    parts.append(Part("Hottest keys", table=hot))
    write_report(path, f"Advice on {trace}", " ".join([*_about(advice.profile), *notes]), parts)


def _table(answer: Answer) -> pa.Table:
    import pyarrow as pa

    columns = {
        "work per window": "makespan",
        "busiest/average": "skewness",
        "worst": "max_skewness",
        "moved bytes per window": "moved_bytes",
        "fullest channel's state": "fullest_bytes",
        "partial states per key": "parts_per_key",
        "pins": "pins",
        "plan ms": "plan_ms",
        "p95 ms": "latency_p95_ms",
    }
    values = {head: [getattr(each, name) for each in answer.outcomes] for head, name in columns.items()}
    known = {head: column for head, column in values.items() if any(value is not None for value in column)}
    return pa.table({"strategy": [each.name for each in answer.outcomes], **known})


def _plot(answer: Answer) -> Figure:
    """The channels of the last window, what was tried, and what more channels would bring."""
    import pyarrow as pa

    from evenkeel.report import Panel, draw

    rows: list[dict[str, Any]] = []
    for called, each in (("plain", answer.plain), ("advised", answer.chosen)):
        rows += [{"panel": "loads", "series": called, "x": i, "y": load} for i, load in enumerate(each.loads.tolist())]
    work = answer.plain.busiest / answer.plain.skewness * answer.plain.channels if answer.plain.skewness else 0.0
    for each in answer.scaling:
        rows.append({"panel": "scaling", "series": "best tried", "x": each.channels, "y": work / each.makespan})
        rows.append({"panel": "scaling", "series": "ideal", "x": each.channels, "y": float(each.channels)})
    where = [{"panel": name} for name in ("loads", "scaling")]
    panels = [
        Panel(
            x="x",
            y="y",
            by="series",
            kind="bars" if answer.chosen.channels <= _BARS else "steps",
            where=where[0],
            title="Work of the channels in the last window",
            x_label="channel, busiest first",
            y_label="tuples",
        ),
        Panel(
            x="x",
            y="y",
            by="series",
            where=where[1],
            title="Times as fast as one channel",
            x_label="channels",
            y_label="",
            log_x=True,
            log_y=True,
        ),
    ]
    return draw(pa.Table.from_pylist(rows), panels)
