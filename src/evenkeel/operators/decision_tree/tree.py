"""A decision tree as a value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import CorruptDataError, InvalidArgumentError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Tree"]


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A binary tree of tests ``value ≤ threshold``; node 0 is the root, and nodes keep their numbers as the tree grows.

    Parameters
    ----------
    features
        Names of the columns that are tested.
    classes
        What may be predicted: texts, numbers or booleans.
    feature_of, thresholds
        The test of each node; a leaf has feature −1.
    left, right
        Where a node sends values up to its threshold, and where the others, missing ones among them; −1 at a leaf.
    depths
        How far each node is from the root.
    inherited
        For each node and class, how many rows its parent is estimated to have sent there before it was split.
    counts
        For each node and class, those and what came since, as of the last growth.

    Examples
    --------
    >>> tree = Tree.leaf(["width"], ["cat", "dog"])
    >>> tree.predict(pa.table({"width": [0.3]})).to_pylist()
    ['cat']
    """

    features: tuple[str, ...]
    classes: tuple[Any, ...]
    feature_of: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    depths: NDArray[np.int64]
    inherited: NDArray[np.float64]
    counts: NDArray[np.float64]

    @classmethod
    def leaf(cls, features: Sequence[str], classes: Sequence[Any]) -> Tree:
        """Give the tree that is one leaf, from which all begins."""
        if not features or len(set(features)) < len(features):
            raise InvalidArgumentError(f"features must be different names, at least one; got {list(features)}.")
        if not classes or len(set(classes)) < len(classes):
            raise InvalidArgumentError(f"classes must be different values, at least one; got {list(classes)}.")
        none = np.full(1, -1)
        nothing = np.zeros((1, len(classes)))
        return cls(
            tuple(features), tuple(classes), none, np.zeros(1), none, none, np.zeros(1, np.int64), nothing, nothing
        )

    def __len__(self) -> int:
        return len(self.left)

    @property
    def leaves(self) -> NDArray[np.int64]:
        """The numbers of the leaves."""
        return np.flatnonzero(self.left < 0)

    def values(self, rows: pa.Table) -> NDArray[np.float64]:
        """Give the features of rows as a matrix, NaN where there is no value."""
        for name in self.features:
            if name not in rows.column_names:
                raise UnknownNameError("column", name, rows.column_names)
        columns = [pc.fill_null(rows[name].cast(pa.float64()), np.nan).to_numpy() for name in self.features]
        return np.column_stack(columns)

    def leaf_of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Give the leaf at which each row of a matrix arrives. O(rows · depth)."""
        node = np.zeros(len(values), np.int64)
        moving = np.arange(len(values))
        while len(moving):
            moving = moving[self.left[node[moving]] >= 0]
            at = node[moving]
            below = values[moving, self.feature_of[at]] <= self.thresholds[at]
            node[moving] = np.where(below, self.left[at], self.right[at])
        return node

    def predict(self, rows: pa.Table) -> pa.Array:
        """Give the likeliest class of each row; of equally likely ones, the first."""
        best = self.counts.argmax(axis=1)
        return pa.array(self.classes).take(pa.array(best[self.leaf_of(self.values(rows))]))

    def probabilities(self, rows: pa.Table) -> NDArray[np.float64]:
        """Give the share of each class at each row's leaf, with one more row of each class (Laplace)."""
        counts = self.counts[self.leaf_of(self.values(rows))] + 1
        return counts / counts.sum(axis=1, keepdims=True)

    def to_json(self) -> str:
        """Give the tree as text; floats come back bit for bit."""
        names = [name for name in self.__dataclass_fields__ if name not in ("features", "classes")]
        arrays = {name: getattr(self, name).tolist() for name in names}
        return json.dumps({"features": list(self.features), "classes": list(self.classes), **arrays})

    @classmethod
    def from_json(cls, text: str) -> Tree:
        """Give the tree that :meth:`to_json` gave; CorruptDataError if it cannot be one."""
        try:
            found = json.loads(text)
            arrays: dict[str, Any] = {
                name: np.array(found[name], np.float64 if name in ("thresholds", "inherited", "counts") else np.int64)
                for name in cls.__dataclass_fields__
                if name not in ("features", "classes")
            }
            tree = cls(tuple(found["features"]), tuple(found["classes"]), **arrays)
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptDataError(f"This is no tree: {type(error).__name__}: {error}.") from error
        if not tree._is_sound():
            raise CorruptDataError("This is no tree: its nodes do not fit together.")
        return tree

    def _is_sound(self) -> bool:
        nodes, classes = len(self.left), len(self.classes)
        flat = (self.feature_of, self.thresholds, self.left, self.right, self.depths)
        if not nodes or any(column.shape != (nodes,) for column in flat):
            return False
        if any(matrix.shape != (nodes, classes) for matrix in (self.inherited, self.counts)):
            return False
        inner = np.flatnonzero(self.left >= 0)
        children = np.concatenate([self.left[inner], self.right[inner]])
        return bool(
            # Every node but the root is the child of one earlier node.
            np.array_equal(np.sort(children), np.arange(1, nodes))
            and (children > np.concatenate([inner, inner])).all()
            and ((self.feature_of >= 0) == (self.left >= 0)).all()
            and (self.feature_of < len(self.features)).all()
        )
