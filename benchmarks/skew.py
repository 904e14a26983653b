"""A cost per tuple on many channels: batch time beside rows / channels, once the JVM is warm.

Every case runs in a process of its own, with all cores, and prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.measure import each_alone, repeated, report
from benchmarks.spark_peers import Workplace, run_ours, session, trigger_ms, zipf_rows
from evenkeel.control import Controller, ControlOptions, WindowOptions
from evenkeel.operators import Count
from evenkeel.planning import make_planner
from evenkeel.spark.demo import SlowCount

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = 100_000
PARTS = {"key_grouping": 1, "keel": 1, "pkg": 2}
"""Over how many channels the hottest key may be spread; over all, where it is not said."""
LEARNS = {"keel": 3}
"""How many batches a strategy gets before those that count: to learn from, and to move what it learnt of. Else 1."""


COUNTED = 2
_WARMING, _LEARNING = 1_600_000, 4_800_000
"""Of how many tuples batches are, at most, that do not count."""


@dataclass(frozen=True)
class Case:
    """Batches of a Zipf stream, each tuple with a cost, and who is to deal with them."""

    z: float
    rows: int
    strategies: tuple[str, ...]
    channels: int = 16
    cost_ms: float = 0.1

    @property
    def ideal_ms(self) -> float:
        """If all channels had as many tuples, and nothing else took time."""
        return self.rows / self.channels * self.cost_ms

    @property
    def hottest(self) -> float:
        """The share of the hottest key."""
        shares = 1 / np.arange(1, KEYS + 1.0) ** self.z
        return float(shares[0] / shares.sum())

    def bound_ms(self, parts: int) -> float:
        """The ideal, or what the hottest key takes where it can be spread over so many channels."""
        return max(self.ideal_ms, self.hottest / parts * self.rows * self.cost_ms)


ALL = ("key_grouping", "keel", "pkg", "w_choices")
BALANCED = ALL[1:]
CASES = ["channels_16", "long_batches", "longest_batches", "costly_tuples", "channels_64"]


def run(quick: bool) -> list[dict]:
    """Run all cases, those with as many channels in one JVM."""
    return each_alone("skew", ["channels_16"] if quick else CASES, quick)


def channels_16(quick: bool) -> list[dict]:
    """Batches of 10 seconds, if all channels are even; of a second for a first look."""
    if quick:
        return _run([Case(1.0, 160_000, ("key_grouping", "keel"))], rounds=0)
    return _run([Case(1.0, 1_600_000, ALL), Case(1.4, 1_600_000, ALL)])


def long_batches(quick: bool) -> list[dict]:
    """Batches of 30 seconds: a part of what comes on top does not grow with the tuples."""
    if quick:
        return _run([Case(1.0, 480_000, ("pkg",))], rounds=0)
    return _run([Case(1.0, 4_800_000, BALANCED), Case(1.4, 4_800_000, ("pkg",))], alone=False)


def longest_batches(quick: bool) -> list[dict]:
    """Batches of two minutes."""
    return _run([Case(1.0, 960_000 if quick else 19_200_000, ("pkg", "keel"))], rounds=0 if quick else 3, alone=False)


def costly_tuples(quick: bool) -> list[dict]:
    """A millisecond for each tuple, as one that asks a database has: batches of 30 seconds."""
    return _run([Case(1.0, 48_000 if quick else 480_000, ALL, cost_ms=1.0)], rounds=0 if quick else 3, alone=False)


def channels_64(quick: bool) -> list[dict]:
    """64 channels: a minute or more for each batch. A core has four times as many, and so a tuple takes 4 ms."""
    if quick:
        return _run([Case(1.0, 64_000, ("pkg",), channels=64, cost_ms=1.0)], rounds=0)
    one_key, split_in_two, split = (
        Case(1.0, rows, (name,), channels=64, cost_ms=4.0)
        for rows, name in ((180_000, "keel"), (360_000, "pkg"), (1_440_000, "w_choices"))
    )
    return _run([one_key, split_in_two, split], alone=False)


def _tables(case: Case, batches: int, most: int | None = None, seed: int = 4) -> Iterator[pa.Table]:
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        yield zipf_rows(min(case.rows, most or case.rows), KEYS, case.z, rng)


def spark_alone(spark, case: Case, *, hottest: bool) -> list[float]:
    """Milliseconds for the same rows dealt out to tasks that sleep: no keys, no state, no results.

    Evenly, or with the hottest key's share in one task.
    """
    from pyspark.sql import functions as F

    from evenkeel.spark.placement import placement_values

    place = Workplace(files=case.channels)
    place.add(next(_tables(case, 1)))

    def sleep(batches, seconds):
        time.sleep(seconds * sum(batch.num_rows for batch in batches))
        yield pa.RecordBatch.from_arrays([pa.array([0])], names=["n"])

    places = F.array(*(F.lit(above) for above, _ in placement_values(spark, case.channels)))
    turn, last = F.monotonically_increasing_id(), case.channels - 1
    task = turn % case.channels
    if hottest:
        task = F.when(turn % 10_000 < 10_000 * case.hottest, last).otherwise(turn % last)
    task = F.element_at(places, (task + 1).cast("int"))
    took = []
    for seconds in [0] * 10 + [case.cost_ms / 1000] * 3:  # those that do not sleep warm up
        started = time.perf_counter()
        dealt = place.read(spark).select("word", task.alias("task")).repartition(case.channels, "task")
        dealt.mapInArrow(partial(sleep, seconds=seconds), "n long").collect()
        took.append(1000 * (time.perf_counter() - started))
    place.remove()
    return took[-3:]


def _warm_up(spark, case: Case, rounds: int) -> None:
    """Run batches that do not sleep, until the JVM is as warm as in other benchmarks."""
    from evenkeel.spark.api import stream

    place = Workplace(files=case.channels)
    for table in _tables(case, 4, _WARMING):
        place.add(table)
    for name in ["key_grouping", "pkg"] * rounds:
        flow = stream(place.stream(spark), key="word")
        run_ours(flow.apply(Count(), strategy=name, channels=case.channels, combine=False), place)
    place.remove()


def _measured(spark, case: Case, name: str) -> dict:
    """Run a strategy, and give its last batches beside its bound."""
    from evenkeel.spark.api import stream

    place = Workplace(files=case.channels)
    for table in (*_tables(case, LEARNS.get(name, 1), _LEARNING), *_tables(case, COUNTED, seed=5)):
        place.add(table)
    eager = ControlOptions(windows=WindowOptions(batches=1))
    strategy = Controller(make_planner(name), eager) if name in LEARNS else name
    operator = SlowCount(seconds=case.cost_ms / 1000)
    flow = stream(place.stream(spark), key="word").apply(
        operator, strategy=strategy, channels=case.channels, combine=False
    )
    took = trigger_ms(run_ours(flow, place))[-COUNTED:]
    place.remove()
    bound_ms = case.bound_ms(PARTS.get(name, case.channels))
    row = _row(case, name, [bound_ms / ms for ms in took], bound_ms)
    if name == "key_grouping":
        return row
    return {**row, "target": "≥ 0.95 of its bound", "met": row["ratio"] >= 0.95}


def _row(case: Case, name: str, of_bound: list[float], bound_ms: float) -> dict:
    return {
        "what": f"z = {case.z:g}, {case.channels} channels, {case.cost_ms:g} ms a tuple, "
        f"{case.rows / 1e6:g} M tuples a batch: {name}",
        "value": median(of_bound) * case.ideal_ms / bound_ms,
        "unit": "of ideal",
        "ratio": median(of_bound),
        "peer": f"its bound: {bound_ms / 1000:.1f} s (ideal {case.ideal_ms / 1000:.1f} s)",
        **repeated(of_bound),
    }


def _run(cases: list[Case], rounds: int = 3, *, alone: bool = True) -> list[dict]:
    """Warm up for some rounds and measure Spark alone, if any; then every strategy of every case."""
    found = []
    with session(cases[0].channels, cases[0].channels) as spark:
        if rounds:
            _warm_up(spark, cases[0], rounds)
        for hottest in (False, True) if rounds and alone else ():
            name = "Spark alone, rows dealt out to tasks that sleep" + (", one has the hottest key's" * hottest)
            bound_ms = cases[0].bound_ms(1 if hottest else cases[0].channels)
            took = spark_alone(spark, cases[0], hottest=hottest)
            found.append(_row(cases[0], name, [bound_ms / ms for ms in took], bound_ms))
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
        for case in cases:
            for name in case.strategies:
                found.append(_measured(spark, case, name))
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    report(globals(), sys.argv[1:])
