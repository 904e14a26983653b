"""The engine on Spark: speed beside Spark's own ways, growth, migration and the latency of small batches.

Every case runs in a process of its own, with all cores, and prints one line of JSON.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.measure import alone, each_alone, repeated, report
from benchmarks.spark_peers import (
    Workplace,
    apply_with_state,
    carried,
    discard,
    run_native,
    run_ours,
    session,
    transform_rows_with_state,
    transform_with_state,
    trigger_ms,
    zipf_rows,
)
from evenkeel.operators import Aggregate, Count, Sum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CASES = ["aggregate", "per_row", "per_key", "growth", "migration", "latency"]
PEERS = {
    "transformWithStateInPandas": transform_with_state,
    "transformWithState": transform_rows_with_state,
    "applyInPandasWithState": apply_with_state,
}
ROUNDS_BEFORE = 36
"""Of 25 batches, or twice as many of 12: for some 800, Java's compilers take a part of the cores, ever less of it."""
PER_BATCH = 500_000
"""Rows of a batch beside the ways that allow any logic."""
COUNT_AND_SUM = Aggregate(n=Count(), total=Sum("value"))


def run(quick: bool) -> list[dict]:
    """Run all cases, one after the other."""
    return each_alone("engine", CASES, quick, first=["aggregate", "per_row", "latency"])


def aggregate(quick: bool) -> list[dict]:
    """Count and sum, 100,000 keys, 500,000 rows a batch, beside Spark's streaming aggregate with RocksDB.

    The rounds before the first are those in which Java compiles, for both, most of what a batch runs through.
    """
    with session(2, 2) as spark:
        skews, before = ((1.0,), 1) if quick else ((1.0, 0.0, 1.5, 2.0), 2 * ROUNDS_BEFORE)
        rounds, batches = (1, 6) if quick else (8, 12)
        rows = []
        for skew in skews:
            rows += _aggregate(spark, skew, before, rounds, batches)
            before = 1
        return rows


def _aggregate(spark, skew: float, before: int, rounds: int, batches: int) -> list[dict]:
    """Native and ours in turn; where the skew is 1 also with all tuples sent through the shuffle."""
    from pyspark.sql import functions as F

    from evenkeel.spark.api import stream

    place, rng = Workplace(), np.random.default_rng(0)
    for _ in range(batches):
        place.add(zipf_rows(500_000, 100_000, skew, rng))
    what = f"count and sum, z = {skew:g}" if skew else "count and sum, even keys"
    ours: dict[str, list[float]] = {what: []}
    if skew == 1:
        ours[what + ", not combined before the shuffle"] = []
    native = []
    for _ in range(before + rounds):
        frame = place.stream(spark).groupBy("word").agg(F.count("*"), F.sum("value"))
        native.append(median(run_native(frame, place.fresh("native"))[1:]))
        for name, combine in zip(ours, (None, False), strict=False):
            flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, channels=2, combine=combine)
            ours[name].append(median(trigger_ms(run_ours(flow, place))[1:]))
    place.remove()
    rows = []
    for name, mine in ours.items():
        ratios = [peer / own for peer, own in zip(native, mine, strict=True)]
        counted = ratios[before:]
        early = "; every eighth round before: " + ", ".join(f"{ratio:.2f}×" for ratio in ratios[:before:8])
        rows.append(
            {
                "what": name,
                "value": 500_000 / median(mine[before:]) / 1000,
                "unit": "M rows/s",
                "target": "≥ 1.0× native",
                "met": median(counted) >= 1.0,
                "ratio": median(counted),
                "peer": "Spark's streaming aggregate, RocksDB" + early * (before > 1),
                **repeated(counted),
            }
        )
    return rows


def per_row(quick: bool) -> list[dict]:
    """The same against the ways that allow any logic, eight rows a key in the mean."""
    rng = np.random.default_rng(1)

    def rows(count: int) -> pa.Table:
        return zipf_rows(count, 100_000, 1.0, rng)

    return _beside_any_logic("count and sum", rows, ROUNDS_BEFORE, quick)


def per_key(quick: bool) -> list[dict]:
    """Each row is of another key, so that all is work for state: there is little to combine, and as much to look up."""
    rng = np.random.default_rng(1)

    def rows(count: int) -> pa.Table:
        words = pa.array(rng.permutation(PER_BATCH)[:count]).cast(pa.string())
        return pa.table({"word": words, "value": rng.integers(0, 100, count)})

    return _beside_any_logic(f"count and sum of {PER_BATCH:,} keys, a row of each", rows, ROUNDS_BEFORE // 3, quick)


def _beside_any_logic(what: str, rows_of: Callable[[int], pa.Table], rounds: int, quick: bool) -> list[dict]:
    """Time batches beside those ways: a small one to warm up, then those that count.

    They get two of those, which takes them minutes, of which the second counts, where most keys are known already, as
    in a query that runs on. Ours gets both and 22 more, of which the last twelve count, in a round before and a round
    after each of theirs, since the machine is not always as fast; rounds before the first, since Java compiles for
    hundreds of batches what a batch runs through, are only told. Each has a JVM to itself, as such a query has.

    At the end come a round of ours with all tuples sent through the shuffle, as for an operator whose states do not
    merge, of Spark's native aggregate, which allows no logic at all, and of Python workers that get the rows and do
    nothing: what Spark can do with them at best. And of its `groupBy` of the same rows without stream or state.
    """
    place, theirs_place = Workplace(), Workplace()
    rows = 20_000 if quick else PER_BATCH
    tables = [rows_of(5_000), *(rows_of(rows) for _ in range(6 if quick else 24))]
    for table in tables:
        place.add(table)
    for table in tables[:3]:
        theirs_place.add(table)
    theirs, ours = {}, {}
    with session(2, 2) as spark:
        before = [median(_round(spark, place, ["ours"])["ours"]) for _ in range(0 if quick else rounds)]
        for name in list(PEERS)[: 1 if quick else None]:
            early = _round(spark, place, ["ours"])["ours"]
            theirs[name] = alone("engine", "twin", f"{name}:{theirs_place.path}")[0]["ms"]
            ours[name] = early + _round(spark, place, ["ours"])["ours"]
        others = {name: median(ms) for name, ms in _round(spark, place).items() if name != "ours"}
    place.remove()
    theirs_place.remove()
    return [
        {
            "what": f"{what}, beside {name}",
            "value": rows / median(ours[name]) / 1000,
            "unit": "M rows/s",
            "target": "≥ 100×",
            "met": ms / median(ours[name]) >= 100,
            "ratio": ms / median(ours[name]),
            "peer": f"{name}: {1000 * rows / ms:.0f} rows/s; "
            + "; ".join(f"{what} {ms / other:.0f}×" for what, other in others.items())
            + (f"; rounds before: {', '.join(f'{ms / one:.0f}×' for one in before)}" if before else ""),
            **repeated(ours[name]),
        }
        for name, ms in theirs.items()
    ]


def twin(given: str) -> list[dict]:
    """Run one of Spark's own ways over the folder of a benchmark; milliseconds of its last batch."""
    name, path = given.split(":", 1)
    place = Workplace(path=path)
    with session(2, 2) as spark:
        return [{"ms": run_native(PEERS[name](place.stream(spark)), place.fresh(name))[-1]}]


def _round(spark, place: Workplace, names: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Milliseconds of the second half of the batches, by who took them; of all, or of some."""
    from pyspark.sql import functions as F

    from evenkeel.spark.api import stream

    rows, flow = place.stream(spark), stream(place.stream(spark), key="word")
    native = rows.groupBy("word").agg(F.count("*"), F.sum("value"))
    ways = {
        "native aggregate": lambda: run_native(native, place.fresh("native")),
        "rows carried, no more": lambda: run_native(carried(rows, "word"), place.fresh("carried"), "append"),
        "ours, not combined": lambda: trigger_ms(run_ours(flow.apply(COUNT_AND_SUM, channels=2, combine=False), place)),
        "ours": lambda: trigger_ms(run_ours(flow.apply(COUNT_AND_SUM, channels=2), place)),
        "groupBy without stream or state": lambda: _static(spark, place),
    }
    return {name: ways[name]()[place.batches // 2 + 1 :] for name in names or ways}


def _static(spark, place: Workplace) -> list[float]:
    """Milliseconds in which Spark groups the rows of each batch, as static ones."""
    from pyspark.sql import functions as F

    took = []
    for batch in range(place.batches):
        rows = place.read(spark, batch).groupBy("word").agg(F.count("*"), F.sum("value"))
        started = time.perf_counter()
        discard(rows, batch)
        took.append(1000 * (time.perf_counter() - started))
    return took


def growth(quick: bool) -> list[dict]:
    """A batch of 100,000 keys against few and many keys held."""
    from evenkeel.spark.api import stream

    rng = np.random.default_rng(2)
    touched = [str(key) for key in range(100_000)]
    times = {}
    most = 1_000_000 if quick else 5_000_000
    with session(2, 2) as spark:
        for held in (100_000, most, 100_000):  # few before and after, so that neither is colder
            place = Workplace()
            for start in range(0, held, 1_000_000):
                keys = np.arange(start, min(start + 1_000_000, held)).astype(str)
                place.add(pa.table({"word": keys, "value": np.ones(len(keys), np.int64)}))
            fills = place.batches
            for _ in range(8):
                words = rng.permutation(touched)
                place.add(pa.table({"word": words, "value": np.ones(len(words), np.int64)}))
            flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, channels=2)
            times.setdefault(held, []).extend(trigger_ms(run_ours(flow, place))[fills + 2 :])
            place.remove()
    ratio = median(times[most]) / median(times[100_000])
    return [
        {
            "what": f"a batch of 100,000 keys with {most:,} held",
            "value": median(times[most]),
            "unit": "ms",
            "target": "≤ 1.5×",
            "met": ratio <= 1.5,
            "ratio": ratio,
            "peer": "the same with 100,000 held",
            **repeated(times[most]),
        }
    ]


class Shift:
    """Moves a tenth of all slots to the next channel in every third batch."""

    def __init__(self) -> None:
        self.decisions: list = []
        self.batch, self.promised = -1, {}

    def observe(self, report) -> None:
        """Note what each slot holds."""
        self.batch = report.batch
        self.held = {}
        for channel in report.channels:
            for slot, size in zip(channel.slots.ids.tolist(), channel.slots.state_bytes.tolist(), strict=True):
                self.held[slot] = self.held.get(slot, 0) + size

    def decide(self, table, now):  # noqa: ARG002
        """Give the next table."""
        return (None, None) if self.batch < 4 or self.batch % 3 else self.move(table)

    def move(self, table):
        """Give the table with a tenth of the slots elsewhere."""
        chosen = np.random.default_rng(self.batch).choice(table.slots, table.slots // 10, replace=False)
        slots = table.slot_channels.copy()
        slots[chosen] = (slots[chosen] + 1) % table.channels
        self.promised[self.batch + 1] = sum(self.held.get(slot, 0) for slot in chosen.tolist())
        return None, table.evolve(slot_channels=slots)

    def record(self, decision) -> None:
        """Keep a decision of the engine."""
        self.decisions.append(decision)

    def snapshot(self):
        """Nothing to remember."""
        from evenkeel.control import Saved

        return Saved({})


def migration(quick: bool) -> list[dict]:
    """Move a tenth of a state of a million keys within a batch."""
    from evenkeel.spark.api import stream

    place, rng = Workplace(), np.random.default_rng(3)
    for start in range(0, 1_000_000, 500_000):
        keys = np.arange(start, start + 500_000).astype(str)
        place.add(pa.table({"word": keys, "value": np.ones(len(keys), np.int64)}))
    for _ in range(9 if quick else 25):
        place.add(zipf_rows(500_000, 100_000, 1.0, rng))
    shift = Shift()
    with session(2, 4) as spark:
        flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, strategy=shift, channels=4)
        history = run_ours(flow, place)
    place.remove()
    moved = {batch["batch"]: sum(report["imported_bytes"] for report in batch["reports"][0]) for batch in history}
    quiet = [batch["ms"] for batch in history[4:] if not moved[batch["batch"]]]
    moving = [batch["ms"] for batch in history[4:] if moved[batch["batch"]]]
    ratio = median(moving) / median(quiet)
    exact = all(moved[batch] == promised for batch, promised in shift.promised.items() if batch in moved)
    return [
        {
            "what": "a batch that moves a tenth of 1,000,000 keys",
            "value": median(moving),
            "unit": "ms",
            "target": "≤ 2× a quiet batch",
            "met": ratio <= 2,
            "ratio": ratio,
            "peer": "a quiet batch",
            **repeated(moving),
        },
        {
            "what": "bytes that moved, as reported by the channels",
            "value": median([size for size in moved.values() if size]) / 1e6,
            "unit": "MB",
            "target": "= those of the slots moved",
            "met": exact,
        },
    ]


def latency(quick: bool) -> list[dict]:
    """Batches of ten rows, both in turn; the first round warms up."""
    from pyspark.sql import functions as F

    from evenkeel.spark.api import stream

    place, rng = Workplace(files=1), np.random.default_rng(5)
    for _ in range(12 if quick else 80):
        place.add(zipf_rows(10, 100, 1.0, rng))
    with session(2, 2) as spark:
        rounds = []
        for _ in range(2 if quick else 4):
            frame = place.stream(spark).groupBy("word").agg(F.count("*"), F.sum("value"))
            native = run_native(frame, place.fresh("native"))[5:]
            flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, channels=2)
            rounds.append((native, trigger_ms(run_ours(flow, place))[5:]))
    place.remove()
    theirs, ours = (np.concatenate(times) for times in zip(*rounds[1:], strict=True))
    return [
        {
            "what": f"batch of ten rows, p{share}",
            "value": float(np.percentile(ours, share)),
            "unit": "ms",
            "target": "≤ 1.1×",
            "met": bool(np.percentile(ours, share) <= 1.1 * np.percentile(theirs, share)),
            "ratio": float(np.percentile(ours, share) / np.percentile(theirs, share)),
            "peer": f"Spark's own stateful query: {np.percentile(theirs, share):.0f} ms",
            **repeated(ours),
        }
        for share in (50, 99)
    ]


if __name__ == "__main__":
    report(globals(), sys.argv[1:])
