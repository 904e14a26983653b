"""Whether the columns that a job names are there; asked once the source's columns are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from evenkeel.errors import EvenkeelError
from evenkeel.jobs.document import unknown

if TYPE_CHECKING:
    from evenkeel.jobs.job import Job, Stage
    from evenkeel.jobs.lines import Path

__all__ = ["check_columns"]


def check_columns(job: Job, rows: pa.Schema) -> None:
    """Follow the columns from stage to stage; raise with the line where one is missing or of a wrong type."""
    for number, stage in enumerate(job.stage):
        path: Path = ("stage", number)
        for name, columns in _named(stage).items():
            for column in columns:
                if column not in rows.names:
                    raise job.document.error(((*path, name), unknown("column", column, rows.names)))
        try:
            stage.operator.state_schema(rows)
            results = stage.operator.output_schema(rows)
        except EvenkeelError as error:
            raise job.document.error(_blame(job, (*path, "operator"), error)) from error
        rows = pa.schema([*(rows.field(key) for key in stage.keys), *results])


def _named(stage: Stage) -> dict[str, tuple[str, ...]]:
    single = {name: getattr(stage, name) for name in ("event_time", "probe")}
    return {"key": stage.keys, **{name: (column,) for name, column in single.items() if column is not None}}


def _blame(job: Job, path: Path, error: EvenkeelError) -> tuple[Path, str]:
    """Find the entry of an operator that names the column which an error is about, however deep it is."""
    column = error.fields.get("column", error.fields.get("name"))
    at: object = job.document.values
    for step in path:
        at = at[step]  # type: ignore[index]
    return _find(at, path, column) or path, str(error)


def _find(value: object, path: Path, column: object) -> Path | None:
    if value == column:
        return path
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        found = (_find(one, (*path, step), column) for step, one in inner)
        return next((place for place in found if place is not None), None)
    return None
