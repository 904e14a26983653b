"""The job behind ``evenkeel demo``: a stream whose popular words change, through the engine, under any strategy."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from evenkeel.control import Controller, ControlOptions, WindowOptions
from evenkeel.control.gates import check_range
from evenkeel.errors import EvenkeelError, StageFailedError
from evenkeel.jobs import progress_of
from evenkeel.operators import Count
from evenkeel.spark.api import stream
from evenkeel.spark.sinks import Memory
from evenkeel.spark.strategies import as_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from evenkeel.jobs import Progress
    from evenkeel.operators import Groups
    from evenkeel.routing import Router
    from evenkeel.spark.query import Query

__all__ = ["SlowCount", "WordStream", "Work", "check_results", "make_session", "make_strategy", "play", "warm_up"]

_LOOK_EVERY_SECONDS = 0.1
_LEAST_MS = 0.001
_FIRST_FILE = 1_700_000_000  # Spark takes files by their times


@dataclass(frozen=True, slots=True)
class WordStream:
    """Words by a Zipf law, in micro-batches; from batch to batch other words become popular.

    Parameters
    ----------
    batches, rows
        How many micro-batches, and words in each.
    words, skew
        How many different words there are, and the exponent of their frequencies.
    drift
        Between two batches this share of the words, popular or not, trade their popularity among themselves.
    seed
        Every stream with the same seed is the same.
    """

    batches: int
    rows: int
    words: int
    skew: float
    drift: float
    seed: int

    def __post_init__(self) -> None:
        check_range("skew", self.skew, 0, 10)
        check_range("drift", self.drift, 0, 1)

    def counts(self) -> NDArray[np.int64]:
        """Give how often each word comes in each batch, as batches x words."""
        rng = np.random.default_rng(self.seed)
        shares = 1 / np.arange(1, self.words + 1) ** self.skew
        shares = rng.permutation(shares / shares.sum())
        drawn = []
        for _ in range(self.batches):
            drawn.append(rng.multinomial(self.rows, shares))
            traders = rng.choice(self.words, round(self.drift * self.words), replace=False)
            shares[traders] = shares[rng.permutation(traders)]
        return np.stack(drawn)

    def write(self, folder: Path) -> None:
        """Write one file per micro-batch, the words of each in random order."""
        folder.mkdir()
        rng = np.random.default_rng([self.seed, 1])
        names = pa.array([f"word{number}" for number in range(self.words)])
        for batch, counts in enumerate(self.counts()):
            drawn = rng.permutation(np.repeat(np.arange(self.words), counts))
            file = folder / f"{batch:05d}.parquet"
            parquet.write_table(pa.table({"word": names.take(pa.array(drawn))}), file)
            os.utime(file, (_FIRST_FILE + batch, _FIRST_FILE + batch))


@dataclass(frozen=True)
class SlowCount(Count):
    """A count that takes its time over every tuple.

    It waits instead of computing, so that many channels really work side by side on a few cores.
    """

    name = "slow_count"
    seconds: float = 0.0001

    def lift(self, groups: Groups) -> pa.Table:
        """Wait, and count."""
        time.sleep(self.seconds * groups.rows.num_rows)
        return super().lift(groups)


@dataclass(frozen=True, slots=True)
class Work:
    """What is done with the words: on how many channels, and how long a channel takes for one word."""

    channels: int
    word_ms: float

    def __post_init__(self) -> None:
        check_range("word_ms", self.word_ms, _LEAST_MS, 1000)

    def ideal_ms(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give how long each batch takes if its words are dealt out evenly, for counts of batches x words."""
        return counts.sum(axis=1) * self.word_ms / self.channels

    def bound_ms(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give how long each batch takes at the least if no word is split: one channel has all of the hottest."""
        return np.maximum(self.ideal_ms(counts), counts.max(axis=1) * self.word_ms)


def make_strategy(name: str, channels: int) -> Controller | Router:
    """Give the strategy of that name; a planner is asked after every batch, so that a short run shows what it does."""
    found = as_strategy(name, channels)
    eager = ControlOptions(windows=WindowOptions(batches=1))
    return found.router or Controller(found.controller.planner, eager)


def make_session(channels: int, log: Path) -> SparkSession:
    """Start Spark with a thread for each channel; what its JVM says goes to a file, not between our lines."""
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession
    except ImportError as missing:
        raise EvenkeelError("The demo runs on Spark; install it with: pip install 'evenkeel[spark]'") from missing
    # Workers must run the interpreter that runs us, not whatever python3 is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setMaster(f"local[{channels}]").setAppName("evenkeel demo")
    conf.set("spark.ui.enabled", "false").set("spark.sql.shuffle.partitions", str(channels))
    conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    conf.set("spark.log.level", "ERROR").set("spark.ui.showConsoleProgress", "false")
    try:
        with log.open("wb") as file:
            gateway = launch_gateway(conf, {"stderr": file})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise EvenkeelError(
            "Spark could not be started. It needs a JDK 17 or newer, found by JAVA_HOME or on the PATH."
        ) from error
    return SparkSession(SparkContext(conf=conf, gateway=gateway))


def warm_up(spark: SparkSession, work: Work, place: Path, heed: Callable[[], None]) -> None:
    """Run a little through the engine, also a move of state, so that neither run pays for what Spark does only once."""
    place.mkdir()
    WordStream(batches=2, rows=4000, words=20, skew=1.0, drift=0.0, seed=0).write(place / "input")
    for _ in play(spark, place / "input", "keel", replace(work, word_ms=_LEAST_MS), Memory(), place, heed):
        pass


def play(
    spark: SparkSession,
    folder: Path,
    strategy: str,
    work: Work,
    sink: Memory,
    place: Path,
    heed: Callable[[], None],
) -> Iterator[Progress]:
    """Run the stream in ``folder`` through the engine, and give each batch when it is done.

    A batch's time is that which Spark gives for the whole trigger: finding input, the stage, the sink and all commits.
    ``heed`` is called while waiting, and may raise. However it ends, the query has stopped afterwards.
    """
    rows = spark.readStream.schema("word string").option("maxFilesPerTrigger", 1).parquet(str(folder))
    operator = SlowCount(seconds=work.word_ms / 1000)
    query = (
        stream(rows, key="word")
        .apply(operator, make_strategy(strategy, work.channels), work.channels, combine=False)
        .start(
            sink,
            checkpoint=str(place / f"checkpoint-{strategy}"),
            trigger={"availableNow": True},
            local_directory=str(place / f"local-{strategy}"),
        )
    )
    running, seen = query.spark_query, -1
    assert running is not None
    try:
        active = True
        while active:
            active = running.isActive  # Asked first, so that no batch before it is missed.
            ended = [entry for entry in query.history if entry["batch"] > seen]
            took = _trigger_ms(running) if ended else {}
            for entry in ended:
                if entry["batch"] in took:
                    seen = entry["batch"]
                    yield replace(progress_of(entry, query.decisions), ms=took[seen])
            heed()
            if active:
                time.sleep(_LOOK_EVERY_SECONDS)
        _raise_failure(query)
    finally:
        query.stop()


def _trigger_ms(running: StreamingQuery) -> dict[int, float]:
    """Milliseconds of the last batches, as Spark measured them; it tells them a moment after a batch is committed."""
    return {told["batchId"]: float(told["durationMs"]["triggerExecution"]) for told in running.recentProgress}


def _raise_failure(query: Query) -> None:
    """Raise what ended the query, if it failed, in a line."""
    from pyspark.errors import StreamingQueryException

    try:
        query.await_termination()
    except StreamingQueryException as error:
        told = [line for line in str(error).splitlines() if "Error: " in line] or str(error).splitlines()
        raise StageFailedError(f"The query failed. {told[-1].strip()}") from error


def check_results(stream: WordStream, results: Memory) -> None:
    """Compare the results of every batch with the exact counts so far."""
    totals = stream.counts().cumsum(axis=0)
    touched = stream.counts() > 0
    for batch in range(stream.batches):
        table = results.batches.get(batch, pa.table({"word": [], "count": []}))
        found = sorted(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))
        exact = sorted((f"word{word}", int(totals[batch, word])) for word in np.flatnonzero(touched[batch]))
        if found != exact:
            wrong = len(set(found) ^ set(exact))
            raise EvenkeelError(f"The results of batch {batch} are not the exact counts: {wrong} differ.", batch=batch)
