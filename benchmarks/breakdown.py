"""Where the time of a batch goes: by the clock, from Spark's event log and progress, and by core, from the system.

Every case runs in a process of its own, with all cores, and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.engine import COUNT_AND_SUM
from benchmarks.measure import descendants, each_alone, repeated, report
from benchmarks.spark_peers import Workplace, discard, session, zipf_rows

CASES = ["many_keys", "few_keys"]
BATCHES, ROUNDS_BEFORE, COUNTED = 12, 40, 8
LOGGED = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
THREADS = {
    "Executor task": "Spark's tasks",
    "C1 Compiler": "Java's compilers",
    "C2 Compiler": "Java's compilers",
    "stream exec": "Spark's thread of the stream",
}
"""What Java's threads do, by how their names begin."""
REST = "the rest of Java"
_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Job:
    """When the job of a batch began and ended, and its two stages, in milliseconds since 1970."""

    began: float
    stages: tuple[tuple[float, float], tuple[float, float]]
    ended: float

    def parts(self, batch: dict[str, float]) -> dict[str, float]:
        """What took how long of a batch, of which Spark tells how long its parts took."""
        (first, second), (third, fourth) = self.stages
        job = self.ended - self.began
        return {
            "a batch": batch["triggerExecution"],
            "tasks that read tuples, combine and pack them": second - first,
            "tasks of the channels": fourth - third,
            "Spark, before, between and after the tasks": job - (second - first) - (fourth - third),
            "the query put together and planned; reports, decision, commit": batch["addBatch"] - job,
            "Spark between two batches": batch["triggerExecution"] - batch["addBatch"],
        }


def run(quick: bool) -> list[dict]:
    """Run all cases, one after the other."""
    return each_alone("breakdown", CASES, quick, first=["few_keys"])


def many_keys(quick: bool) -> list[dict]:
    """Count and sum, 500,000 rows a batch, 62,000 keys in it."""
    return _breakdown(1.0, quick)


def few_keys(quick: bool) -> list[dict]:
    """The same with 700 keys in a batch."""
    return _breakdown(2.0, quick)


def _breakdown(skew: float, quick: bool) -> list[dict]:
    from evenkeel.spark.api import stream

    place, rng = Workplace(), np.random.default_rng(0)
    for _ in range(BATCHES):
        place.add(zipf_rows(500_000, 100_000, skew, rng))
    before, counted = (1, 1) if quick else (ROUNDS_BEFORE, COUNTED)
    progress, used = [], []
    with tempfile.TemporaryDirectory() as log:
        with session(2, 2, settings={**LOGGED, "spark.eventLog.dir": log}) as spark:
            jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001
            for round_number in range(before + counted):
                flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, channels=2)
                start = processor_ms(jvm)
                query = flow.start(discard, checkpoint=place.fresh("checkpoint"), local_directory=place.fresh("local"))
                query.process_all_available()
                if round_number >= before:
                    used.append({who: ms / BATCHES for who, ms in (processor_ms(jvm) - start).items()})
                    progress += [entry for entry in query.progress if entry["numInputRows"]][1:]
                query.stop()
        jobs = [job for path in sorted(Path(log).rglob("events_*")) for job in jobs_of(path)]
    place.remove()
    return _rows(f"z = {skew:g}", progress, jobs, used)


def _rows(what: str, progress: list[dict], jobs: list[Job], used: list[dict[str, float]]) -> list[dict]:
    batches = []
    for entry in progress:
        began = 1000 * datetime.fromisoformat(entry["timestamp"].replace("Z", "+00:00")).timestamp()
        took = entry["durationMs"]
        batches += [job.parts(took) for job in jobs if began <= job.began < began + took["triggerExecution"]]
    clock = {f"{what}, by the clock: {name}": [batch[name] for batch in batches] for name in batches[0]}
    cores = {f"{what}, processor time: {who}": [each[who] for each in used] for who in sorted(used[0])}
    return [
        {"what": name, "value": median(values), "unit": "ms", **(repeated(values) if median(values) else {})}
        for name, values in {**clock, **cores}.items()
    ]


def jobs_of(log: Path) -> list[Job]:
    """Read the jobs of two stages from an event log of Spark's."""
    began, stages, jobs = {}, {}, []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            began[event["Job ID"]] = event["Submission Time"], event["Stage IDs"]
        elif event["Event"] == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            stages[info["Stage ID"]] = info["Submission Time"], info["Completion Time"]
        elif event["Event"] == "SparkListenerJobEnd":
            at, ids = began[event["Job ID"]]
            ran = [stages[number] for number in sorted(ids) if number in stages]
            if len(ran) == 2:  # Those of homes have others.
                jobs.append(Job(at, (ran[0], ran[1]), event["Completion Time"]))
    return jobs


def processor_ms(jvm: int) -> Counter[str]:
    """Milliseconds of processor time that Java's threads, the workers and the driver's Python have had so far."""
    found = Counter({"the driver's Python": 1000 * time.process_time()})
    for thread in Path(f"/proc/{jvm}/task").iterdir():
        with suppress(OSError):  # it has ended
            name = (thread / "comm").read_text()
            found[next((what for start, what in THREADS.items() if name.startswith(start)), REST)] += _ticks_ms(thread)
    for pid in descendants(jvm):
        with suppress(OSError):
            found["Python workers"] += _ticks_ms(Path(f"/proc/{pid}"))
    return found


def _ticks_ms(folder: Path) -> float:
    fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
    return _TICK_MS * (int(fields[11]) + int(fields[12]))


if __name__ == "__main__":
    report(globals(), sys.argv[1:])
