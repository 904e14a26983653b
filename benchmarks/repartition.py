"""Moving state while the query runs: a tenth of it, twice the channels, half of them; beside Spark's offline way.

Spark's own way is to stop the query, to have its state repartitioned in the checkpoint, and to start it again. Both
hold a million keys, and both are timed over the same batches of 500,000 rows. The first of each kind warms up. The
batch after one that moved state, which writes it to the working copies, is told apart from the quiet ones.
"""

from __future__ import annotations

import sys
import time
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.engine import COUNT_AND_SUM, Shift
from benchmarks.measure import each_alone, repeated, report
from benchmarks.spark_peers import Workplace, batch_ms, discard, run_ours, session, zipf_rows
from evenkeel.planning.items import resized_slots

HELD, CHANNELS = 1_000_000, 4
KINDS = ["moves a tenth of the state", "doubles the channels", "halves the channels"]


class Script(Shift):
    """Moves a tenth, doubles the channels and halves them again: one of these in every fifth batch or sixth, in turn.

    Working copies take up what was written in batches of two kinds, cheaper ones and dearer ones, also in turn.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[int, str] = {}
        self.due = 6

    def decide(self, table, now):  # noqa: ARG002
        """Give the next table."""
        if self.batch < self.due:
            return None, None
        self.due += 5 + len(self.kinds) % 2
        kind = KINDS[len(self.kinds) % len(KINDS)]
        self.kinds[self.batch + 1] = kind
        if kind == KINDS[0]:
            return self.move(table)
        channels = 2 * table.channels if kind == KINDS[1] else table.channels // 2
        return None, table.evolve(slot_channels=resized_slots(table, channels), channels=channels)


def run(quick: bool) -> list[dict]:
    """Run both ways, in a process with all cores."""
    return each_alone("repartition", ["changes"], quick)


def changes(quick: bool) -> list[dict]:
    """Move a tenth, double and halve, a few times each; Spark tells of the last hundred batches, so those count."""
    return compare(1, HELD // 10, 100_000) if quick else compare(5, HELD, 500_000)


def compare(cycles: int, held: int, rows: int) -> list[dict]:
    """Give the rows of the table: what moving costs, and what it costs offline."""
    place, rng = Workplace(files=1), np.random.default_rng(3)
    for start in range(0, held, 500_000):
        keys = np.arange(start, min(start + 500_000, held)).astype(str)
        place.add(pa.table({"word": keys, "value": np.ones(len(keys), np.int64)}))
    fills = place.batches
    more = [zipf_rows(rows, 100_000, 1.0, rng) for _ in range(6)]
    with session(2, CHANNELS) as spark:
        spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")  # which the repartitioner asks for
        offline = _offline(spark, place, fills, more, cycles)
        for number in range(place.batches, 2 * 17 * cycles + 30):
            place.add(more[number % len(more)])
        history, script = _online(spark, place)
    place.remove()
    return [row for kind in KINDS for row in _rows(kind, history, script, offline)]


def _online(spark, place: Workplace) -> tuple[list[dict], Script]:
    from evenkeel.spark.api import stream

    script = Script()
    flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, strategy=script, channels=CHANNELS)
    return run_ours(flow, place), script


def _offline(spark, place: Workplace, fills: int, more: list[pa.Table], cycles: int) -> dict[str, list[float]]:
    """Milliseconds of the native query: its quiet batches, and of each step of every change of its partitions."""
    from pyspark.sql import functions as F

    checkpoint = place.fresh("native")

    def start():
        frame = place.stream(spark).groupBy("word").agg(F.count("*"), F.sum("value"))
        writer = frame.writeStream.outputMode("update").foreachBatch(discard)
        return writer.option("checkpointLocation", checkpoint).start()

    took: dict[str, list[float]] = {"quiet": [], "stop": [], "repartition": [], "restart": [], "whole": []}
    query = start()
    for table in more[:4]:
        place.add(table)
    query.processAllAvailable()
    took["quiet"] += batch_ms(query)[fills + 1 :]
    for number in range(-2, 2 * cycles):  # below 0: to warm up
        clock = [time.perf_counter()]
        query.stop()
        stopped = time.perf_counter()
        place.add(more[number % len(more)])  # while it is down, since a batch that it breaks off does not count as over
        clock.append(time.perf_counter())
        clock[0] += clock[1] - stopped
        spark._streamingCheckpointManager.repartition(checkpoint, CHANNELS * (2 - number % 2))  # noqa: SLF001
        clock.append(time.perf_counter())
        query = start()
        query.processAllAvailable()
        clock.append(time.perf_counter())
        if number >= 0:
            for name, seconds in zip(("stop", "repartition", "restart"), np.diff(clock).tolist(), strict=True):
                took[name].append(1000 * seconds)
            took["whole"].append(1000 * (clock[-1] - clock[0]))
        place.add(more[number % len(more)])
        query.processAllAvailable()
        took["quiet"] += batch_ms(query)[1:]
    query.stop()
    return took


def _rows(kind: str, history: list[dict], script: Script, offline: dict[str, list[float]]) -> list[dict]:
    moved = {batch["batch"]: sum(report["imported_bytes"] for report in batch["reports"][0]) for batch in history}
    moving = [batch for batch in history if script.kinds.get(batch["batch"]) == kind][1:]
    if not all(moved[batch["batch"]] for batch in moving):
        raise RuntimeError(f"A batch that {kind} moved nothing.")
    channels = len(moving[0]["reports"][0])
    alike = [batch for batch in history[4:] if not moved[batch["batch"]] and len(batch["reports"][0]) == channels]
    quiet = [batch["ms"] for batch in alike if not moved[batch["batch"] - 1]]
    after = [batch["ms"] for batch in alike if script.kinds.get(batch["batch"] - 1) == kind][1:]
    took = [batch["ms"] for batch in moving]
    ratio = median(took) / median(quiet)
    noise = median(abs(ms - median(quiet)) for ms in quiet)
    extra = max(median(took) - median(quiet), noise)  # what is less than the noise cannot be told from it
    whole = extra + max(median(after) - median(quiet), 0)
    theirs = median(offline["whole"]) - median(offline["quiet"])
    steps = ", ".join(f"{name} {median(offline[name]) / 1000:.1f} s" for name in ("stop", "repartition", "restart"))
    return [
        {
            "what": f"a batch that {kind}",
            "value": median(took),
            "unit": "ms",
            "target": "≤ 1.25× a quiet batch",
            "met": ratio <= 1.25,
            "ratio": ratio,
            "peer": f"a quiet batch on as many channels: {median(quiet):.0f} ms",
            **repeated(took),
        },
        {
            "what": "what that takes longer than a quiet batch",
            "value": extra,
            "unit": "ms",
            "target": "≥ 20× less than offline",
            "met": theirs / extra >= 20,
            "ratio": theirs / extra,
            "peer": f"Spark's offline repartitioner: {theirs / 1000:.1f} s ({steps} with the first batch)",
            **repeated(offline["whole"]),
        },
        {
            "what": f"the batch after one that {kind}",
            "value": median(after),
            "unit": "ms",
            "ratio": median(after) / median(quiet),
            "peer": f"a quiet batch; both together, beside the offline way: {theirs / whole:.0f}× less",
            **repeated(after),
        },
    ]


if __name__ == "__main__":
    report(globals(), sys.argv[1:])
