"""The loss of a host, the cost of replicas, and what plans with replicas move.

Every case runs in a process of its own, with all cores, and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.loopback import REPOSITORY, Cluster, kill_with_children, start_driver, until
from benchmarks.measure import each_alone, repeated, report
from benchmarks.recovery_job import CHANNELS, METHODS
from benchmarks.spark_peers import Workplace, run_ours, session, trigger_ms, zipf_rows
from evenkeel.control import ServiceLevels
from evenkeel.operators import Aggregate, Count, Sum
from evenkeel.report import Panel, draw, to_png, to_svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULTS = Path(__file__).parent / "results"
CASES = ["recovery", "cost", "plans"]
VALUE_BYTES = 64 << 10  # that a key of the ballast holds
FILE_BYTES = 64 << 20
HOT_KEYS, ROWS_PER_FILE, FEED_EVERY_S = 300, 250, 0.25
FED_PER_S = ROWS_PER_FILE / FEED_EVERY_S
AROUND_S = 10  # after a loss, for which throughput is told
LONGEST_S = 900
NAMES = {
    "ftlb": "FTLB: backups on all other channels",
    "taskb": "TaskB: backups on one other channel",
    "checkpoint": "from the checkpoint",
    "replay": "from the source",
    "spark": "Spark's own aggregate, RocksDB",
}


def run(quick: bool) -> list[dict]:
    """Run all cases, one after the other."""
    return each_alone("recovery", CASES, quick, first=["cost"])


@dataclass(frozen=True)
class Loss:
    """What the loss of a host cost."""

    latency_s: float
    """From the kill to the next commit."""
    delay_s: float
    """Mean delay of the tuples that came from the kill until then."""
    rows_per_s: float
    """Of the tuples that came in the ten seconds after the kill, until all of them were committed."""
    batch: int
    """The batch of that commit."""


class Trial:
    """A query with so much state per channel, fed at a fixed rate, whose hosts are lost."""

    def __init__(self, directory: Path, method: str, state_bytes: int, seed: int) -> None:
        self.directory, self.method, self.state_bytes = directory, method, state_bytes
        self.moments = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.born: dict[str, float] = {}
        self.fed: Counter[str] = Counter()
        self.kills = 0
        self._feeding = threading.Lock()
        self._done = threading.Event()

    # -- input ------------------------------------------------------------------------------------------------------

    def give(self, keys: list[str], payloads: list[bytes] | None = None) -> str:
        """Add a file to the input; says its name."""
        with self._feeding:
            name = f"part-{len(self.born):06d}.parquet"
            hidden = self.directory / "in" / f".{name}"
            values = pa.nulls(len(keys), pa.binary()) if payloads is None else pa.array(payloads, pa.binary())
            pq.write_table(pa.table({"key": keys, "payload": values}), hidden, compression="none")
            self.born[name] = time.time()
            hidden.rename(self.directory / "in" / name)
            self.fed.update(keys)
            return name

    def load(self) -> None:
        """Give every channel its ballast."""
        keys = [f"ballast{number}" for number in range(max(CHANNELS, CHANNELS * self.state_bytes // VALUE_BYTES))]
        self.ballast = keys
        step = FILE_BYTES // VALUE_BYTES
        for start in range(0, len(keys), step):
            part = keys[start : start + step]
            last = self.give(part, [self.rng.bytes(VALUE_BYTES) for _ in part])
        until(lambda: self.committed_at(last) is not None, "the state is loaded", LONGEST_S)

    def feed(self) -> None:
        """Give tuples at a fixed rate until all is done."""
        while not self._done.wait(FEED_EVERY_S):
            self.give([f"hot{number}" for number in self.rng.integers(0, HOT_KEYS, ROWS_PER_FILE)])

    # -- what the query did -----------------------------------------------------------------------------------------

    @property
    def log(self) -> Path:
        """Where Spark notes batches and files, of the query that was started last."""
        runs = sorted(self.directory.glob("run-*"), key=lambda path: int(path.name[4:]))
        return (runs[-1] if runs else self.directory / "run-0") / "spark"

    def commits(self) -> dict[int, float]:
        """When each batch was committed."""
        found = {}
        for path in self.log.glob("commits/*"):
            with suppress(FileNotFoundError):  # Spark removes old ones
                if path.name.isdigit():
                    found[int(path.name)] = path.stat().st_mtime
        return found

    def started(self) -> int:
        """The last batch that began."""
        return max((int(path.name) for path in self.log.glob("offsets/*") if path.name.isdigit()), default=-1)

    def batches(self) -> dict[str, int]:
        """The batch of each file."""
        found = {}
        for path in self.log.glob("sources/0/[0-9]*"):
            with suppress(FileNotFoundError):
                for line in path.read_text().splitlines()[1:]:
                    entry = json.loads(line)
                    found[Path(entry["path"]).name] = entry["batchId"]
        return found

    def committed_at(self, name: str) -> float | None:
        """When a file was committed; None if it is not yet."""
        self._check()
        return self.commits().get(self.batches().get(name, -1))

    def _check(self) -> None:
        if self.job.poll() is not None:
            raise RuntimeError(f"{self.method}: the driver ended.\n{self._log_tail()}")

    def _log_tail(self) -> str:
        return (self.directory / "job.log").read_text()[-3000:]

    # -- the run ----------------------------------------------------------------------------------------------------

    @contextmanager
    def running(self):
        """A cluster of three hosts and one that stands by, the query loaded, and tuples coming."""
        (self.directory / "in").mkdir()
        with Cluster(self.directory) as self.cluster:
            self.workers = {number: self.cluster.add_host(number, memory="1600m") for number in (2, 3, 4, 5)}
            until(lambda: self.cluster.workers == len(self.workers), "the workers come")
            script = REPOSITORY / "benchmarks" / "recovery_job.py"
            self.give([f"hot{number}" for number in range(HOT_KEYS)])
            self.job = start_driver(
                script, self.directory / "job.log", self.cluster.address, str(self.directory), self.method
            )
            self._feeder = threading.Thread(target=self.feed)
            try:
                self.load()
                self._feeder.start()
                yield self
            finally:
                self._done.set()
                if self.job.poll() is None:
                    os.killpg(self.job.pid, signal.SIGKILL)
                    self.job.wait()

    def settle(self) -> None:
        """Wait until all backups are there, and some batches ran undisturbed."""
        if self.method in {"ftlb", "taskb"}:
            until((self.directory / "settled").exists, "all backups are made", LONGEST_S)
        first = self.started()
        until(lambda: self.started() >= first + 6 or self._check(), "batches that warm up", LONGEST_S)

    def lose_a_host(self) -> Loss:
        """Kill a host in the midst of a batch, with all that it held on disk; another one stands by.

        Again, where that came too late: the batch was all done but for its commit.
        """
        loss = None
        while loss is None:
            loss = self._lose_one()
        return loss

    def _lose_one(self) -> Loss | None:
        self.settle()
        times = sorted(self.commits().values())[-6:]
        usual_s = min(np.diff(times))
        number = self.moments.choice([n for n in self.workers if self.cluster.executors(n)])
        batch = self.started()
        until(lambda: self.started() > batch, "the next batch begins")
        time.sleep(self.moments.uniform(0.1, 0.5) * usual_s)
        kill_with_children(self.workers[number])
        killed = time.time()
        gone = self.directory / f"gone-{self.kills}"
        gone.mkdir()
        for place in (self.directory, self.directory / "local"):
            lost = place / f"127.0.0.{number}"
            if lost.exists():
                lost.rename(gone / place.name)
        (self.directory / f"lost-{self.kills}").touch()
        self.kills += 1
        loss = self._measure(killed)
        shutil.rmtree(gone)
        registered = self.cluster.workers
        self.workers[number] = self.cluster.add_host(number, memory="1600m")
        until(lambda: self.cluster.workers > registered, "the host comes back, to stand by")
        return loss

    def _measure(self, killed: float) -> Loss | None:
        until(lambda: self._first_commit(killed), "a batch after the loss", LONGEST_S)
        batch, recovered = self._first_commit(killed)
        until(lambda: time.time() > killed + AROUND_S, "the seconds after the loss")
        born = dict(self.born)
        affected = [name for name, at in born.items() if killed <= at <= recovered]
        if not affected:
            return None
        around = [name for name, at in born.items() if killed <= at <= killed + AROUND_S]
        until(lambda: self.committed_at(max(affected + around)), "what came after the loss", LONGEST_S)
        commits, batches = self.commits(), self.batches()
        done = {name: commits[batches[name]] for name in {*affected, *around}}
        return Loss(
            recovered - killed,
            mean(done[name] - born[name] for name in affected),
            ROWS_PER_FILE * len(around) / (max(done[name] for name in around) - killed),
            batch,
        )

    def _first_commit(self, killed: float) -> tuple[int, float] | None:
        """The batch after a loss and when it was committed; from the source, all that came before it must be back."""
        self._check()
        later = {batch: at for batch, at in self.commits().items() if at > killed}
        if self.method == "replay":
            if self.log.parent.name != f"run-{self.kills}":
                return None
            last = max(name for name, at in dict(self.born).items() if at < killed)
            later = {batch: at for batch, at in later.items() if batch == self.batches().get(last)}
        return min(later.items(), default=None)

    def finish(self) -> dict[int, list[str]]:
        """Call the roll of the state, check that nothing is lost, and end the query.

        Gives how the channels were opened in each batch; nothing for Spark's own query.
        """
        self._done.set()
        self._feeder.join()
        sample = self.moments.sample(self.ballast, min(len(self.ballast), 200))
        last = self.give(sample)
        until(lambda: self.committed_at(last), "the roll call", LONGEST_S)
        counts: dict[str, int] = {}
        held: dict[str, int] = {}
        for row in pq.read_table(self.log.parent / "out").to_pylist():
            counts[row["key"]] = max(row["n"], counts.get(row["key"], 0))
            held[row["key"]] = row["bytes"]
        wrong = {key: (counts.get(key), count) for key, count in self.fed.items() if counts.get(key) != count}
        assert not wrong, f"{self.method}: keys with another count than they should have: {wrong}"
        assert all(held[key] == VALUE_BYTES for key in sample), f"{self.method}: a key does not hold what it was given"
        (self.directory / "end").touch()
        if self.job.wait(LONGEST_S):
            raise RuntimeError(self._log_tail())
        opened = self.directory / "opened.json"
        found = json.loads(opened.read_text()) if opened.exists() else {}
        return {int(batch): how for batch, how in found.items()}


def recovery(quick: bool) -> list[dict]:
    """Lose a host with its disk, at several sizes of state, by several ways to get the state back."""
    sizes_mb = (1, 16) if quick else (1, 30, 1000)
    losses: dict[tuple[str, int], list[Loss]] = {}
    rebuilt = 0
    for size_mb, method in product(sizes_mb, METHODS):
        with tempfile.TemporaryDirectory(prefix="evenkeel-recovery-", ignore_cleanup_errors=True) as directory:
            trial = Trial(Path(directory), method, size_mb * 1_000_000, seed=size_mb)
            with trial.running():
                often = 1 if quick else 5 if size_mb == sizes_mb[-1] else 3
                found = [trial.lose_a_host() for _ in range(often)]
                opened = trial.finish()
        losses[method, size_mb] = found
        if method == "ftlb":
            rebuilt += sum(opened[loss.batch].count("rebuilt") for loss in found)
        each = ", ".join(f"{loss.latency_s:.1f}" for loss in found)
        print(f"{size_mb} MB, {method}: {each} s", file=sys.stderr, flush=True)
    draw_losses(losses)
    return loss_rows(losses, rebuilt)


def loss_rows(losses: Mapping[tuple[str, int], Sequence[Loss]], rebuilt: int) -> list[dict]:
    """One row for each way and size, and how the times compare; ``rebuilt`` channels of FTLB read the checkpoint."""
    latency = {point: median(loss.latency_s for loss in found) for point, found in losses.items()}
    sizes_mb = sorted({size_mb for _, size_mb in losses})
    least, most = sizes_mb[0], sizes_mb[-1]
    rows = []
    for (method, size_mb), found in losses.items():
        delay, through = (median(getattr(loss, name) for loss in found) for name in ("delay_s", "rows_per_s"))
        rows.append(
            {
                "what": f"{NAMES[method]}, {size_mb:,} MB a channel",
                "value": latency[method, size_mb],
                "unit": "s",
                "peer": f"tuples waited {delay:.1f} s; {through:,.0f} of {FED_PER_S:,.0f} rows/s",
                **repeated([loss.latency_s for loss in found]),
                "delay_s": delay,
                "rows_per_s": through,
                "losses_s": [loss.latency_s for loss in found],
            }
        )
    growth, share = (latency["ftlb", most] / latency[peer] for peer in (("ftlb", least), ("checkpoint", most)))
    return [
        *rows,
        {
            "what": f"FTLB with {most:,} MB a channel",
            "value": latency["ftlb", most],
            "unit": "s",
            "target": "≤ 1.3×",
            "met": growth <= 1.3,
            "ratio": growth,
            "peer": f"FTLB with {least:,} MB",
        },
        {
            "what": f"FTLB with {most:,} MB a channel",
            "value": latency["ftlb", most],
            "unit": "s",
            "target": "≤ 0.5×",
            "met": share <= 0.5,
            "ratio": share,
            "peer": "from the checkpoint",
        },
        {
            "what": "channels that FTLB restored from the checkpoint",
            "value": rebuilt,
            "unit": "",
            "target": "none",
            "met": rebuilt == 0,
        },
    ]


def draw_losses(losses: Mapping[tuple[str, int], Sequence[Loss]]) -> None:
    """Draw all losses as recovery.svg and recovery.png among the results."""
    table = pa.Table.from_pylist(
        [
            {
                "strategy": NAMES[method],
                "size_mb": size_mb,
                **{
                    name: median(getattr(loss, name) for loss in found)
                    for name in ("latency_s", "delay_s", "rows_per_s")
                },
            }
            for (method, size_mb), found in losses.items()
        ]
    )
    axis = {"x": "size_mb", "x_label": "state per channel (MB)", "log_x": True}
    figure = draw(
        table,
        (
            Panel(**axis, y="latency_s", y_label="recovery (s)", log_y=True),
            Panel(**axis, y="delay_s", y_label="mean delay of tuples (s)", log_y=True),
            Panel(**axis, y="rows_per_s", y_label="rows/s after the loss", reference=FED_PER_S),
        ),
        columns=3,
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "recovery.svg").write_text(to_svg(figure, "recovery"))
    (RESULTS / "recovery.png").write_bytes(to_png(figure))


def cost(quick: bool) -> list[dict]:
    """Count and sum, Zipf z=1, 1,000 keys: with no backups, with those of the hottest 100 keys, and of all."""
    from evenkeel.spark.api import stream

    place, rng, size = Workplace(), np.random.default_rng(0), 200_000 if quick else 500_000
    for _ in range(7):
        place.add(zipf_rows(size, 1000, 1.0, rng))
    levels = {"no replicas": 0, "replicas of the hottest 10 %": ServiceLevels(hottest=100), "replicas of all keys": 1}
    times: dict[tuple[str, str], list[float]] = {}
    combined = {"": None} if quick else {"": None, ", not combined before the shuffle": False}
    with session(2, 2) as spark:
        for _, (name, replicas), (how, combine) in product(range(2 if quick else 6), levels.items(), combined.items()):
            flow = stream(place.stream(spark), key="word").apply(
                Aggregate(n=Count(), total=Sum("value")),
                strategy="key_grouping",
                channels=2,
                replicas=replicas,
                combine=combine,
            )
            times.setdefault((name, how), []).append(median(trigger_ms(run_ours(flow, place))[3:]))
    place.remove()
    rows = []
    for (name, how), mine in times.items():
        ratios = [none / own for none, own in zip(times["no replicas", how][1:], mine[1:], strict=True)]  # one warms up
        rows.append(
            {
                "what": name + how,
                "value": size / median(mine[1:]) / 1000,
                "unit": "M rows/s",
                "ratio": median(ratios),
                "peer": "no replicas",
                **repeated(ratios),
            }
        )
    return rows


def plans(quick: bool) -> list[dict]:
    """What FTLB's plans move and how long they take, beside planners without replicas: Figures 8 and 9."""
    from experiments.ftlb import fig8, fig9

    scale = "small" if quick else "full"
    thetas = (0.02, 0.1, 0.5) if quick else (0.02, 0.05, 0.1, 0.2, 0.5)
    by_theta = fig8.measure(**{**fig8.EXPERIMENT.settings[scale], "thetas": thetas})
    by_keys = fig9.measure(**fig9.EXPERIMENT.settings[scale])
    rows = []
    for column, table in (("theta_max", by_theta), ("keys", by_keys)):
        points: dict[float, dict[str, dict]] = {}
        for row in table.to_pylist():
            points.setdefault(row[column], {})[row["strategy"]] = row
        for point, found in points.items():
            label = f"θ_max = {point}" if column == "theta_max" else f"{point:,} keys"
            for measure, unit, what in (("moved_percent", "% of state", "moves"), ("plan_ms", "ms", "plans")):
                mine, mixed = found["FTLB"][measure], found["Mixed"][measure]
                others = ", ".join(f"{name} {row[measure]:.3g}" for name, row in found.items() if name != "FTLB")
                goal = {"target": "≤ Mixed", "met": mine <= mixed}
                if what == "plans":  # the paper: within a second, even close to absolute balance
                    goal = {"target": "≤ 1000 ms", "met": mine <= 1000} if column == "theta_max" else {}
                rows.append(
                    {
                        "what": f"FTLB {what}, {label}",
                        "value": mine,
                        "unit": unit,
                        **goal,
                        "ratio": mine / mixed if mixed else None,
                        "peer": others,
                    }
                )
    return rows


if __name__ == "__main__":
    report(globals(), sys.argv[1:])
