"""First stories among real tweets: the same wherever keys are, and false ones where keys are split."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from evenkeel.control import Controller, ControlOptions, CoolDown, Imbalance, RelativeGain, WindowOptions, WorthItsCost
from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import hash_keys
from evenkeel.operators import Groups, first_story, lsh_keys
from evenkeel.planning import make_planner
from evenkeel.spark.api import stream
from spark.engine_helpers import Forced, file_stream, write_batches

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("EVENKEEL_DATA" not in os.environ, reason="EVENKEEL_DATA does not say where the data sets are"),
]

TWEETS, BATCHES, CHANNELS = 4_000, 4, 4
EAGER = ControlOptions(
    windows=WindowOptions(batches=1),
    imbalance=Imbalance(1, 1),
    cool_down=CoolDown(0),
    relative_gain=RelativeGain(0),
    worth_its_cost=WorthItsCost(10**9),
)


def planned(planner: str) -> Controller:
    """A planner that is asked after every batch, and always followed."""
    return Controller(make_planner(planner), EAGER)


STRATEGIES = {
    "key grouping": lambda: planned("stay_put"),
    "DLB-L": lambda: planned("dlb_l"),
    "DLB-H": lambda: planned("dlb_h"),
    "keel": lambda: planned("keel"),
    "forced migrations": lambda: Forced([CHANNELS, CHANNELS + 2, CHANNELS - 1, CHANNELS + 1]),
}


@pytest.fixture(scope="module")
def tweets(tmp_path_factory):
    """The corpus's first tweets, keyed by locality-sensitive hashing, one file per batch."""
    corpus = Path(os.environ["EVENKEEL_DATA"]) / "stocknet_tweets.parquet"
    rows = pq.read_table(corpus, columns=["text"])[:TWEETS]
    words = pc.binary_join_element_wise("word", lsh_keys(rows["text"], keys=64).cast(pa.string()), "")
    rows = rows.append_column("word", words)
    place = tmp_path_factory.mktemp("tweets")
    size = TWEETS // BATCHES
    write_batches(place / "in", [rows[start : start + size] for start in range(0, TWEETS, size)])
    return rows, place


@pytest.fixture(scope="module")
def stories(tweets):
    """The first stories of all tweets in one place and one batch, without Spark."""
    rows, operator = tweets[0], first_story()
    groups = Groups.of(rows, ["word"], hash_keys(rows["word"]), hash_keys(rows["word"], seed=1))
    states = pa.Table.from_pylist([{}] * len(groups), operator.state_schema(rows.schema))
    update = operator.update(groups, states, np.zeros(len(groups), bool))
    words = groups.keys["word"].take(pa.array(update.key_of_outputs)).to_pylist()
    return Counter((word, *row.values()) for word, row in zip(words, update.outputs.to_pylist(), strict=True))


def found(spark, place, strategy, **options):
    """The query, and how often each alert came."""
    run = place / f"run{len(list(place.iterdir()))}"
    flow = stream(file_stream(spark, place / "in"), key="word").apply(
        first_story(), strategy=strategy, channels=CHANNELS, **options
    )
    query = flow.start("memory", checkpoint=str(run / "checkpoint"), local_directory=str(run / "local"))
    query.process_all_available()
    query.stop()
    return query, Counter(tuple(row.values()) for row in query.sink.table().to_pylist())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_first_stories_are_the_same_wherever_keys_are(spark, tweets, stories, strategy):
    query, alerts = found(spark, tweets[1], STRATEGIES[strategy]())
    assert alerts == stories
    assert 0.01 * TWEETS < alerts.total() < 0.5 * TWEETS
    assert len(query.history) == BATCHES
    moved = sum(report["imported_bytes"] for batch in query.history for report in batch["reports"][0])
    assert (moved > 0) == (strategy != "key grouping")


def test_split_keys_give_false_stories_and_only_if_one_insists(spark, tweets, stories):
    with pytest.raises(InvalidArgumentError, match="partial"):
        found(spark, tweets[1], "pkg")
    _, alerts = found(spark, tweets[1], "pkg", split_results="partial")
    # By key and text: the nearest text, and so the similarity, may be another one in a part of a key.
    ours, whole = (Counter((row[0], row[3]) for row in rows.elements()) for rows in (alerts, stories))
    assert not whole - ours, "a text without a neighbour in the whole key has none in a part"
    assert (ours - whole).total() > 0.05 * whole.total(), "a part of a key does not know the texts of the other"
