"""Where results go; every built-in sink overwrites by batch, so that a batch that comes again leaves one copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    WriteBatch: TypeAlias = Callable[[DataFrame, int], object]
    Sink: TypeAlias = str | WriteBatch

__all__ = ["as_sink"]


def as_sink(sink: Sink) -> WriteBatch:
    """Give what writes one batch's results.

    Parameters
    ----------
    sink
        A path: Parquet files below it, one folder ``batch=…`` per batch. ``"console"``: the first rows of each batch
        are printed. Or a function of the results and the batch's number, which must leave the same however often it is
        called for one batch.
    """
    if callable(sink):
        return sink
    if sink == "console":
        return _print
    if isinstance(sink, str):
        return lambda results, batch: results.write.mode("overwrite").parquet(f"{sink}/batch={batch}")
    raise InvalidArgumentError(f"A sink is a path, 'console' or a function(results, batch); got {sink!r}.")


def _print(results: DataFrame, batch: int) -> None:
    print(f"-- batch {batch} --")  # noqa: T201
    results.show()
