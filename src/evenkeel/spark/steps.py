"""The steps of a batch's query: few calls into the JVM, with what is the same in every batch made once.

Spark's own methods make the arguments of each step anew: they build Java's lists element by element, and look up Java's
classes by names for which the JVM searches all its archives. For a small batch that takes longer than to plan it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["Steps"]

_KEPT = 256
_CLASSES = ("PythonUtils", "SimplePythonFunction")
"""What Spark's Python looks up when a function is given to Java."""


@dataclass(slots=True)
class Steps:
    """Steps on rows, each by what it says in SQL; what was made of that for Java is kept for all batches of a query.

    A column says what is computed, of whatever rows it is given to.
    """

    _made: dict[str | tuple[str, ...], Any] = field(default_factory=dict)

    def select(self, rows: DataFrame, *columns: str) -> DataFrame:
        """Give these columns."""
        return _frame(rows, _java(rows).select(self._columns(rows, *columns)))

    def aggregate(self, rows: DataFrame, keys: Sequence[str], *columns: str) -> DataFrame:
        """Group by keys, and give these columns of each group after them."""
        first, *others = columns
        grouped = _java(rows).groupBy(self._columns(rows, *keys))
        return _frame(rows, grouped.agg(self._column(first), self._columns(rows, *others)))

    def repartition(self, rows: DataFrame, partitions: int, column: str) -> DataFrame:
        """Send each row to the partition that Spark's hash of a column says."""
        return _frame(rows, _java(rows).repartition(partitions, self._columns(rows, column)))

    def map(
        self,
        rows: DataFrame,
        columns: Iterable[str],
        function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: Any,
    ) -> DataFrame:
        """Give what a function makes of these columns, a partition at a time: ``mapInArrow``."""
        from pyspark.sql.udf import UserDefinedFunction
        from pyspark.util import PythonEvalType

        context: Any = rows.sparkSession.sparkContext
        for name in _CLASSES:
            if name not in vars(context._jvm):  # noqa: SLF001 - the only place where it is looked for
                setattr(context._jvm, name, getattr(context._jvm, name))  # noqa: SLF001 - the same
        made: Any = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        call = made._judf.apply(self._columns(rows, *columns))  # noqa: SLF001 - as mapInArrow does
        return _frame(rows, _java(rows).mapInArrow(call, False, None))

    def _columns(self, rows: DataFrame, *texts: str) -> Any:
        """Give Java's list of the columns that these texts say."""
        from pyspark.sql import functions as F

        maker: Any = rows
        return self._kept(texts, lambda: maker._jcols(*map(F.expr, texts)))  # noqa: SLF001 - as Spark's own methods do

    def _column(self, text: str) -> Any:
        """Give Java's column."""
        from pyspark.sql import functions as F

        return self._kept(text, lambda: F.expr(text)._jc)  # noqa: SLF001 - the same

    def _kept(self, what: str | tuple[str, ...], make: Callable[[], Any]) -> Any:
        if what not in self._made:
            if len(self._made) > _KEPT:  # of tables that were
                self._made.clear()
            self._made[what] = make()
        return self._made[what]


def _java(rows: Any) -> Any:
    return rows._jdf  # noqa: SLF001 - what Spark's own methods call, with arguments of ours


def _frame(rows: DataFrame, java: Any) -> DataFrame:
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    return ClassicFrame(java, rows.sparkSession)
