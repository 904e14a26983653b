"""The session that each stream of Spark's has to itself, set for what our batches are; the user's own is left alone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

__all__ = ["OwnSession"]

_ADAPTIVE = "spark.sql.adaptive.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"
_MOST_BYTES, _MOST_ROWS = (f"spark.sql.execution.arrow.max{what}PerBatch" for what in ("Bytes", "Records"))
_CALL_SITE = "callSite.short"
"""Where Spark's thread of a stream is told what began it, so that it need not be looked for."""
_NO_LIMIT = 2**31 - 1
_MANY_ROWS = 50_000
"""How many narrow rows go to Python at once, if nobody chose a number: five times as many as Spark sends by itself."""
_LEEWAY = 4
"""How many times as wide as in the batch before rows may be."""


@dataclass(slots=True)
class OwnSession:
    """Settings of a stream's own session, which as they are cost time and nothing else."""

    _usual: dict[str, str] = field(default_factory=dict)
    """The user's limits of one transfer to Python."""
    _most_bytes: float = -1.0
    """The limit of bytes; below 0 nothing is known of it."""
    _chosen: bool = True
    """Whether somebody chose how many rows go at once."""
    _set: dict[str, str] = field(default_factory=dict)
    _call_site: str | None = None

    def prepare(self, session: SparkSession, users: SparkSession) -> None:
        """Set what holds for all batches, where the user's own session does not say otherwise.

        Spark turns adaptive execution off for stateful queries of its own, too: to plan again after each exchange takes
        longer than what is exchanged of a small batch. Without it, nothing makes few tasks of the 200 that Spark has
        for an exchange if nobody chose another number: so there are as many as run at once.
        """
        from pyspark.errors import PySparkException

        self._call_site = session.sparkContext.getLocalProperty(_CALL_SITE)
        session.conf.set(_ADAPTIVE, value=False)
        java: Any = users._jsparkSession  # noqa: SLF001 - only there it is known what somebody has set
        settings = java.sessionState().conf()
        if not settings.contains(_PARTITIONS):
            session.conf.set(_PARTITIONS, session.sparkContext.defaultParallelism)
        with suppress(PySparkException):  # an older Spark has no such limit
            self._usual = {name: session.conf.get(name) or "0" for name in (_MOST_BYTES, _MOST_ROWS)}
            self._most_bytes = _bytes(session, self._usual[_MOST_BYTES])
            self._chosen = settings.contains(_MOST_ROWS)
            self._set = self._usual

    def fit(self, session: SparkSession, reports: Iterable[dict[str, Any]], *, slow: bool) -> None:
        """Set what depends on the batch before: on its rows, and on what it has left in this thread.

        PySpark's own ``collect``, ours or a sink's, makes the thread forget what began the stream. Spark then looks for
        it in the stack whenever it makes an RDD, dozens of times a batch.

        For each row that goes to Python, Spark adds up the bytes of all that go with it, which takes as long as to
        write them. Where as many rows as go at once are far from the limit, that is left out; where they would be if
        more went at once, more do, unless an operator is slow, which is to begin as soon as there are any.
        """
        session.sparkContext.setLocalProperty(_CALL_SITE, self._call_site)  # type: ignore[arg-type] # or none
        widest = _LEEWAY * max((report["row_bytes"] for report in reports), default=_NO_LIMIT)
        rows = int(self._usual.get(_MOST_ROWS, 0))
        fitting = dict(self._usual)
        if 0 < rows * widest <= self._most_bytes:
            fitting[_MOST_BYTES] = str(_NO_LIMIT)
            if rows < _MANY_ROWS and _MANY_ROWS * widest <= self._most_bytes and not (slow or self._chosen):
                fitting[_MOST_ROWS] = str(_MANY_ROWS)
        for name, value in fitting.items():
            if value != self._set[name]:
                session.conf.set(name, value)
        self._set = fitting


def _bytes(session: SparkSession, text: str) -> int:
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - Spark reads its own way of writing sizes
    return int(jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(text))
