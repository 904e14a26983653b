"""``evenkeel top``: a query's load, state, moves and decisions, live in the terminal."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from evenkeel.errors import EvenkeelError, UnknownNameError

if TYPE_CHECKING:
    from evenkeel.dashboard import CheckpointReader

__all__ = ["top"]


def top(
    checkpoint: Annotated[str, typer.Argument(help="The query's checkpoint: a directory, or a URI.")],
    once: Annotated[bool, typer.Option("--once", help="Print the view once, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all as one JSON document, and end.")] = False,
    stage: Annotated[str | None, typer.Option(help="Which stage to show, of several.")] = None,
    interval: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 2.0,
    mask_keys: Annotated[bool, typer.Option("--mask-keys", help="Show keys by their hashes only.")] = False,
) -> None:
    """Show a query that runs, or has run: load per channel, imbalance, hot keys, state, moves and decisions.

    It reads the checkpoint only, so it needs no Spark and does not disturb the query. Ctrl-C ends it.
    """
    from evenkeel.dashboard import CheckpointReader

    reader = CheckpointReader(checkpoint)
    _look_first(reader)
    if stage is not None and stage not in reader.stages:
        raise UnknownNameError("stage", stage, reader.stages)
    console = Console()
    if as_json:
        typer.echo(json.dumps(_state(reader, mask_keys), allow_nan=False))
    elif once or not console.is_terminal:
        _print(console, _state(reader, mask_keys), stage)
    else:
        _watch(console, reader, stage, interval, mask_keys)


def _look_first(reader: CheckpointReader) -> None:
    """Take in what there is; on a terminal, say how far that is."""
    errors = Console(stderr=True)
    with errors.status("Reading the checkpoint …") as status:
        reader.look(lambda done, of: status.update(f"Reading the checkpoint: {done} of {of} batches …"))


def _state(reader: CheckpointReader, mask_keys: bool, trouble: str = "") -> dict[str, Any]:
    from evenkeel.dashboard import state_of

    return state_of(reader, time.time(), mask_keys=mask_keys, trouble=trouble)


def _print(console: Console, state: dict[str, Any], stage: str | None) -> None:
    from evenkeel.dashboard.terminal import render

    console.print(render(state, stage, console.width), highlight=False)


def _watch(console: Console, reader: CheckpointReader, stage: str | None, interval: float, mask_keys: bool) -> None:
    from rich.live import Live

    from evenkeel.dashboard.terminal import render

    state = _state(reader, mask_keys)
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                live.update(render(state, stage, console.width, console.height), refresh=True)
                time.sleep(interval)
                trouble = ""
                try:
                    reader.look()
                except EvenkeelError as error:
                    trouble = str(error)  # The last view stays; the file system may come back.
                state = _state(reader, mask_keys, trouble)
    except KeyboardInterrupt:
        _print(console, state, stage)  # The screen is gone; leave the last view behind.
