"""``evenkeel demo``: a skewed word stream on Spark, by bare hash and by routing table."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["demo"]


def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Words in the stream.")] = 2_000_000,
    keys: Annotated[int, typer.Option(min=10, help="Different words.")] = 100_000,
    skew: Annotated[float, typer.Option(min=0.0, help="Zipf exponent of the words' frequencies.")] = 1.0,
    channels: Annotated[int, typer.Option(min=2, help="Parallel tasks.")] = 8,
    planner: Annotated[str, typer.Option(help="Which planner makes the table.")] = "keel",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Count a skewed stream of words on Spark, first placed by hash, then by a routing table, and compare."""
    from evenkeel.planning import make_planner
    from evenkeel.spark import demo as job

    make_planner(planner)  # A wrong name should not wait for Spark to start.
    console = Console(stderr=True)
    with console.status("Starting Spark …") as status:
        result = job.run(rows, keys, skew, channels, planner, progress=status.update)
    if as_json:
        typer.echo(json.dumps(result.as_dict()))
        return
    table = Table(title=f"{rows:,} words, {keys:,} different, Zipf {skew:g}, on {channels} channels")
    table.add_column("channel", justify="right")
    table.add_column("by hash", justify="right")
    table.add_column("by table", justify="right")
    table.add_column("")
    longest = max(*result.loads_by_hash, 1)
    for channel, (before, after) in enumerate(zip(result.loads_by_hash, result.loads_by_table, strict=True)):
        bars = f"[red]{'▇' * round(20 * before / longest)}[/]\n[green]{'▇' * round(20 * after / longest)}[/]"
        table.add_row(str(channel), f"{before:,}", f"{after:,}", bars)
    out = Console()
    out.print(table)
    out.print(
        f"Busiest channel over the average: [red]{result.skewness_by_hash:.2f}×[/] by hash, "
        f"[green]{result.skewness_by_table:.2f}×[/] by table. {result.bound_note}"
    )
    out.print(
        f"{planner} moves {result.moves:,} slots and hot words, {result.moved_percent:.1f} % of the state: "
        f"{escape(' '.join(result.reasons))}",
        highlight=False,
    )
    out.print(
        f"Rows landed exactly where the table sends them, and all {result.distinct_words:,} counts equal "
        "Spark's own groupBy."
    )
