"""The simulator and the engine on the same stream: the same loads, decisions, tables and bytes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.control import Controller, ControlOptions, CoolDown, Imbalance, RelativeGain, WindowOptions, WorthItsCost
from evenkeel.hashing import hash_keys
from evenkeel.operators import Count, PerKey, RowCodec
from evenkeel.planning import make_planner
from evenkeel.sim import Controlled, Histograms, Routed, Trace, replay
from evenkeel.spark.api import stream
from evenkeel.state import KEY_BYTES
from spark.engine_helpers import Remember, file_stream, write_batches, zipf_words

pytestmark = pytest.mark.spark

CHANNELS = 4
EAGER = ControlOptions(  # no gate looks at a clock, so that the controller sees nothing but loads
    windows=WindowOptions(batches=1),
    imbalance=Imbalance(1, 1),
    cool_down=CoolDown(0),
    relative_gain=RelativeGain(0),
    worth_its_cost=WorthItsCost(10**9),
)
LOG = pa.schema([("log", pa.string())])


def log(key, rows, state):
    """Keep a letter for each tuple of a key, so that states grow."""
    seen = (state or {"log": ""})["log"] + "x" * len(rows)
    return {"log": seen}, [{"log": seen}]


def distinct_counts(seed: int) -> pa.Table:
    """600 words, no two as often: each channel has more of them than it reports, and no tie is drawn by lot."""
    rng = np.random.default_rng(seed)
    return pa.table({"word": np.repeat([f"word{i}" for i in rng.permutation(600)], np.arange(1, 601))})


def prepared(tables: list[pa.Table], operator, state_of) -> Histograms:
    """Count each word of each batch, and measure the state that the operator then holds for it."""
    codec = RowCodec(pa.schema([("word", pa.string()), *operator.state_schema(tables[0].schema)]))
    so_far, parts = Counter(), []
    for window, table in enumerate(tables):
        counts = Counter(table["word"].to_pylist())
        so_far += counts
        words = pa.array(counts, pa.string())
        states = codec.encode(pa.table([words, pa.array(state_of(so_far[word]) for word in counts)], codec.schema))
        parts.append(
            pa.table(
                {
                    "window": [window] * len(words),
                    "hash": hash_keys(words),
                    "count": list(counts.values()),
                    "state_bytes": [KEY_BYTES + len(state.as_py()) for state in states],
                }
            )
        )
    return Histograms(pa.concat_tables(parts))


@pytest.mark.parametrize(
    ("planner", "operator", "state_of", "tables"),
    [
        pytest.param(
            "readj",
            PerKey(log, state=LOG, output=LOG),
            lambda count: "x" * count,
            [zipf_words(2000, 250, seed) for seed in range(5)],
            id="growing states, moved by readj",
        ),
        pytest.param(
            "keel",
            Count(),
            lambda count: count,
            [distinct_counts(seed) for seed in range(4)],
            id="more keys than channels report, moved by keel",
        ),
    ],
)
def test_a_stream_is_what_the_simulator_says(spark, tmp_path, planner, operator, state_of, tables):
    write_batches(tmp_path / "in", tables)
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(operator, strategy=Controller(make_planner(planner), EAGER), channels=CHANNELS, combine=False)
        .start(Remember(), checkpoint=str(tmp_path / "checkpoint"), local_directory=str(tmp_path / "local"))
    )
    query.process_all_available()
    query.stop()
    reports = [batch["reports"][0] for batch in query.history]
    rows = [[report["rows"] for report in batch] for batch in reports]
    imported = [sum(report["imported_bytes"] for report in batch) for batch in reports]

    controlled = Controlled(Controller(make_planner(planner), EAGER))
    workload = prepared(tables, operator, state_of)
    done = replay(workload, {"x": controlled}, channels=CHANNELS, keep_loads=True)

    assert [loads.tolist() for loads in done.loads["x"]] == rows
    assert [0, *done.column("x", "moved_bytes").tolist()][: len(tables)] == imported
    assert sum(size > 0 for size in imported) >= 2, "nothing moved, so nothing was compared"
    assert [decision.before for decision in query.decisions] == done.column("x", "own_before").tolist()
    changed = [decision.changes for decision in query.decisions]
    assert changed == (done.column("x", "moves") > 0).tolist()
    assert query.table.epoch == sum(changed)
    held = [sum(sum(report["loads"]["held_bytes"]) for report in batch) for batch in reports]
    assert done.column("x", "state_bytes").tolist() == held


@pytest.mark.parametrize("router", ["pkg", "w_choices"])
def test_a_router_sends_tuples_where_the_simulator_does(spark, tmp_path, router):
    tables = [zipf_words(2000, 250, seed) for seed in range(3)]
    write_batches(tmp_path / "in", tables)
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(Count(), strategy=router, channels=CHANNELS)
        .start(Remember(), checkpoint=str(tmp_path / "checkpoint"), local_directory=str(tmp_path / "local"))
    )
    query.process_all_available()
    query.stop()
    rows = [[report["rows"] for report in batch["reports"][0]] for batch in query.history]
    merged = [sum(report["rows"] for report in batch["reports"][1]) for batch in query.history]
    trace = Trace(tmp_path / "in", "word", window_tuples=2000)  # a small file is read by one map task, in its order
    done = replay(trace, {"x": Routed(router, flush_every=1, afresh=True)}, channels=CHANNELS, keep_loads=True)
    assert [loads.tolist() for loads in done.loads["x"]] == rows
    assert done.column("x", "messages").tolist() == merged
