"""Where results go; every built-in sink overwrites by batch, so that a batch that comes again leaves one copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    WriteBatch: TypeAlias = Callable[[DataFrame, int], object]
    Sink: TypeAlias = str | WriteBatch

__all__ = ["Files", "Memory", "as_sink"]


class Memory:
    """Keeps all results on the driver, for trying things out: as many as fit into its memory."""

    reads_once = overwrites = True

    def __init__(self) -> None:
        self.batches: dict[int, pa.Table] = {}
        """The results of each batch."""

    def __call__(self, results: DataFrame, batch: int) -> None:
        """Keep one batch's results."""
        self.batches[batch] = results.toArrow()

    def table(self) -> pa.Table:
        """Give all results, batch by batch; a table without columns if there was no batch yet."""
        if not self.batches:
            return pa.table({})
        return pa.concat_tables([self.batches[batch] for batch in sorted(self.batches)])


@dataclass(frozen=True)
class Files:
    """Parquet files, one folder per batch."""

    path: str
    reads_once = overwrites = True

    def __call__(self, results: DataFrame, batch: int) -> None:
        """Write one batch's results, in place of any that were written for it before."""
        results.write.mode("overwrite").parquet(f"{self.path}/batch={batch}")


def as_sink(sink: Sink) -> WriteBatch:
    """Give what writes one batch's results.

    Parameters
    ----------
    sink
        A path: Parquet files below it, one folder ``batch=…`` per batch. ``"console"``: the first rows of each batch
        are printed. ``"memory"``: all results are kept on the driver, in the query's ``sink``. Or a function of the
        results, which belong to the session that a stream has to itself, as in ``foreachBatch``, and the batch's
        number; it must leave the same however often it is called for one batch. One that
        reads all results exactly once may have an attribute ``reads_once = True``: they are not cached then. One that
        replaces what it wrote for the same batch before may have ``overwrites = True``: when a host is lost, it may be
        called with a part of the results first, and a query with replicas goes on sooner.
    """
    if callable(sink):
        return sink
    if sink == "console":
        return _print
    if sink == "memory":
        return Memory()
    if isinstance(sink, str):
        return Files(sink)
    raise InvalidArgumentError(f"A sink is a path, 'console', 'memory' or a function(results, batch); got {sink!r}.")


def _print(results: DataFrame, batch: int) -> None:
    print(f"-- batch {batch} --")  # noqa: T201
    results.show()
