"""The streaming decision tree beside the paper's procedures, StreamingHistogram and scikit-learn."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from evenkeel.errors import CorruptDataError, InvalidArgumentError, UnknownNameError
from evenkeel.operators import fold
from evenkeel.operators.decision_tree import FeatureHistograms, GrowOptions, Tree, assign_leaves, grow, retire_leaves
from evenkeel.operators.decision_tree._kernels_growing import cut_points, sum_below
from evenkeel.routing import make_router
from evenkeel.sketches import StreamingHistogram
from operators.harness import groups_of, run, run_split
from operators.routed import RoutedStage

KEY = ["leaf", "feature"]
SCHEMA = pa.schema([("leaf", pa.int64()), ("feature", pa.int64()), ("value", pa.float64()), ("class", pa.string())])
VALUE = st.none() | st.integers(-30, 30).map(lambda tenths: tenths / 10) | st.sampled_from([np.nan, np.inf])
ROW = st.tuples(st.integers(0, 1), st.integers(0, 1), VALUE, st.sampled_from(["x", "y", None]))
STREAM = st.lists(st.lists(ROW, max_size=25), min_size=1, max_size=4)
few = settings(max_examples=20)


def tables(batches):
    return [pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in b], SCHEMA) for b in batches]


def literal(batches, bins):
    """One StreamingHistogram for each key and class, fed in the stream's order."""
    found: dict = {}
    for leaf, feature, value, kind in itertools.chain(*batches):
        if kind is not None and value is not None and np.isfinite(value):
            found.setdefault((leaf, feature), {}).setdefault(kind, StreamingHistogram(bins)).observe([value])
    return found


def summary(histogram):
    return {
        "minimum": histogram.minimum,
        "maximum": histogram.maximum,
        "exact": len(histogram) < histogram.bins,
        "bins": [
            {"centre": p, "count": m}
            for p, m in zip(histogram.centres.tolist(), histogram.counts.tolist(), strict=True)
        ],
    }


def by_class(state):
    return {h["class"]: {name: h[name] for name in h if name != "class"} for h in state["histograms"]}


@few
@given(STREAM, st.integers(2, 8))
def test_any_cut_gives_the_histograms_of_the_whole_stream(batches, bins):
    outcome = run(FeatureHistograms(bins), tables(batches), KEY)
    wanted = literal(batches, bins)
    for key, state in outcome.states.items():
        assert by_class(state) == {kind: summary(h) for kind, h in wanted.get(key, {}).items()}
        assert outcome.last()[key]["histograms"] == state["histograms"]
    assert set(wanted) <= set(outcome.states)


@few
@given(STREAM, st.integers(2, 8))
def test_merging_is_the_sketch_merging(batches, bins):
    operator = FeatureHistograms(bins)
    every = [(leaf, feature, None, None) for leaf in (0, 1) for feature in (0, 1)]
    first, rest = [every + batches[0]], [every, *batches[1:]]
    groups = [groups_of(pa.concat_tables(tables(part)), KEY) for part in (first, rest)]
    merged = operator.merge(*(operator.lift(g) for g in groups))
    assert merged.equals(operator.merge(*(operator.lift(g) for g in reversed(groups))))
    one, two = literal(first, bins), literal(rest, bins)
    empty = StreamingHistogram(bins)
    for key, state in zip(groups[0].keys.to_pylist(), merged.to_pylist(), strict=True):
        left, right = (side.get(tuple(key.values()), {}) for side in (one, two))
        wanted = {kind: left.get(kind, empty).merge(right.get(kind, empty)) for kind in {**left, **right}}
        assert by_class(state) == {kind: summary(h) for kind, h in wanted.items()}


@few
@given(STREAM, st.integers(2, 40), st.integers(1, 3), st.integers(1, 3), st.integers(0, 9))
def test_split_keys_keep_totals_and_ranges_and_all_where_values_are_few(batches, bins, channels, every, seed):
    whole = run(FeatureHistograms(bins), tables(batches), KEY).states
    split = run_split(FeatureHistograms(bins), tables(batches), KEY, channels=channels, every=every, seed=seed).states
    assert whole.keys() == split.keys()
    for key, state in whole.items():
        one, two = by_class(state), by_class(split[key])
        assert one.keys() == two.keys()
        for kind, histogram in one.items():
            other = two[kind]
            if histogram["exact"] and other["exact"]:
                assert histogram == other
            for name in ("minimum", "maximum", "exact"):
                assert histogram[name] == other[name]
            assert sum(b["count"] for b in histogram["bins"]) == sum(b["count"] for b in other["bins"])


def test_a_leaf_that_is_retired_is_forgotten_also_where_it_is_split():
    operator = FeatureHistograms(retire="gone")
    rows = [
        {"leaf": 0, "feature": 0, "value": 1.0, "class": "x", "gone": False},
        {"leaf": 1, "feature": 0, "value": 1.0, "class": "x", "gone": None},
        {"leaf": 0, "feature": 0, "value": None, "class": None, "gone": True},
    ]
    batches = [pa.Table.from_pylist([row], SCHEMA.append(pa.field("gone", pa.bool_()))) for row in rows]
    for outcome in (run(operator, batches, KEY), run_split(operator, batches, KEY, every=2)):
        assert set(outcome.states) == {(1, 0)}
    tree = Tree.leaf(["a", "b"], ["x", "y"])
    grown = grow(tree, histograms_of(tree, pa.table({"a": [1.0, 2], "b": [1, 1], "class": ["x", "y"]})), EAGER)
    assert retire_leaves(tree, grown).to_pylist() == [{"leaf": 0, "feature": 0}, {"leaf": 0, "feature": 1}]
    assert retire_leaves(grown, grown).num_rows == 0


@few
@given(
    st.lists(st.integers(-50, 50).map(lambda n: n / 7), min_size=1, max_size=40), st.integers(2, 9), st.integers(1, 9)
)
def test_sums_and_cut_points_are_the_sketch_s(values, bins, parts):
    histogram = StreamingHistogram(bins)
    histogram.observe(values)
    inexact = len(histogram) == bins
    ends = histogram.minimum, histogram.maximum
    points = [*np.linspace(-8, 8, 33), *values]
    found = [sum_below(histogram.centres, histogram.counts, not inexact, *ends, p) for p in points]
    if inexact:
        np.testing.assert_allclose(found, histogram.sum(points), atol=1e-9)
    else:
        assert found == [sum(v <= p for v in values) for p in points]
    out = np.empty(parts)
    tried = cut_points(histogram.centres, histogram.counts.astype(float), *ends, parts, out)
    if len(histogram) - 1 <= parts:
        np.testing.assert_allclose(out[:tried], (histogram.centres[1:] + histogram.centres[:-1]) / 2, atol=1e-12)
    else:
        np.testing.assert_allclose(out[:tried], histogram.uniform(parts + 1), atol=1e-6)


EAGER = GrowOptions(min_rows=2, candidates=64)


def histograms_of(tree, rows, operator=FeatureHistograms(64)):
    groups = groups_of(assign_leaves(tree, rows), KEY)
    states = operator.lift(groups)
    return pa.table([*groups.keys.columns, states["histograms"]], names=[*KEY, "histograms"])


def purity(labels, measure):
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return 1 - (shares**2).sum() if measure == "gini" else -(shares * np.log2(shares)).sum()


@few
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3), st.sampled_from("xyz")), min_size=2, max_size=30),
    st.sampled_from(["gini", "entropy"]),
)
def test_the_first_split_is_the_best_of_all_where_values_are_few(rows, measure):
    columns = list(zip(*rows, strict=True))
    table = pa.table({"a": columns[0], "b": columns[1], "class": columns[2]})
    tree = Tree.leaf(["a", "b"], ["x", "y", "z"])
    grown = grow(tree, histograms_of(tree, table), GrowOptions(impurity=measure, min_rows=2, min_gain=1e-9))
    labels = np.array(columns[2])
    gains = {}
    for feature in (0, 1):
        values = np.array(columns[feature])
        for low, high in itertools.pairwise(np.unique(values)):
            below = values <= (low + high) / 2
            sides = [purity(labels[side], measure) * side.mean() for side in (below, ~below)]
            gains[feature, (low + high) / 2] = purity(labels, measure) - sum(sides)
    best = max(gains.values(), default=0)
    if best < 1e-9:
        assert len(grown) == 1
        assert grown.counts[0].tolist() == [columns[2].count(c) for c in "xyz"]
    else:
        assert len(grown) == 3
        assert gains[int(grown.feature_of[0]), float(grown.thresholds[0])] == pytest.approx(best)
        below = np.array(columns[grown.feature_of[0]]) <= grown.thresholds[0]
        assert grown.counts[1].tolist() == [(labels[below] == c).sum() for c in "xyz"]
        assert grown.counts[2].tolist() == [(labels[~below] == c).sum() for c in "xyz"]


def train(rows, features, classes, options, operator, passes=20):
    """The paper's loop on data at hand: assign leaves, make histograms, grow; until it grows no more."""
    tree = Tree.leaf(features, classes)
    for _ in range(passes):
        grown = grow(tree, histograms_of(tree, rows, operator), options)
        if len(grown) == len(tree):
            break
        tree = grown
    return tree


@pytest.mark.parametrize(
    ("load", "bins", "slack"),
    [(load_breast_cancer, 32, 0.02), (load_wine, 32, 0.03), (load_digits, 32, 0.03)],
    ids=["breast cancer", "wine", "digits"],
)
def test_it_predicts_about_as_well_as_a_tree_that_saw_all_values(load, bins, slack):
    values, classes = load(return_X_y=True)
    features = [f"f{i}" for i in range(values.shape[1])]
    ours, theirs = [], []
    for seed in range(3):
        x, x_test, y, y_test = train_test_split(values, classes, random_state=seed, test_size=0.3)
        rows, test = (pa.table([*a.T, b], names=[*features, "class"]) for a, b in ((x, y), (x_test, y_test)))
        options = GrowOptions(min_rows=2, candidates=bins)
        tree = train(rows, features, np.unique(classes).tolist(), options, FeatureHistograms(bins))
        ours.append((np.array(tree.predict(test)) == y_test).mean())
        theirs.append(DecisionTreeClassifier(random_state=0).fit(x, y).score(x_test, y_test))
    assert np.mean(ours) >= np.mean(theirs) - slack


@pytest.mark.parametrize("channels", [4, 12])
def test_memory_is_two_histograms_per_feature_class_and_leaf_whatever_the_channels(channels):
    """§VI-B: at most 2·D·C·L under PKG on (leaf, feature), up to W·D·C·L when whole rows are shuffled."""
    values, classes = load_digits(return_X_y=True)
    features = [f"f{i}" for i in range(64)]
    rows = pa.table([*values.T, classes], names=[*features, "class"])
    operator = FeatureHistograms(16)
    tree = train(rows, features, list(range(10)), GrowOptions(min_rows=100), operator, passes=2)
    leaves = len(tree.leaves)
    exploded = assign_leaves(tree, rows)
    whole = histograms_of(tree, rows, operator)
    triples = sum(len(histograms) for histograms in whole["histograms"].to_pylist())
    assert triples <= 64 * 10 * leaves
    kept = {}
    for name in ("pkg", "shuffle"):
        if name == "pkg":
            stage = RoutedStage(operator, exploded.schema, KEY, make_router("pkg", channels))
            stage.feed(exploded)
            parts = stage.parts()
        else:
            dealt = make_router("shuffle", channels).route(np.arange(len(rows)))
            pieces = [groups_of(assign_leaves(tree, rows.filter(pa.array(dealt == c))), KEY) for c in range(channels)]
            names = [*KEY, *operator.state_schema(exploded.schema).names]
            parts = pa.concat_tables(
                [pa.table([*g.keys.columns, *operator.lift(g).columns], names=names) for g in pieces]
            )
        kept[name] = sum(len(histograms) for histograms in parts["histograms"].to_pylist())
        groups = groups_of(parts, KEY)
        assert groups.counts.max() <= (2 if name == "pkg" else channels)
        merged = fold(operator, parts.drop_columns(KEY), groups.key_of, len(groups))
        again = pa.table([*groups.keys.columns, merged["histograms"]], names=[*KEY, "histograms"])
        grown = grow(tree, again, GrowOptions(min_rows=100))
        accuracy = [(np.array(t.predict(rows)) == classes).mean() for t in (grow(tree, whole, GrowOptions()), grown)]
        assert accuracy[1] >= accuracy[0] - 0.1
    assert triples < kept["pkg"] <= 2 * triples
    assert kept["shuffle"] > kept["pkg"] * (1 if channels == 4 else 2)


def test_a_tree_that_grows_while_rows_stream_by():
    """Each batch is assigned by the tree of the batch before; what is learned stays in the state between growths."""
    rng = np.random.default_rng(1)
    operator, tree = FeatureHistograms(24, retire="gone"), Tree.leaf(["a", "b"], [False, True])
    schema = pa.schema([*SCHEMA.set(3, pa.field("class", pa.bool_())), ("gone", pa.bool_())])
    stage = RoutedStage(operator, schema, KEY, make_router("key_grouping", 3))
    latest: dict = {}
    gone = retire_leaves(tree, tree)
    for _ in range(30):
        a, b = rng.uniform(-1, 1, (2, 200))
        rows = assign_leaves(tree, pa.table({"a": a, "b": b, "class": (a > 0.25) != (b > -0.4)}))
        rows = rows.append_column("gone", pa.repeat(False, len(rows)))
        nobody = [pa.nulls(len(gone), pa.float64()), pa.nulls(len(gone), pa.bool_()), pa.repeat(True, len(gone))]
        batch = pa.concat_tables([rows, pa.table([*gone.columns, *nobody], schema=schema)])
        for row in stage.feed(batch).to_pylist():
            latest[row["leaf"], row["feature"]] = row
        grown = grow(tree, pa.Table.from_pylist(list(latest.values())), GrowOptions(min_rows=400, min_gain=0.01))
        gone = retire_leaves(tree, grown)
        latest = {key: row for key, row in latest.items() if grown.left[key[0]] < 0}
        tree = grown
    a, b = rng.uniform(-1, 1, (2, 2_000))
    accuracy = (np.array(tree.predict(pa.table({"a": a, "b": b}))) == ((a > 0.25) != (b > -0.4))).mean()
    assert accuracy > 0.95
    assert stage.keys_held() <= 2 * (len(tree.leaves) + len(gone))  # split leaves are forgotten


def test_limits_of_growth():
    rng = np.random.default_rng(2)
    values, classes = rng.normal(size=(500, 3)), rng.integers(0, 3, 500)
    rows = pa.table([*values.T, classes], names=["a", "b", "c", "class"])
    for options in (
        GrowOptions(max_depth=2, min_gain=0, min_rows=2),
        GrowOptions(max_leaves=7, min_gain=0, min_rows=2),
    ):
        tree = train(rows, ["a", "b", "c"], [0, 1, 2], options, FeatureHistograms(16))
        assert tree.depths.max() == 2 if options.max_depth == 2 else len(tree.leaves) == 7
    assert len(train(rows, ["a", "b", "c"], [0, 1, 2], GrowOptions(min_rows=501), FeatureHistograms(16))) == 1
    assert len(train(rows, ["a", "b", "c"], [0, 1, 2], GrowOptions(min_gain=0.5), FeatureHistograms(16))) == 1
    wide = train(rows, ["a", "b", "c"], [0, 1, 2], GrowOptions(min_leaf=60, min_gain=0), FeatureHistograms(16))
    assert np.bincount(wide.leaf_of(values))[wide.leaves].min() > 30  # 60 by the histograms' estimate


def small_tree():
    values, classes = load_wine(return_X_y=True)
    rows = pa.table([*values.T[:4], classes], names=[*"abcd", "class"])
    return train(rows, list("abcd"), [0, 1, 2], EAGER, FeatureHistograms(16)), rows


def test_a_tree_is_a_value():
    tree, rows = small_tree()
    for twin in (Tree.from_json(tree.to_json()), pickle.loads(pickle.dumps(tree))):
        assert twin.to_json() == tree.to_json()
        assert twin.predict(rows).equals(tree.predict(rows))
    np.testing.assert_allclose(tree.probabilities(rows).sum(axis=1), 1)
    assert (np.array(tree.classes)[tree.probabilities(rows).argmax(axis=1)] == np.array(tree.predict(rows))).all()
    missing = rows.slice(0, 1).set_column(0, "a", pa.nulls(1, pa.float64()))
    assert len(tree.predict(missing)) == 1
    assert set(assign_leaves(tree, missing)["feature"].to_pylist()) == {1, 2, 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("left"), "KeyError"),
        (lambda t: t["left"].__setitem__(0, 0), "do not fit together"),
        (lambda t: t["feature_of"].__setitem__(0, 9), "do not fit together"),
        (lambda t: t["depths"].append(1), "do not fit together"),
        (lambda t: t["counts"].pop(), "do not fit together"),
    ],
    ids=["a column is missing", "a node is its own child", "an unknown feature", "a node too many", "counts too few"],
)
def test_text_that_is_no_tree_is_refused(change, message):
    found = json.loads(small_tree()[0].to_json())
    change(found)
    with pytest.raises(CorruptDataError, match=message):
        Tree.from_json(json.dumps(found))


def test_what_is_refused():
    tree = Tree.leaf(["a"], ["x", "y"])
    with pytest.raises(InvalidArgumentError, match="features must be different"):
        Tree.leaf(["a", "a"], ["x"])
    with pytest.raises(InvalidArgumentError, match="bins must be a whole number of at least 2"):
        FeatureHistograms(1)
    with pytest.raises(InvalidArgumentError, match="impurity must be"):
        GrowOptions(impurity="mse")
    with pytest.raises(UnknownNameError, match="Did you mean 'value'"):
        FeatureHistograms(value_column="valeu").state_schema(SCHEMA)
    rows = pa.table({"a": [1.0, 2], "class": ["x", "z"]})
    with pytest.raises(UnknownNameError, match="no class called 'z'"):
        grow(tree, histograms_of(tree, rows))
    with pytest.raises(UnknownNameError, match="no column called 'a'"):
        tree.predict(rows.drop_columns("a"))
    stranger = histograms_of(tree, rows).set_column(0, "leaf", pa.array([7]))
    with pytest.raises(InvalidArgumentError, match="tell of leaf 7"):
        grow(tree, stranger)
