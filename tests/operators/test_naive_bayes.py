"""Naive Bayes beside scikit-learn's, on channels that each know a part."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.naive_bayes import CategoricalNB, MultinomialNB

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators.feature_rows import category_rows, count_rows, word_rows
from evenkeel.operators.naive_bayes import FeatureClassCounts, NaiveBayesPredict
from evenkeel.routing import make_router
from operators.harness import run, run_split
from operators.routed import RoutedStage

PIXELS = [f"pixel{i}" for i in range(64)]
GROUPINGS = ["key_grouping", "pkg", "shuffle"]


def digits(probe_from=400, until=500):
    """Handwritten digits as documents: the first are learned, the others ask."""
    values, classes = load_digits(return_X_y=True)
    values, classes = values[:until].astype(np.int64), classes[:until]
    asks = np.arange(until) >= probe_from
    columns = [np.arange(until), pa.array(classes, mask=asks), asks, *values.T]
    return pa.table(columns, names=["document", "class", "probe", *PIXELS]), values, classes, probe_from


def predict(rows, key, router, predictor, learn_in=3):
    """Learn in a few batches, ask in another, and predict from the answers of all channels."""
    stage = RoutedStage(FeatureClassCounts(), rows.schema, key, make_router(router, 5), probe="probe")
    asks = rows["probe"].to_numpy()
    learned = rows.filter(pa.array(~asks))
    step = -(-len(learned) // learn_in)
    for start in range(0, len(learned), step):
        assert stage.feed(learned[start : start + step]).num_rows == 0
    answers = stage.feed(rows.filter(pa.array(asks)))
    outcome = run(predictor, [answers], ["document"])
    assert outcome.states == {}
    return stage, {key[0]: row for key, row in outcome.outputs}


def check_against(model, predictions, values, first):
    logs = model.predict_log_proba(values[first:])
    wanted = model.predict(values[first:])
    assert [predictions[first + i]["class"] for i in range(len(wanted))] == wanted.tolist()
    found = [predictions[first + i]["log_probability"] for i in range(len(wanted))]
    np.testing.assert_allclose(found, logs.max(axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_counts_of_features_predict_as_multinomial_nb(grouping):
    documents, values, classes, first = digits()
    rows = count_rows(documents, PIXELS)
    stage, predictions = predict(rows, ["feature"], grouping, NaiveBayesPredict(vocabulary=64, alpha=0.5))
    check_against(MultinomialNB(alpha=0.5).fit(values[:first], classes[:first]), predictions, values, first)
    features = len(set(rows.filter(pa.compute.invert(rows["probe"]))["feature"].to_pylist()))
    most = {"key_grouping": 1, "pkg": 2, "shuffle": 5}[grouping]
    assert stage.keys_held() <= most * features
    assert grouping == "key_grouping" or stage.keys_held() > features


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("sizes", ["one size", "a size for each feature"])
def test_values_of_features_predict_as_categorical_nb(grouping, sizes):
    documents, values, classes, first = digits()
    least = np.full(64, 17) if sizes == "one size" else 17 + np.arange(64) % 3
    categories = 17 if sizes == "one size" else dict(zip(PIXELS, least.tolist(), strict=True))
    rows = category_rows(documents, PIXELS)
    _, predictions = predict(rows, ["feature", "value"], grouping, NaiveBayesPredict(categories=categories))
    check_against(CategoricalNB(min_categories=least).fit(values[:first], classes[:first]), predictions, values, first)


ROW = st.tuples(
    st.sampled_from(["x", "y", None]),
    st.none() | st.sampled_from([1, 2, 3]),
    st.integers(0, 2),
    st.none() | st.booleans(),
    st.none() | st.integers(1, 4),
)
SCHEMA = pa.schema(
    [
        ("feature", pa.string()),
        ("class", pa.int64()),
        ("document", pa.int64()),
        ("probe", pa.bool_()),
        ("count", pa.int64()),
    ]
)


def tables(batches):
    return [pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in b], SCHEMA) for b in batches]


@settings(max_examples=20)
@given(st.lists(st.lists(ROW, max_size=15), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 3))
def test_counters_and_answers_beside_plain_python(batches, channels, every):
    counts: dict = {}
    answers = []
    for b in batches:
        asked: dict = {}
        for feature, kind, document, probe, count in b:
            if probe:
                asked.setdefault(feature, Counter())[document] += count or 0
            elif kind is not None:
                held = counts.setdefault(feature, {}).setdefault(kind, [0, 0])
                held[0] += 1
                held[1] += count or 0
        for feature, documents in asked.items():
            for document, times in documents.items():
                found = counts.get(feature, {None: [0, 0]})
                answers += [(feature, document, times, kind, *numbers) for kind, numbers in found.items()]
    whole = run(FeatureClassCounts(), tables(batches), ["feature"])
    assert sorted(((*key, *row.values()) for key, row in whole.outputs), key=repr) == sorted(answers, key=repr)
    split = run_split(FeatureClassCounts(), tables(batches), ["feature"], channels=channels, every=every)
    for outcome in (whole, split):
        held = {
            key[0]: {e["class"]: [e["rows"], e["count"]] for e in s["classes"]} for key, s in outcome.states.items()
        }
        assert held == counts
    if every == 1:
        assert sorted(((*key, *row.values()) for key, row in split.outputs), key=repr) == sorted(answers, key=repr)


def test_words_of_documents_that_nothing_is_known_of():
    learned = pa.table({"document": [1, 2], "class": ["up", "down"], "probe": [False] * 2,
                        "words": [["good", "good", "news"], ["bad", None, "news"]]})  # fmt: skip
    asking = pa.table({"document": [3, 4], "class": pa.nulls(2, pa.string()), "probe": [True] * 2,
                       "words": [["good", "new"], []]})  # fmt: skip
    rows = word_rows(pa.concat_tables([learned, asking]), "words")
    _, predictions = predict(rows, ["feature"], "pkg", NaiveBayesPredict(vocabulary=10), learn_in=1)
    # P(up) = P(down) = 1/2; up has 3 words, two of them good; down has 2; 10 words are possible.
    up, down = 3 / 13 * 1 / 13, 1 / 12 * 1 / 12
    assert predictions[3]["class"] == "up"
    assert predictions[3]["log_probability"] == pytest.approx(np.log(up / (up + down)))
    assert predictions[4] == {"class": "down", "log_probability": pytest.approx(np.log(0.5))}  # the first of equals
    nothing = RoutedStage(FeatureClassCounts(), rows.schema, ["feature"], make_router("pkg", 5), probe="probe")
    answers = nothing.feed(rows.filter(rows["probe"]))
    assert nothing.keys_held() == 0
    unknown = run(NaiveBayesPredict(vocabulary=10), [answers], ["document"]).outputs
    assert dict(unknown) == {
        (3,): {"class": None, "log_probability": None},
        (4,): {"class": None, "log_probability": None},
    }


def test_what_is_refused():
    with pytest.raises(InvalidArgumentError, match="either vocabulary"):
        NaiveBayesPredict()
    with pytest.raises(InvalidArgumentError, match="categories must be a whole number"):
        NaiveBayesPredict(categories={"a": 0})
    with pytest.raises(InvalidArgumentError, match="alpha must be above 0"):
        NaiveBayesPredict(vocabulary=1, alpha=0)
    with pytest.raises(UnsupportedTypeError, match="'count' must be true"):
        FeatureClassCounts(probe="count").state_schema(SCHEMA)
    with pytest.raises(UnknownNameError, match="Did you mean 'class'"):
        FeatureClassCounts(class_column="clas").state_schema(SCHEMA)
    with pytest.raises(UnsupportedTypeError, match="lists of words"):
        word_rows(pa.table({"words": ["a"]}), "words")
    answers = pa.table(
        {"document": [1], "feature": ["x"], "value": ["y"], "times": [1], "class": [1], "rows": [1], "count": [1]}
    )
    with pytest.raises(InvalidArgumentError, match="stands for the document itself"):
        run(NaiveBayesPredict(vocabulary=1), [answers], ["document"])
    itself = answers.set_column(1, "feature", pa.nulls(1, pa.string()))
    with pytest.raises(UnknownNameError, match="no feature in categories called 'x'"):
        run(NaiveBayesPredict(categories={"z": 2}), [pa.concat_tables([answers, itself])], ["document"])
