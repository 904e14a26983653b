"""The command ``evenkeel``, one file per subcommand."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

import evenkeel
from evenkeel.cli.advise import advise
from evenkeel.cli.dashboard import dashboard
from evenkeel.cli.demo import demo
from evenkeel.cli.init import init
from evenkeel.cli.reproduce import reproduce
from evenkeel.cli.run import run
from evenkeel.cli.simulate import simulate
from evenkeel.cli.top import top
from evenkeel.errors import EvenkeelError

__all__ = ["app", "main"]

app = typer.Typer(
    name="evenkeel",
    help="Balanced, stateful, key-grouped streams on stock Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(init)
app.command()(run)
app.command()(dashboard)
app.command()(simulate)
app.command()(advise)
app.command()(reproduce)
app.command()(top)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenkeel {evenkeel.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; a user's mistake ends in one clear line, not in a traceback."""
    try:
        app()
    except EvenkeelError as error:
        Console(stderr=True, highlight=False).print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(2)
