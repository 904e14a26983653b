"""A tiny keyed stream that reports as the engine does, with no engine in it."""

from __future__ import annotations

import numpy as np

from evenkeel import metrics
from evenkeel.control import BatchReport, ChannelReport, Controller, ControlOptions, Saved, Tally
from evenkeel.hashing import hash_keys
from evenkeel.planning import LoadSnapshot
from evenkeel.routing import RoutingTable

HEAVY_KEYS = 40
MS_PER_TUPLE = 0.1
STATE_BYTES = 1000


def zipf(keys: int, exponent: float) -> np.ndarray:
    weights = 1.0 / np.arange(1, keys + 1) ** exponent
    return weights / weights.sum()


def with_hot_key(popularity: np.ndarray, key: int, share: float) -> np.ndarray:
    changed = popularity * (1 - share)
    changed[key] += share
    return changed


class Stream:
    """Poisson counts of keys with a popularity that the test may change between batches."""

    def __init__(self, seed: int, *, keys: int = 1500, exponent: float = 1.0, rows: float = 4000) -> None:
        self.rng = np.random.default_rng(seed)
        self.hashes = hash_keys(np.arange(keys))
        self.popularity = self.rng.permutation(zipf(keys, exponent))
        self.rows = rows
        self.batch = 0

    def drift(self, share: float) -> None:
        """Let a share of the popularity go to other keys."""
        self.popularity = (1 - share) * self.popularity + share * self.rng.permutation(self.popularity)

    def next_batch(self, table: RoutingTable, *, moved_bytes: int = 0) -> BatchReport:
        counts = self.rng.poisson(self.popularity * self.rows)
        homes = table.route(self.hashes)
        reports = []
        for channel in range(table.channels):
            mine = homes == channel
            hashes, tuples = self.hashes[mine], counts[mine]
            costs, state = tuples * MS_PER_TUPLE, np.full(len(hashes), STATE_BYTES)
            listed = np.isin(hashes, table.pin_hashes)
            told = np.union1d(np.argsort(-tuples, kind="stable")[:HEAVY_KEYS], np.flatnonzero(listed)).astype(int)
            reports.append(
                ChannelReport(
                    channel,
                    float(costs.sum()),
                    Tally(hashes % table.slots, tuples, costs, state),
                    Tally(hashes[told], tuples[told], costs[told], state[told]),
                    len(hashes),
                )
            )
        self.batch += 1
        return BatchReport(self.batch, float(self.batch), tuple(reports), moved_bytes, moved_bytes / 50_000)


class Run:
    """A stream under control; remembers every table, verdict and measured skewness."""

    def __init__(self, stream: Stream, controller: Controller, table: RoutingTable) -> None:
        self.stream, self.controller, self.table = stream, controller, table
        self.skewness: list[float] = []
        self.moved: list[int] = []
        self.verdicts = []

    def step(self) -> None:
        moved = self.verdicts[-1].decision.step_bytes if self.verdicts and self.verdicts[-1].table else 0
        report = self.stream.next_batch(self.table, moved_bytes=moved)
        costs = np.array([part.slots.costs.sum() for part in report.channels])
        self.skewness.append(metrics.skewness(costs))
        self.controller.observe(report)
        verdict = self.controller.decide(self.table, now=float(self.stream.batch))
        self.verdicts.append(verdict)
        if verdict.table is not None:
            self.moved.append(bytes_between(self.table, verdict.table, self.stream))
            self.table = verdict.table
        else:
            self.moved.append(0)

    def steps(self, batches: int) -> Run:
        for _ in range(batches):
            self.step()
        return self

    def changes(self, start: int = 0) -> int:
        return sum(verdict.table is not None for verdict in self.verdicts[start:])


def bytes_between(old: RoutingTable, new: RoutingTable, stream: Stream) -> int:
    """Bytes of state that really change channel."""
    return int((old.home(stream.hashes) != new.home(stream.hashes)).sum()) * STATE_BYTES


def frozen_clock() -> float:
    return 0.0


def a_run(planner, options: ControlOptions | None = None, *, seed: int = 1, channels: int = 6, **stream) -> Run:
    controller = Controller(planner, options, clock=frozen_clock)
    return Run(Stream(seed, **stream), controller, RoutingTable.even(channels, slots=240))


def stored_and_read(saved: Saved) -> Saved:
    return Saved.from_arrow(saved.to_arrow())


def zipf_window(rng: np.random.Generator, popularity: np.ndarray, tuples: float, slots: int = 512) -> LoadSnapshot:
    hashes = hash_keys(np.arange(len(popularity)))
    return LoadSnapshot.of_keys(hashes, rng.poisson(popularity * tuples), slots=slots, track=100)
