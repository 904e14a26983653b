"""What a job file says: a source, keyed stages one after the other, and a sink."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

from evenkeel.control import Controller, ControlOptions, Elasticity, ServiceLevels
from evenkeel.errors import InvalidArgumentError
from evenkeel.jobs.document import Document
from evenkeel.jobs.names import read_operator, read_sink, read_strategy
from evenkeel.jobs.values import INVALID, Reader
from evenkeel.operators import Mergeable, Operator
from evenkeel.operators.durations import Duration
from evenkeel.planning import Planner
from evenkeel.routing import Router

if TYPE_CHECKING:
    from evenkeel.jobs.lines import Path

__all__ = ["Job", "Source", "Stage", "read_job"]

AVAILABLE_NOW = "available_now"
_CHANNELS = 8


class Trigger(dict[str, Any]):
    """When batches start, as Spark's ``trigger`` takes it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from.

    Parameters
    ----------
    format
        Any that Spark knows: ``parquet``, ``json``, ``kafka``, ``rate``, ``socket`` …
    path
        Where the files are, for a format that has files.
    schema
        The columns as DDL, such as ``"word STRING, at TIMESTAMP"``; streams of files need it.
    options
        As the format takes them.
    stream
        Whether to wait for more. If not, the rows that are there are processed as one batch.
    select
        SQL expressions that make the columns of the job from those of the source; all as they are by default.
    where
        An SQL condition on the source's rows.
    """

    format: str
    path: str | None = None
    schema: str | None = None
    options: Mapping[str, str | bool | int | float] = field(default_factory=dict)
    stream: bool = True
    select: Sequence[str] = ()
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One keyed stage; the parameters are those of ``stream``, ``apply`` and the controller."""

    key: str | Sequence[str]
    operator: Operator
    strategy: Planner | Router | Controller
    channels: int = _CHANNELS
    elasticity: Elasticity | None = None
    control: ControlOptions | None = None
    event_time: str | None = None
    delay: Duration = "0 seconds"
    null_keys: Literal["keep", "drop", "error"] = "keep"
    slots: int | None = None
    combine: bool | None = None
    replicas: int | ServiceLevels = 0
    aggregate_every: int | Duration = 1
    split_results: Literal["merge", "partial"] = "merge"
    probe: str | None = None

    def __post_init__(self) -> None:
        for name in ("elasticity", "control"):
            if getattr(self, name) is not None and not isinstance(self.strategy, Planner):
                raise InvalidArgumentError(f"{name} is for strategies that plan tables, such as 'keel'.", name=name)
        self.chosen()  # The controller's own checks look at several of these together.

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)

    def chosen(self) -> Controller | Router:
        """Give the strategy: a new controller with all its options, or a router."""
        if isinstance(self.strategy, Router | Controller):
            return self.strategy
        return Controller(self.strategy, replace(self.control or ControlOptions(), elasticity=self.elasticity))


@dataclass(frozen=True, slots=True)
class Job:
    """A whole query.

    Parameters
    ----------
    document
        The file, to tell the line of what turns out wrong later.
    source, stage, sink
        Rows come from the source, go through every stage in turn, and their results to the sink: a path, ``console``,
        or a function.
    checkpoint
        A directory, or a URI that ``pyarrow.fs`` knows.
    name
        The job's name; a checkpoint belongs to one.
    trigger
        When batches start: as soon as there is something to do, by default.
    local_directory
        Where each host keeps working copies of its channels' state.
    spark
        Settings of the Spark session, if the command makes it.
    """

    document: Document
    source: Source
    stage: Sequence[Stage]
    checkpoint: str
    sink: str | Callable[..., object]
    name: str = "evenkeel"
    trigger: Trigger | None = None
    local_directory: str | None = None
    spark: Mapping[str, str | bool | int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.trigger is not None and not self.source.stream:
            raise InvalidArgumentError("trigger is for streams, and the source says stream = false.", name="trigger")
        if not self.stage:
            raise InvalidArgumentError("stage must have at least one table.", name="stage")


def read_job(file: str | FilePath) -> Job:
    """Read and check a job file, without Spark.

    Modules of the user's own are looked for beside the file first, as Python does for a script.

    Raises
    ------
    InvalidArgumentError
        With every mistake on a line of its own: ``job.toml:12: unknown strategy 'kel'. Did you mean 'keel'?``.
    """
    file = FilePath(file)
    document = Document.read(file)
    beside = str(file.absolute().parent)
    if beside not in sys.path:
        sys.path.insert(0, beside)
    reader = Reader(
        {
            Operator: read_operator,
            Mergeable: read_operator,
            Elasticity: _read_elasticity,
            ControlOptions: _read_control,
            Stage: _read_stage,
            Callable[..., object]: read_sink,
            Trigger: _read_trigger,
        }
    )
    job = reader.call(Job, document.values, (), what="a job", document=document)
    if job is INVALID:
        raise document.error(*reader.mistakes)
    assert isinstance(job, Job)
    return job


def _read_stage(reader: Reader, found: Any, path: Path) -> Any:
    """Read a stage; a router is made for its number of channels, and so must know it first."""
    if not isinstance(found, dict):
        return reader.mistake(path, f"a stage must be a table; got {found!r}.")
    channels = found.get("channels", _CHANNELS)
    known = channels if type(channels) is int and channels > 0 else _CHANNELS
    within = replace(reader, makers={**reader.makers, Planner: partial(read_strategy, channels=known)})
    made = within.call(Stage, {"strategy": "keel", **found}, path, what="a stage")
    if type(channels) is int and channels < 1:
        return reader.mistake((*path, "channels"), f"channels must be at least 1; got {channels}.")
    return made


def _read_elasticity(reader: Reader, found: Any, path: Path) -> Any:
    """Read bounds of the load per channel, or a target to stay around."""
    if not isinstance(found, dict):
        return reader.mistake(path, f"elasticity must be a table; got {found!r}.")
    make = Elasticity.around if "target" in found else Elasticity
    return reader.call(make, found, path, what="elasticity")


def _read_control(reader: Reader, found: Any, path: Path) -> Any:
    if not isinstance(found, dict):
        return reader.mistake(path, f"control must be a table; got {found!r}.")
    return reader.call(ControlOptions, found, path, what="control", elasticity=None)


def _read_trigger(reader: Reader, found: Any, path: Path) -> Any:
    if found == AVAILABLE_NOW:
        return Trigger(availableNow=True)
    every = reader.read(found, Duration, path)
    return every if every is INVALID else Trigger(processingTime=every)
