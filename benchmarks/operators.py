"""Rows a second of every built-in operator, on one core, without Spark: grouping, states from bytes, update, and back.

CPU time, so that a busy machine makes little difference. ``python -m benchmarks.operators`` prints the table of
``docs/operators/README.md``; the same operators beside their twins on Spark are in ``benchmarks.applications``.
"""

from __future__ import annotations

import inspect
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import evenkeel.operators
from benchmarks.applications import RULE, events
from benchmarks.measure import repeated
from evenkeel.operators import (
    NO_WATERMARK,
    Aggregate,
    ApproxDistinct,
    Count,
    CountOf,
    CountSliding,
    CountTumbling,
    Detector,
    FeatureClassCounts,
    FeatureHistograms,
    First,
    Groups,
    HeavyHitters,
    Last,
    Max,
    Mean,
    Min,
    Moment,
    NaiveBayesPredict,
    Operator,
    PerKey,
    Reordered,
    RowCodec,
    Sessions,
    Sliding,
    Sum,
    TopK,
    Tumbling,
    Variance,
    WindowJoin,
    first_story,
    lsh_keys,
)
from evenkeel.state import both_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS, BATCHES = 150_000, 3
_INNER = Aggregate(n=Count(), total=Sum("value"))
_TOTALS = pa.schema([("n", pa.int64()), ("total", pa.int64())])
_PATTERN = """
    SELECT * FROM events MATCH_RECOGNIZE (
        MEASURES LAST(high.value) AS value PATTERN (low{2} high) DEFINE low AS value < 30, high AS value > 70
    )
"""


def count_and_sum(key, rows, state):  # noqa: ARG001
    """The state and the result of a key, in plain Python."""
    before = state or {"n": 0, "total": 0}
    after = {"n": before["n"] + len(rows), "total": before["total"] + sum(row["value"] for row in rows)}
    return after, [after]


CASES: dict[str, Operator] = {
    "Count": Count(),
    "CountOf": CountOf("value"),
    "Sum": Sum("value"),
    "Mean": Mean("price"),
    "Variance": Variance("price"),
    "Min": Min("price"),
    "Max of text": Max("text"),
    "First": First("value"),
    "Last of text": Last("text"),
    "ApproxDistinct": ApproxDistinct("user"),
    "Aggregate of six": Aggregate(
        n=Count(), total=Sum("value"), low=Min("value"), high=Max("value"), avg=Mean("value"), var=Variance("value")
    ),
    "Tumbling, 20 s": Tumbling(_INNER, "20 seconds"),
    "Sliding, 30 s every 10 s": Sliding(_INNER, "30 seconds", "10 seconds"),
    "Sessions, 15 s": Sessions("15 seconds", _INNER),
    "CountTumbling, 10": CountTumbling(_INNER, 10),
    "CountSliding, 10 every 5": CountSliding(_INNER, 10, 5),
    "TopK, 10": TopK(10, by="value", item="user"),
    "HeavyHitters, 100": HeavyHitters("user", 100, k=10),
    "Reordered": Reordered(CountTumbling(_INNER, 10)),
    "WindowJoin, 10 ms": WindowJoin(["value"], ["user"], "10 milliseconds"),
    "Detector, window": Detector({"spike": RULE}),
    "Detector, pattern": Detector({"rise": _PATTERN}),
    "first_story": first_story(),
    "FeatureClassCounts": FeatureClassCounts(weight=None),
    "NaiveBayesPredict": NaiveBayesPredict(vocabulary=5000),
    "FeatureHistograms": FeatureHistograms(),
    "PerKey": PerKey(count_and_sum, state=_TOTALS, output=_TOTALS),
}


def public_operators() -> set[type[Operator]]:
    """Every operator that a user may apply."""
    named = (getattr(evenkeel.operators, name) for name in evenkeel.operators.__all__)
    return {
        kind for kind in named if inspect.isclass(kind) and issubclass(kind, Operator) and not inspect.isabstract(kind)
    }


@cache
def wide_events(batch: int, rows: int) -> pa.Table:
    """Events with all columns that operators may look at."""
    rng = np.random.default_rng(batch)
    table = events(batch, rows, rng)
    values = table["value"].to_numpy()
    words = pa.array([f"w{word}" for word in range(2400)])
    texts = [words.take(pa.array(rng.integers(0, 300, rows) * rng.integers(1, 9, rows))) for _ in range(8)]
    columns = {
        "price": rng.random(rows),
        "text": pc.binary_join_element_wise(*texts, " "),
        "side": np.where(values % 2 == 0, "left", "right"),
        "class": np.where(values % 3 == 0, "spam", "ham"),
        "document": np.arange(rows) // 20,
        "probe": rng.random(rows) < 0.01,
        "times": np.ones(rows, np.int64),
        "rows": values + 1,
        "count": values,
    }
    for name, column in columns.items():
        table = table.append_column(name, pa.array(column))
    return table


def rows_for(operator: Operator, batch: int, rows: int) -> pa.Table:
    """Events by the key that the operator is meant for, called ``word``."""
    table = wide_events(batch, rows)
    if isinstance(operator, NaiveBayesPredict):  # by document; a null feature stands for the document itself
        features = pa.array(np.arange(rows) % 5000, mask=np.arange(rows) % 20 == 0).cast(pa.string())
        table = table.append_column("feature", features)
        return table.set_column(0, "word", table["document"].cast(pa.string()))
    if isinstance(operator, Detector) and operator.functions:
        return table.set_column(0, "word", lsh_keys(table["text"]).cast(pa.string()))
    return table


@dataclass
class Channel:
    """One channel: what a task does with a batch, but for Spark's part and the store of bytes."""

    operator: Operator
    states: dict = field(default_factory=dict)
    watermark: int = NO_WATERMARK

    def take(self, table: pa.Table, batch: int, repeats: int) -> list[float]:
        """Process a batch; gives the CPU seconds of each repeat, of which the last one counts."""
        names = ["word", *(name for name in self.operator.columns(table.schema) if name != "word")]
        rows, times = table.select(names), table["ts"].cast(pa.int64()).to_numpy()
        codec = RowCodec(self.operator.state_schema(rows.schema))
        now = Moment(batch, self.watermark, 0)
        hashes = both_hashes(rows["word"])
        keys = Groups.of(rows, ["word"], *hashes, times=times, now=now)
        held = [self.states.get(pair) for pair in zip(keys.hashes.tolist(), keys.hashes2.tolist(), strict=True)]
        before = pa.array(held, pa.large_binary())
        known = np.asarray(before.is_valid())
        took = []
        for _ in range(repeats):
            started = time.process_time()
            hashes = both_hashes(rows["word"])
            groups = Groups.of(rows, ["word"], *hashes, times=times, now=now)
            update = self.operator.update(groups, codec.decode(before), known)
            after = codec.encode(update.states)
            took.append(time.process_time() - started)
        pairs = zip(groups.hashes.tolist(), groups.hashes2.tolist(), strict=True)
        self.states.update(zip(pairs, after.to_pylist(), strict=True))
        self.watermark = int(times.max()) - 10_000_000
        return took


def measure(name: str, rows: int, batches: int = BATCHES) -> dict:
    """Fill the states of an operator with some batches, and time the last one."""
    channel = Channel(CASES[name])
    rows = rows // 10 if isinstance(channel.operator, PerKey) else rows
    took = []
    for batch in range(batches):
        took = channel.take(rows_for(channel.operator, batch, rows), batch, 5 if batch == batches - 1 else 1)
    return {
        "what": name,
        "value": rows / median(took) / 1e6,
        "unit": "M rows/s of one core",
        **repeated(took),
    }


def measured(quick: bool) -> Iterator[dict]:
    """Measure one operator after the other."""
    missing = public_operators() - {type(operator) for operator in CASES.values()}
    if missing:
        raise RuntimeError(f"No case for {sorted(kind.__name__ for kind in missing)}: add one to CASES.")
    pa.set_cpu_count(1)
    return (measure(name, ROWS // 10 if quick else ROWS) for name in CASES)


def run(quick: bool) -> list[dict]:
    """Measure every operator."""
    return list(measured(quick))


if __name__ == "__main__":
    print("| operator | million rows/s of one core |\n|---|---:|")
    for found in measured("quick" in sys.argv[1:]):
        print(f"| {found['what']} | {found['value']:.2g} |", flush=True)
