"""``evenkeel init``: an example of a job file, ready to run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenkeel.errors import EvenkeelError

__all__ = ["init"]


def init(
    path: Annotated[Path, typer.Argument(help="The file to write, or a folder to write job.toml to.")] = Path(
        "job.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write an example of a job file, with comments; `evenkeel run` runs it as it is."""
    from importlib.resources import files

    file = path / "job.toml" if path.is_dir() else path
    if file.exists() and not force:
        raise EvenkeelError(f"{file} is there already. Name another file, or overwrite it with --force.")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((files("evenkeel.jobs") / "example.toml").read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise EvenkeelError(f"{file} cannot be written: {error.strerror}.") from error
    typer.echo(f"Wrote {file}. Run it: evenkeel run {file}")
