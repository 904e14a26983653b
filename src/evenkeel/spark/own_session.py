"""The session that each stream of Spark's has to itself, set for what our batches are; the user's own is left alone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

__all__ = ["OwnSession"]

_ADAPTIVE = "spark.sql.adaptive.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"
_MOST_BYTES, _MOST_ROWS = (f"spark.sql.execution.arrow.max{what}PerBatch" for what in ("Bytes", "Records"))
_NO_LIMIT = 2**31 - 1
_LEEWAY = 4
"""How many times as wide as in the batch before rows may be."""


@dataclass(slots=True)
class OwnSession:
    """Settings of a stream's own session, which as they are cost time and nothing else."""

    _usual: str | None = None
    """The user's limit of bytes in one transfer to Python."""
    _narrow: float = -1.0
    """Bytes of a row up to which that limit is out of reach; below 0 nothing is known yet."""
    _lifted: bool = False

    def prepare(self, session: SparkSession, users: SparkSession) -> None:
        """Set what holds for all batches, where the user's own session does not say otherwise.

        Spark turns adaptive execution off for stateful queries of its own, too: to plan again after each exchange takes
        longer than what is exchanged of a small batch. Without it, nothing makes few tasks of the 200 that Spark has
        for an exchange if nobody chose another number: so there are as many as run at once.
        """
        from pyspark.errors import PySparkException

        session.conf.set(_ADAPTIVE, value=False)
        settings: Any = users._jsparkSession  # noqa: SLF001 - only there it is known what somebody has set
        if not settings.sessionState().conf().contains(_PARTITIONS):
            session.conf.set(_PARTITIONS, session.sparkContext.defaultParallelism)
        with suppress(PySparkException):  # an older Spark has no such limit
            self._usual = session.conf.get(_MOST_BYTES)
            rows = int(session.conf.get(_MOST_ROWS) or 0)
            self._narrow = _bytes(session, self._usual or "0") / rows / _LEEWAY if rows > 0 else -1.0

    def fit(self, session: SparkSession, reports: Iterable[dict[str, Any]]) -> None:
        """Set what depends on the rows, going by the batch before.

        For each row that goes to Python, Spark adds up the bytes of all that go with it, which takes as long as to
        write them. Where as many rows as go at once are far from the limit, that is left out.
        """
        lift = max((report["row_bytes"] for report in reports), default=_NO_LIMIT) <= self._narrow
        if lift != self._lifted:
            assert self._usual is not None
            session.conf.set(_MOST_BYTES, str(_NO_LIMIT) if lift else self._usual)
            self._lifted = lift


def _bytes(session: SparkSession, text: str) -> int:
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - Spark reads its own way of writing sizes
    return int(jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(text))
