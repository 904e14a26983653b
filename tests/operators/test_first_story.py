"""First story detection beside a literal comparison of every text with the last ones of its key."""

from __future__ import annotations

import math
import os
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnsupportedTypeError
from evenkeel.operators.first_story import MaxSimilarity, first_story, lsh_keys
from operators.harness import run

SCHEMA = pa.schema([("key", pa.int64()), ("text", pa.string())])
WORDS = st.sampled_from(["rain", "Rain", "rome", "ROME", "a", "b", "c", "#x", "$x", "@x", "été", "Été", "1", "x_y"])
TEXTS = st.none() | st.lists(WORDS, max_size=6).flatmap(
    lambda words: st.sampled_from([" ", ", ", "! ", " - "]).map(lambda gap: gap.join(words))
)


def terms(text) -> Counter:
    return Counter(re.findall(r"[\w#@$]+", text.lower()))


def cosine(one, other) -> float:
    a, b = terms(one), terms(other)
    lengths = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return sum(a[term] * b[term] for term in a) / lengths if lengths else 0.0


@settings(max_examples=60)
@given(st.lists(st.lists(st.tuples(st.integers(0, 1), TEXTS), max_size=8), min_size=1, max_size=4), st.integers(1, 4))
def test_alarms_are_those_of_comparing_with_every_kept_text(batches, last):
    tables = [pa.table([[k for k, _ in rows], [t for _, t in rows]], schema=SCHEMA) for rows in batches]
    outcome = run(first_story(last=last, threshold=0.5), tables)
    kept: dict = defaultdict(list)
    wanted: dict = defaultdict(list)
    for key, text in (row for rows in batches for row in rows):
        before = [other for other in kept[key][-last:] if other is not None]
        nearest = max((cosine(text, other) for other in before), default=None) if text is not None else None
        if text is not None and (nearest or 0.0) < 0.5 - 1e-9:
            wanted[key].append((text, nearest))
        elif nearest is not None and nearest < 0.5 + 1e-9:
            return  # on the edge, where rounding decides
        kept[key].append(text)
    for key in (0, 1):
        found = [(row["text"], row["similarity"]) for row in outcome.of(key)]
        assert [text for text, _ in found] == [text for text, _ in wanted[key]]
        for (_, similarity), (_, nearest) in zip(found, wanted[key], strict=True):
            assert (similarity is None) == (nearest is None)
            assert similarity == pytest.approx(nearest, abs=1e-6)


def test_a_story_is_first_once_and_what_is_forgotten_is_new_again():
    texts = ["rain in rome", "Rain in Rome!", "fire in paris", "snow on etna", "rain in rome"]
    rows = pa.table({"key": [7] * 5, "text": texts})
    alarms = [row["text"] for row in run(first_story(last=2, threshold=0.4), [rows]).of(7)]
    assert alarms == ["rain in rome", "fire in paris", "snow on etna", "rain in rome"]
    assert [r["text"] for r in run(first_story(last=3, threshold=0.4), [rows]).of(7)] == alarms[:3] + alarms[4:]


def test_long_texts_whose_terms_crowd_the_table_are_compared_exactly():
    words = [f"w{i}" for i in range(9000)]
    one, other = " ".join(words[:6000]), " ".join(words[3000:])
    rows = pa.table({"key": [1, 1], "text": [one, other]})
    found = run(first_story(threshold=1.0), [rows]).of(1)
    assert found[1]["similarity"] == pytest.approx(0.5, abs=1e-4)


def test_the_last_texts_are_kept_as_terms_and_weights():
    rows = pa.table({"key": [1] * 9, "text": ["a b b"] * 9})
    outcome = run(first_story(last=3), [rows])
    history = outcome.states[1,]["history_0"]
    assert len(history) == 3
    assert sorted(term["weight"] for term in history[0]["item_0"]) == pytest.approx([1 / 5**0.5, 2 / 5**0.5])


@given(st.lists(TEXTS, max_size=10), st.sampled_from([1, 2, 64, 4096]), st.integers(0, 3))
def test_a_texts_key_depends_on_its_terms_alone(texts, keys, seed):
    found = lsh_keys(pa.array(texts, pa.string()), keys, seed).to_pylist()
    assert all(key is None if text is None else 0 <= key < keys for text, key in zip(texts, found, strict=True))
    shuffled = [
        None if text is None else " ... ".join(reversed(re.findall(r"[\w#@$]+", text.upper()))) for text in texts
    ]
    assert lsh_keys(pa.chunked_array([shuffled], pa.large_string()), keys, seed).to_pylist() == found


def test_keys_agree_as_often_as_the_angle_says():
    rng = np.random.default_rng(1)
    base = [f"w{i}" for i in range(20)]
    other = base[:15] + [f"v{i}" for i in range(5)]  # cosine 3/4
    agree = [
        lsh_keys(pa.array([" ".join(base), " ".join(other)]), keys=16, seed=int(seed))
        for seed in rng.integers(1 << 60, size=2000)
    ]
    share = np.mean([pair[0] == pair[1] for pair in agree])
    assert share == pytest.approx((1 - math.acos(0.75) / math.pi) ** 4, abs=0.05)


def test_keys_are_spread_and_seeds_differ():
    texts = pa.array([f"text {i} {i * 7} {i * 11} number" for i in range(2000)])
    counts = np.bincount(lsh_keys(texts, keys=64), minlength=64)
    assert (counts > 0).all()
    assert lsh_keys(texts, keys=64, seed=1) != lsh_keys(texts, keys=64)


def test_arguments_are_checked():
    for keys in (0, 3, -4, 1 << 40):
        with pytest.raises(InvalidArgumentError, match="power of two"):
            lsh_keys(pa.array(["a"]), keys=keys)
    with pytest.raises(InvalidArgumentError, match="seed"):
        lsh_keys(pa.array(["a"]), seed=-1)
    with pytest.raises(UnsupportedTypeError, match="Only text"):
        MaxSimilarity().keep(pa.array([1]))


@pytest.mark.skipif("EVENKEEL_DATA" not in os.environ, reason="EVENKEEL_DATA does not say where the data sets are")
def test_most_tweets_are_no_first_stories():
    texts = pq.read_table(Path(os.environ["EVENKEEL_DATA"]) / "stocknet_tweets.parquet", columns=["text"])["text"][
        :20_000
    ]
    rows = pa.table({"key": lsh_keys(texts, keys=64), "text": texts})
    outcome = run(first_story(), [rows.slice(at, 5_000) for at in range(0, 20_000, 5_000)])
    assert 0.01 < len(outcome.outputs) / 20_000 < 0.5
    assert all(len(state["history_0"]) <= 500 for state in outcome.states.values())
