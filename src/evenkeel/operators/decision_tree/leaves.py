"""Rows as one row per feature at the leaf where they arrive: pure Arrow, to be called before the shuffle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.errors import UnknownNameError
from evenkeel.operators.ragged import one_chunk

if TYPE_CHECKING:
    from evenkeel.operators.decision_tree.tree import Tree

__all__ = ["assign_leaves", "retire_leaves"]


def assign_leaves(tree: Tree, rows: pa.Table, class_column: str = "class") -> pa.Table:
    """Give each row's features one by one: ``leaf``, ``feature`` (its number), ``value``, ``class``.

    Rows without a class, and values that are missing or not finite, are left out. O(rows · (features + depth)).

    Examples
    --------
    >>> from evenkeel.operators.decision_tree import Tree
    >>> boats = pa.table({"length": [9.5, 12.0], "masts": [1, 2], "class": ["sloop", "ketch"]})
    >>> assign_leaves(Tree.leaf(["length", "masts"], ["sloop", "ketch"]), boats).drop_columns("class").to_pydict()
    {'leaf': [0, 0, 0, 0], 'feature': [0, 1, 0, 1], 'value': [9.5, 1.0, 12.0, 2.0]}
    """
    if class_column not in rows.column_names:
        raise UnknownNameError("column", class_column, rows.column_names)
    rows = rows.filter(rows[class_column].is_valid())
    values = tree.values(rows)
    row_of, feature_of = np.nonzero(np.isfinite(values))
    columns = {
        "leaf": tree.leaf_of(values)[row_of],
        "feature": feature_of,
        "value": values[row_of, feature_of],
        "class": one_chunk(rows[class_column]).take(pa.array(row_of)),
    }
    return pa.table(columns)


def retire_leaves(before: Tree, after: Tree) -> pa.Table:
    """Give the keys, ``leaf`` and ``feature``, of the leaves of one tree that are split in a later one."""
    split = before.leaves[after.left[before.leaves] >= 0]
    features = len(before.features)
    return pa.table({"leaf": np.repeat(split, features), "feature": np.tile(np.arange(features), len(split))})
