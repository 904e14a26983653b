"""Operators on Spark beside their native twins: the same input, the same results wanted, one run.

Every case runs in a process of its own, with all cores, and prints one line of JSON. To see that one works, on so many
rows a batch: ``python -m benchmarks.applications windows quick 20000``.
"""

from __future__ import annotations

import sys
from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.measure import each_alone, repeated, report
from benchmarks.spark_peers import Workplace, carried, run_native, run_ours, session, trigger_ms
from evenkeel.operators import (
    Aggregate,
    ApproxDistinct,
    Count,
    CountOf,
    Detector,
    First,
    Last,
    Max,
    Mean,
    Min,
    Sessions,
    Sliding,
    Sum,
    Tumbling,
    Variance,
    WindowJoin,
)

CASES = ["aggregates", "windows", "sessions", "join", "sessions_by_state", "rules_by_state"]
ROWS, KEYS, BATCHES = 300_000, 50_000, 5
ROWS_BY_STATE, KEYS_BY_STATE = 500_000, 100_000  # as where the engine is compared
RULE = """
    SELECT value, avg(value) OVER last AS mean FROM events
    QUALIFY value > 1.8 * avg(value) OVER last
    WINDOW last AS (ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING)
"""


def run(quick: bool) -> list[dict]:
    """Run all cases, one after the other."""
    return each_alone("applications", CASES, quick, first=["join", "rules_by_state"])


def events(batch: int, rows: int, rng: np.random.Generator, keys: int = KEYS) -> pa.Table:
    """One minute of events of Zipf-distributed words, a little out of order."""
    shares = np.cumsum(1 / np.arange(1, keys + 1.0))
    ranks = np.searchsorted(shares / shares[-1], rng.random(rows))
    seconds = 60 * (batch + rng.random(rows)) - 5 * rng.random(rows)
    times = pa.array(((1_700_000_000 + seconds) * 1e6).astype(np.int64)).cast(pa.timestamp("us", "UTC"))
    words = pa.array(ranks).cast(pa.string())
    return pa.table(
        {"word": words, "value": rng.integers(0, 100, rows), "user": rng.integers(0, 5000, rows), "ts": times}
    )


def compare(
    cases: dict, rows: int, target: str, limit: float, *, batches: int = BATCHES, rounds: int = 2
) -> list[dict]:
    """Time ours and the native twin in turn; a case gives a flow, a frame and the output mode."""
    place, rng = Workplace(), np.random.default_rng(0)
    for batch in range(batches):
        place.add(events(batch, rows, rng))
    found = []
    with session(2, 2) as spark:
        for name, (flow, frame, mode) in cases.items():
            ours, theirs = [], []
            for _ in range(rounds):
                theirs += run_native(frame(place.stream(spark)), place.fresh("native"), mode)[1:]
                ours += trigger_ms(run_ours(flow(place.stream(spark)), place))[1:]
            ratio = median(theirs) / median(ours)
            found.append(
                {
                    "what": name,
                    "value": rows / median(ours) / 1000,
                    "unit": "M rows/s",
                    "target": target,
                    "met": ratio >= limit,
                    "ratio": ratio,
                    "peer": f"native twin: {rows / median(theirs) / 1000:.3g} M rows/s",
                    **repeated(ours),
                }
            )
    place.remove()
    return found


def _applied(operator, *, timed: bool = True):
    from evenkeel.spark.api import stream

    def flow(rows):
        times = {"event_time": "ts", "delay": "10 seconds"} if timed else {}
        return stream(rows, key="word", **times).apply(operator, channels=2)

    return flow


def aggregates(quick: bool) -> list[dict]:
    """Aggregates beside Spark's."""
    from pyspark.sql import functions as F

    def grouped(*columns):
        return lambda rows: rows.groupBy("word").agg(*(column() for column in columns))

    several = Aggregate(
        n=Count(),
        there=CountOf("value"),
        total=Sum("value"),
        low=Min("value"),
        high=Max("value"),
        avg=Mean("value"),
        var=Variance("value"),
    )
    ends = Aggregate(first=First("value"), last=Last("value"))
    natives = [lambda: F.count("*")]
    natives += [partial(function, "value") for function in (F.count, F.sum, F.min, F.max, F.avg, F.variance)]
    cases = {
        "count": (_applied(Count()), grouped(natives[0]), "update"),
        "counts, sum, min, max, mean, variance": (_applied(several), grouped(*natives), "update"),
        "first and last by event time": (
            _applied(ends),
            grouped(partial(F.min_by, "value", "ts"), partial(F.max_by, "value", "ts")),
            "update",
        ),
        "approximate distinct": (
            _applied(ApproxDistinct("user")),
            grouped(partial(F.approx_count_distinct, "user")),
            "update",
        ),
    }
    return compare(cases, ROWS, "≥ 0.5× native", 0.5, rounds=1 if quick else 2)


def windows(quick: bool) -> list[dict]:
    """Event-time windows beside Spark's."""
    from pyspark.sql import functions as F

    def windowed(*size):
        def frame(rows):
            late = rows.withWatermark("ts", "10 seconds")
            return late.groupBy("word", F.window("ts", *size)).agg(F.count("*"), F.sum("value"))

        return frame

    inner = Aggregate(n=Count(), total=Sum("value"))
    cases = {
        "tumbling windows of 20 s": (_applied(Tumbling(inner, "20 seconds")), windowed("20 seconds"), "append"),
        "sliding windows of 30 s every 10 s": (
            _applied(Sliding(inner, "30 seconds", "10 seconds")),
            windowed("30 seconds", "10 seconds"),
            "append",
        ),
    }
    return compare(cases, ROWS, "≥ 0.5× native", 0.5, rounds=1 if quick else 2)


def sessions(quick: bool) -> list[dict]:
    """Sessions beside Spark's session windows."""
    from pyspark.sql import functions as F

    def frame(rows):
        late = rows.withWatermark("ts", "10 seconds")
        return late.groupBy("word", F.session_window("ts", "15 seconds")).agg(F.count("*"), F.sum("value"))

    operator = Sessions("15 seconds", Aggregate(n=Count(), total=Sum("value")))
    cases = {"sessions with a gap of 15 s": (_applied(operator), frame, "append")}
    return compare(cases, ROWS, "≥ 0.5× native", 0.5, rounds=1 if quick else 2)


def join(quick: bool) -> list[dict]:
    """A join of two streams within a second beside Spark's stream-stream join."""
    from pyspark.sql import functions as F

    from evenkeel.spark.api import stream

    def sides(rows):
        half = F.col("value") % 2 == 0
        return rows.where(half), rows.where(~half)

    def flow(rows):
        sided = rows.withColumn("side", F.when(F.col("value") % 2 == 0, "left").otherwise("right"))
        keyed = stream(sided, key="word", event_time="ts", delay="10 seconds")
        return keyed.apply(WindowJoin(["user"], ["user"], "1 second"), channels=2)

    def frame(rows):
        left, right = (side.withWatermark("ts", "10 seconds") for side in sides(rows))
        left, right = left.alias("l"), right.alias("r")
        near = F.expr("l.word = r.word AND r.ts BETWEEN l.ts - INTERVAL 1 SECOND AND l.ts + INTERVAL 1 SECOND")
        return left.join(right, near).select("l.word", "l.user", F.col("r.user").alias("other"))

    cases = {"join within a second": (flow, frame, "append")}
    return compare(cases, min(ROWS, 10_000 if quick else 50_000), "≥ 1× native", 1.0, rounds=1 if quick else 2)


def _processor(kind: str):
    """The same per-key logic by ``transformWithStateInPandas``."""
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor

    class SessionsByState(StatefulProcessor):
        """One open session per key; closed when a tuple comes after the gap."""

        def init(self, handle) -> None:
            self.session = handle.getValueState("session", "start timestamp, last timestamp, n long, total long")

        def handleInputRows(self, key, rows, timerValues):  # noqa: ARG002, N802, N803
            start, last, n, total = self.session.get() if self.session.exists() else (None, None, 0, 0)
            closed = []
            for frame in rows:
                for ts, value in frame.sort_values("ts")[["ts", "value"]].itertuples(index=False):
                    if last is not None and (ts - last).total_seconds() > 15:
                        closed.append((key[0], start, last, n, total))
                        start, n, total = ts, 0, 0
                    start, last, n, total = start or ts, ts, n + 1, total + int(value)
            self.session.update((start, last, n, total))
            if closed:
                yield pd.DataFrame(closed, columns=["word", "start", "last", "n", "total"])

        def close(self) -> None:
            pass

    class RuleByState(StatefulProcessor):
        """The mean of the last 20 values of each key."""

        def init(self, handle) -> None:
            self.values = handle.getListState("values", "value long")

        def handleInputRows(self, key, rows, timerValues):  # noqa: ARG002, N802, N803
            kept = [row[0] for row in self.values.get()]
            alerts = []
            for frame in rows:
                for value in frame["value"]:
                    last = kept[-20:]
                    if last and value > 1.8 * sum(last) / len(last):
                        alerts.append((key[0], int(value), sum(last) / len(last)))
                    kept = [*last, int(value)]
            self.values.put([(value,) for value in kept[-20:]])
            if alerts:
                yield pd.DataFrame(alerts, columns=["word", "value", "mean"])

        def close(self) -> None:
            pass

    if kind == "sessions":
        return SessionsByState(), "word string, start timestamp, last timestamp, n long, total long"
    return RuleByState(), "word string, value long, mean double"


def _by_state(kind: str):
    def frame(rows):
        processor, schema = _processor(kind)
        return rows.groupBy("word").transformWithStateInPandas(processor, schema, "Append", "None")

    return frame


def beside_state(name: str, operator, kind: str, *, timed: bool, quick: bool) -> list[dict]:
    """Time the same logic in ``transformWithStateInPandas``, whose cost goes by keys rather than by rows."""
    rows, often = (ROWS_BY_STATE // 10, 1) if quick else (ROWS_BY_STATE, 4)
    numbers = (KEYS_BY_STATE,) if quick else (KEYS, KEYS_BY_STATE)
    return [_beside_state(f"{name}, {keys:,} keys", operator, kind, rows, keys, often, timed=timed) for keys in numbers]


def _beside_state(name: str, operator, kind: str, rows: int, keys: int, often: int, *, timed: bool) -> dict:
    """Time both: a small batch to warm up, and two more.

    That takes it minutes. The last counts, where most keys are known already, as in a query that runs on. Ours gets the
    same batches and ten more, of which the last six count, in the last of so many rounds, since it takes a while until
    a JVM is warm; the rounds before are told too. So do Python workers that get the columns that are needed
    (``timed``: event times too) and do nothing: what Spark alone takes.
    """
    mine, theirs, rng = Workplace(), Workplace(), np.random.default_rng(0)
    tables = [events(0, 2_000, rng, keys), *(events(batch, rows, rng, keys) for batch in range(1, 13))]
    for table in tables:
        mine.add(table)
    for table in tables[:3]:
        theirs.add(table)
    rounds = []
    with session(2, 2) as spark:
        for _ in range(often):
            needed = mine.stream(spark).select("word", "value", *(["ts"] if timed else []))
            bare = median(run_native(carried(needed, "word"), mine.fresh("carried"), "append")[-6:])
            ours = trigger_ms(run_ours(_applied(operator, timed=timed)(mine.stream(spark)), mine))[-6:]
            rounds.append(median(ours))
        peer = run_native(_by_state(kind)(theirs.stream(spark)), theirs.fresh("native"), "append")[-1]
    mine.remove()
    theirs.remove()
    ratio = peer / median(ours)
    return {
        "what": f"{name}, beside transformWithStateInPandas",
        "value": rows / median(ours) / 1000,
        "unit": "M rows/s",
        "target": "≥ 50×",
        "met": ratio >= 50,
        "ratio": ratio,
        "peer": f"transformWithStateInPandas: {1000 * rows / peer:.0f} rows/s; "
        f"rows carried to Python, no more: {peer / bare:.0f}×; "
        f"rounds: {', '.join(f'{peer / took:.0f}×' for took in rounds)}",
        **repeated(ours),
    }


def sessions_by_state(quick: bool) -> list[dict]:
    """Sessions beside the same logic in ``transformWithStateInPandas``."""
    operator = Sessions("15 seconds", Aggregate(n=Count(), total=Sum("value")))
    return beside_state("sessions", operator, "sessions", timed=True, quick=quick)


def rules_by_state(quick: bool) -> list[dict]:
    """A rule over the last 20 events beside the same logic in ``transformWithStateInPandas``."""
    return beside_state("CEP rule", Detector({"spike": RULE}), "rule", timed=False, quick=quick)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        ROWS = ROWS_BY_STATE = int(sys.argv[3])
    report(globals(), sys.argv[1:])
