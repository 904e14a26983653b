"""How a tree grows: leaves are split where merged histograms promise the greatest gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.operators.checks import at_least
from evenkeel.operators.decision_tree.flat import FlatHistograms
from evenkeel.operators.decision_tree.tree import Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GrowOptions", "grow"]


@dataclass(frozen=True, slots=True)
class GrowOptions:
    """When and how leaves are split.

    Parameters
    ----------
    impurity
        ``"gini"`` or ``"entropy"``.
    candidates
        Thresholds to try for each feature.
    min_rows
        Rows that a leaf must have seen since it came to be, before it is split.
    min_leaf
        Rows that either side of a split must be estimated to have.
    min_gain
        Impurity that a split must take away, per row of the leaf.
    max_depth, max_leaves
        Where the tree stops growing. If only some leaves may be split, those that gain most by it are.
    """

    impurity: Literal["gini", "entropy"] = "gini"
    candidates: int = 32
    min_rows: int = 20
    min_leaf: float = 1.0
    min_gain: float = 1e-3
    max_depth: int = 30
    max_leaves: int = 10_000

    def __post_init__(self) -> None:
        if self.impurity not in ("gini", "entropy"):
            raise InvalidArgumentError(f"impurity must be 'gini' or 'entropy'; got {self.impurity!r}.")
        for what in ("candidates", "min_rows", "max_depth", "max_leaves"):
            at_least(what, getattr(self, what), 1)
        if not self.min_leaf > 0 or not self.min_gain >= 0:
            raise InvalidArgumentError(
                f"min_leaf must be above 0 and min_gain not below; got {self.min_leaf} and {self.min_gain}."
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Tests:
    """The best test of each key (leaf, feature) on its own."""

    leaves: NDArray[np.int64]
    features: NDArray[np.int64]
    gains: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    lefts: NDArray[np.float64]
    totals: NDArray[np.float64]


def grow(tree: Tree, histograms: pa.Table, options: GrowOptions | None = None) -> Tree:
    """Give the tree with its leaves' counts brought up to date, and the leaves split that are worth it.

    Parameters
    ----------
    tree
        The tree by which leaves were assigned.
    histograms
        Keys ``leaf`` and ``feature`` (its number), each once, with all of their merged ``histograms``, as
        :class:`FeatureHistograms` gives them. Leaves that are not there, or that the tree has split since, are left
        alone.
    options
        When and how leaves are split.

    Notes
    -----
    Splitting a leaf of n rows gains ``impurity(leaf) − (n₁·impurity(left) + n₂·impurity(right)) / n``, with each side's
    class counts from the histograms' sums below the threshold. The best over all candidates and features wins; among
    equals the lower feature, and the lower threshold. O(keys · candidates · classes · bins).

    References
    ----------
    Y. Ben-Haim, E. Tom-Tov, "A streaming parallel decision tree algorithm", JMLR 11 (2010), section 2.2.
    """
    options = options or GrowOptions()
    tests = _best_tests(tree, histograms, options)
    # Values may be missing, so the feature that has most of a class's rows tells how many there are.
    measured = np.zeros_like(tree.counts)
    np.maximum.at(measured, tests.leaves, tests.totals)
    counts = np.where(measured.sum(axis=1, keepdims=True) > 0, tree.inherited + measured, tree.counts)
    seen = measured.sum(axis=1)[tests.leaves]
    promising = np.flatnonzero(
        (tests.gains > 0)
        & (tests.gains >= options.min_gain)
        & (seen >= options.min_rows)
        & (tree.depths[tests.leaves] < options.max_depth)
    )
    order = promising[np.lexsort((tests.features[promising], -tests.gains[promising], tests.leaves[promising]))]
    best = order[np.unique(tests.leaves[order], return_index=True)[1]]
    room = max(options.max_leaves - len(tree.leaves), 0)
    chosen = best[np.argsort(-(tests.gains * seen)[best], kind="stable")[:room]]
    return _split(tree, tests, np.sort(chosen), counts)


def _split(tree: Tree, tests: _Tests, chosen: NDArray[np.int64], counts: NDArray[np.float64]) -> Tree:
    nodes = tests.leaves[chosen]
    children = len(tree) + np.arange(2 * len(nodes))
    lefts = tests.lefts[chosen]
    sent = np.empty((2 * len(nodes), len(tree.classes)))
    sent[::2], sent[1::2] = lefts, tests.totals[chosen] - lefts
    none = np.full(len(children), -1)
    feature_of, left, right = (np.append(column, none) for column in (tree.feature_of, tree.left, tree.right))
    thresholds = np.append(tree.thresholds, np.zeros(len(children)))
    feature_of[nodes], thresholds[nodes] = tests.features[chosen], tests.thresholds[chosen]
    left[nodes], right[nodes] = children[::2], children[1::2]
    depths = np.append(tree.depths, np.repeat(tree.depths[nodes] + 1, 2))
    inherited, counts = np.concatenate([tree.inherited, sent]), np.concatenate([counts, sent])
    return Tree(tree.features, tree.classes, feature_of, thresholds, left, right, depths, inherited, counts)


def _best_tests(tree: Tree, histograms: pa.Table, options: GrowOptions) -> _Tests:
    from evenkeel.operators.decision_tree import _kernels_growing as kernels

    for name in ("leaf", "feature", "histograms"):
        if name not in histograms.column_names:
            raise UnknownNameError("column", name, histograms.column_names)
    leaves, features = histograms["leaf"].to_numpy(), histograms["feature"].to_numpy()
    for what, numbers, limit in (("leaf", leaves, len(tree)), ("feature", features, len(tree.features))):
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < limit:
            raise InvalidArgumentError(
                f"The histograms tell of {what} {numbers.max()}, which this tree does not have. They must come from "
                "rows that this tree, or an earlier one of the same growth, assigned."
            )
    still = tree.left[leaves] < 0
    leaves, features = leaves[still].astype(np.int64), features[still].astype(np.int64)
    flat = FlatHistograms.of(histograms["histograms"].filter(pa.array(still)))
    known = pa.array(tree.classes)
    class_of = pc.index_in(flat.classes.cast(known.type), known)
    if class_of.null_count:
        stranger = flat.classes.filter(class_of.is_null())[0].as_py()
        raise UnknownNameError("class", str(stranger), [str(name) for name in tree.classes])
    keys = len(leaves)
    gains, thresholds = np.zeros(keys), np.zeros(keys)
    lefts, totals = np.zeros((2, keys, len(tree.classes)))
    kernels.best_tests(
        *(np.searchsorted(flat.row_of, np.arange(keys + 1)), np.array(class_of, np.int64), flat.minimum, flat.maximum),
        *(flat.exact, flat.starts, flat.centres, flat.counts),
        *(options.candidates, float(options.min_leaf), options.impurity == "entropy"),
        *(gains, thresholds, lefts, totals),
    )
    return _Tests(leaves, features, gains, thresholds, lefts, totals)
