"""Sketches as Arrow record batches: entries as columns, scalars as JSON in the schema's metadata."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import CorruptDataError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

KIND = b"evenkeel.sketch"
SCALARS = b"evenkeel.scalars"


def pack(kind: str, scalars: dict[str, Any], columns: dict[str, NDArray[Any]]) -> pa.RecordBatch:
    """Return a record batch that :func:`unpack` reads back exactly."""
    import pyarrow as pa

    arrays = [pa.array(column) for column in columns.values()]
    fields = [pa.field(name, array.type, nullable=False) for name, array in zip(columns, arrays, strict=True)]
    metadata = {KIND: kind.encode(), SCALARS: json.dumps(scalars).encode()}
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata))


def unpack(
    batch: pa.RecordBatch, kind: str, scalars: dict[str, type], columns: dict[str, type]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return scalars and columns of a packed sketch of this kind, with the types asked for.

    Raises
    ------
    CorruptDataError
        If the batch is of another kind, or a scalar or column is missing, of another type, or null.
    """
    import pyarrow as pa

    metadata = (batch.schema.metadata or {}) if isinstance(batch, pa.RecordBatch) else {}
    check_laws(kind, {f"it is a record batch marked as {kind}": metadata.get(KIND) == kind.encode()})
    try:
        found = json.loads(metadata.get(SCALARS, b""))
    except ValueError as error:
        raise CorruptDataError(f"The scalars of this {kind} are not JSON: {error}.", kind=kind) from error
    check_laws(kind, {"the scalars are a JSON object": isinstance(found, dict)})
    check_laws(kind, {f"{name} is a {t.__name__}": type(found.get(name)) is t for name, t in scalars.items()})
    expected = [(name, pa.from_numpy_dtype(np.dtype(t))) for name, t in columns.items()]
    check_laws(
        kind,
        {
            f"the columns are {', '.join(columns)}": [(f.name, f.type) for f in batch.schema] == expected,
            "no value is null": all(column.null_count == 0 for column in batch.columns),
        },
    )
    # Copies: what Arrow hands out is read-only.
    return found, {name: np.array(batch.column(i)) for i, name in enumerate(columns)}


def check_laws(kind: str, laws: dict[str, Any]) -> None:
    """Refuse a stored sketch that breaks one of these laws, and say which."""
    broken = [law for law, holds in laws.items() if not holds]
    if broken:
        raise CorruptDataError(
            f"This is no {kind} as it was stored: it does not hold that {'; nor that '.join(broken)}.",
            kind=kind,
            broken=broken,
        )
