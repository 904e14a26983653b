"""Types of Spark and of Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["spark_type"]


def spark_type(schema: pa.Schema) -> Any:
    """Give Spark's type for an Arrow schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
