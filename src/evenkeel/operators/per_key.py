"""A plain Python function per key: convenience at Python speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import KeyFailedError
from evenkeel.operators.base import Operator, Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["PerKey"]


@dataclass(frozen=True)
class PerKey(Operator):
    """Call ``function(key, rows, state) -> (state, results)`` for each key of a batch.

    Parameters
    ----------
    function
        Gets the key as a tuple of its columns' values, its tuples of the batch as a list of dicts in the order in which
        they came, and its state as a dict, or ``None`` at first. Gives the new state as a dict and the results as a
        list of dicts. Must be picklable by Spark (a function or lambda will do).
    state
        The columns of the state.
    output
        The columns of the results, without the key columns.
    """

    name = "per_key"
    function: Callable[[tuple[Any, ...], list[dict[str, Any]], dict[str, Any] | None], Any]
    state: pa.Schema
    output: pa.Schema

    def state_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """As given."""
        return self.state

    def output_schema(self, rows: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """As given."""
        return self.output

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:
        """Call the function for one key after the other."""
        rows, starts = groups.rows_by_key()
        before, keys, tuples = states.to_pylist(), groups.keys.to_pylist(), rows.to_pylist()
        after, outputs, key_of = [], [], []
        for i, key in enumerate(keys):
            state_before = before[i] if known[i] else None
            try:
                state, results = self.function(tuple(key.values()), tuples[starts[i] : starts[i + 1]], state_before)
            except Exception as error:
                raise KeyFailedError(f"{type(error).__name__}: {error}", key=tuple(key.values())) from error
            after.append(state)
            outputs += results
            key_of += [i] * len(results)
        return Update(
            pa.Table.from_pylist(after, self.state),
            pa.Table.from_pylist(outputs, self.output),
            np.array(key_of, np.int64),
        )
