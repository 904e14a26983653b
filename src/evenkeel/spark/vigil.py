"""Keeping watch over hosts while a batch runs: one that lost a host is broken off at once."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evenkeel.errors import ColdChannelError
from evenkeel.logs import tell
from evenkeel.spark.homes import executors
from evenkeel.spark.task import COLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from evenkeel.spark.homes import Homes

__all__ = ["Vigil"]

_LOOK_EVERY_SECONDS = 0.1


class Vigil:
    """Breaks off batches that must run again anyway, since a host with channels that have copies elsewhere is lost.

    Left to itself, Spark first tries to fetch what the host had shuffled, for five seconds and more, and then runs the
    tasks of its channels elsewhere, only to learn that their state is not there.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._changed = threading.Condition()
        self._homes: Sequence[Homes] = ()
        self._group: str | None = None
        self._broke = self._closed = False
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, homes: Sequence[Homes]) -> Iterator[None]:
        """Break off the jobs of this thread's stream, which has them in a group, when one of the homes is lost."""
        group = self._spark.sparkContext.getLocalProperty("spark.jobGroup.id") if homes else None
        if group is None:
            yield
            return
        if self._thread is None:  # one for all batches: each thread costs one in the JVM as well
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        with self._changed:
            self._homes, self._group, self._broke = homes, group, False
            self._changed.notify()
        try:
            yield
        except Exception as error:
            if self._broke:
                raise ColdChannelError(f"{COLD} A host was lost; copies of what it held are elsewhere.") from error
            raise
        finally:
            with self._changed:
                self._homes, self._group = (), None

    def close(self) -> None:
        """Watch no more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._group is not None)
                if self._closed:
                    return
                homes = self._homes
            try:
                self._look(homes)
            except Exception as error:  # noqa: BLE001 - whatever Spark may raise, also when it has ended
                self._pause(homes, error)
            with self._changed:
                self._changed.wait_for(lambda: self._closed, _LOOK_EVERY_SECONDS)

    def _look(self, homes: Sequence[Homes]) -> None:
        up = executors(self._spark)
        lost = any(home.lost(up) for home in homes)
        with self._changed:
            if lost and self._group is not None and self._homes is homes:
                self._broke = True
                self._spark.sparkContext.cancelJobGroup(self._group)

    def _pause(self, homes: Sequence[Homes], error: Exception) -> None:
        """Watch on with the next batch; if a host is lost before, Spark notices by itself, only later."""
        with self._changed:
            if self._homes is homes:
                self._homes, self._group = (), None
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        tell("unwatched", f"Hosts are not watched until the next batch. {reason}", logging.WARNING, reason=reason)
