"""What a part of the controller stores in a checkpoint: plain facts, and arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenkeel.errors import CorruptDataError, IncompatibleCheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Saved"]

FORMAT = 1
_MARK, _FACTS = b"evenkeel.control", b"facts"


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """Facts that JSON can hold, and one-dimensional arrays that Arrow can.

    Parts nest, so that each part of the controller stores itself and knows nothing of the others.

    Examples
    --------
    >>> import numpy as np
    >>> whole = Saved.of_parts(log=Saved({"next": 3}), drift=Saved({}, {"slots": np.array([1.0, 2.0])}))
    >>> again = Saved.from_arrow(whole.to_arrow())
    >>> again.part("log").facts, again.part("drift").arrays["slots"].tolist()
    ({'next': 3}, [1.0, 2.0])
    """

    facts: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of_parts(cls, **parts: Saved) -> Saved:
        """Put several parts into one."""
        arrays = {f"{name}/{inner}": array for name, part in parts.items() for inner, array in part.arrays.items()}
        return cls({name: part.facts for name, part in parts.items()}, arrays)

    def part(self, name: str) -> Saved:
        """Take one part out again."""
        if name not in self.facts:
            raise CorruptDataError(f"The stored state of the controller has no part {name!r}.", part=name)
        start = f"{name}/"
        mine = {key.removeprefix(start): array for key, array in self.arrays.items() if key.startswith(start)}
        return Saved(self.facts[name], mine)

    def to_arrow(self) -> pa.Table:
        """Give one row with a list column per array; the facts are in the schema's metadata, as JSON."""
        metadata = {_MARK: str(FORMAT), _FACTS: json.dumps(self.facts, allow_nan=False)}
        columns = {
            name: pa.array([array], pa.list_(pa.from_numpy_dtype(array.dtype))) for name, array in self.arrays.items()
        }
        return pa.table(columns).replace_schema_metadata(metadata)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Saved:
        """Read what :meth:`to_arrow` gave."""
        metadata = table.schema.metadata or {}
        if _MARK not in metadata or _FACTS not in metadata:
            raise CorruptDataError("This Arrow table is not a stored controller: its schema does not say so.")
        if int(metadata[_MARK]) > FORMAT:
            raise IncompatibleCheckpointError(
                f"The controller was stored in format {int(metadata[_MARK])}; this version reads {FORMAT}. "
                "Use the version of Evenkeel that wrote it, or a newer one."
            )
        arrays = {
            name: table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False) for name in table.column_names
        }
        return cls(json.loads(metadata[_FACTS]), arrays)
