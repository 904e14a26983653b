"""Every strategy, with plans in every batch and schedules made up by Hypothesis: always what ``groupBy`` gives.

``EVENKEEL_EXAMPLES`` runs more schedules for each strategy.
"""

from __future__ import annotations

import os
import shutil

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from evenkeel.control import Controller, ControlOptions, CoolDown, Imbalance, RelativeGain, WindowOptions, WorthItsCost
from evenkeel.operators import Count, PerKey
from evenkeel.operators.aggregate import Aggregate
from evenkeel.operators.aggregates import Sum
from evenkeel.planning import PLANNERS, make_planner
from evenkeel.routing import make_router
from evenkeel.spark.api import stream
from spark.engine_helpers import file_stream, shaken, write_batches, zipf_words

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("EVENKEEL_EXAMPLES", "1"))
EAGER = ControlOptions(
    windows=WindowOptions(batches=1),
    imbalance=Imbalance(1, 1),
    cool_down=CoolDown(0),
    relative_gain=RelativeGain(0),
    worth_its_cost=WorthItsCost(10**9),
)
SCHEDULES = st.tuples(
    st.permutations([4, 7, 3, 5]),
    st.lists(st.integers(0, 500), min_size=4, max_size=5),
    st.integers(0, 2**31),
    st.sampled_from([None, False, True]),
)


class Restless(Controller):
    """Carries out what its planner says after every batch, and moves other things besides."""

    def __init__(self, name: str, channels: list[int], seed: int) -> None:
        super().__init__(make_planner(name), EAGER)
        self.channels, self.seed = channels, seed
        self.batch = -1

    def observe(self, report):
        self.batch = report.batch
        super().observe(report)

    def decide(self, table, now):
        decision, planned = super().decide(table, now)
        following = self.batch + 1
        rng = np.random.default_rng([self.seed, following])
        channels = self.channels[following % len(self.channels)]
        return decision, shaken(planned or table, channels, rng).evolve(epoch=table.epoch + 1)


def log(key, rows, state):
    """Keep the positions of a key's tuples: sorted within a batch, since a shuffle keeps no order."""
    seen = (state or {"log": ""})["log"] + "".join(f"{row}," for row in sorted(row["position"] for row in rows))
    return {"log": seen}, [{"log": seen}]


LOG = pa.schema([("log", pa.string())])
OPERATORS = {
    "count and sum": Aggregate(n=Count(), total=Sum("value")),
    "ordered log": PerKey(log, state=LOG, output=LOG),
}
PLANNED = [(name, operator) for name in PLANNERS for operator in OPERATORS]
ROUTED = [(name, "count and sum") for name in ("pkg", "shuffle", "d_choices", "w_choices")]
ROUTED += [("universal_hash", "ordered log")]


def native(spark, directory, operator: str) -> dict:
    rows = spark.read.parquet(str(directory))
    if operator == "count and sum":
        found = rows.groupBy("word").agg(F.count("*").alias("n"), F.sum("value").alias("total")).collect()
        return {row["word"]: (row["n"], row["total"]) for row in found}
    found = rows.groupBy("word").agg(F.sort_array(F.collect_list("position")).alias("log")).collect()
    return {row["word"]: ("".join(f"{position}," for position in row["log"]),) for row in found}


@pytest.mark.parametrize(("name", "operator"), PLANNED[::2] + PLANNED[1::6] + ROUTED)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(schedule=SCHEDULES)
def test_results_equal_those_of_group_by(spark, tmp_path_factory, name, operator, schedule):
    channels, sizes, seed, combine = schedule
    place = tmp_path_factory.mktemp("strategy")
    tables = [zipf_words(rows, 60, (seed + batch) % 97) for batch, rows in enumerate(sizes)]
    write_batches(place / "in", tables)
    router = None if name in PLANNERS else make_router(name, channels[0], seed=seed)
    merges = operator == "count and sum"
    query = (
        stream(file_stream(spark, place / "in"), key="word")
        .apply(
            OPERATORS[operator],
            strategy=router or Restless(name, channels, seed),
            channels=channels[0],
            combine=combine if merges and router is None else None,
        )
        .start("memory", checkpoint=str(place / "checkpoint"), local_directory=str(place / "local"))
    )
    query.process_all_available()
    query.stop()
    latest = {}
    for batch in sorted(query.sink.batches):
        for row in query.sink.batches[batch].to_pylist():
            latest[row.pop("word")] = tuple(row.values())
    assert latest == native(spark, place / "in", operator)
    if router is None:
        assert [len(batch["reports"][0]) for batch in query.history] == [
            channels[batch % 4] for batch in range(len(sizes))
        ]
    shutil.rmtree(place)
