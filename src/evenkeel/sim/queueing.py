"""From loads to latency and throughput: channels that work at a given rate, and pauses while state moves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics import LatencySummary

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_NARROW_S = 1e-6

__all__ = ["Delays", "Fluid", "LatencyLog", "MicroBatches", "Queues", "Served", "Service"]


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """Latencies in seconds as a mixture: ``masses[i]`` tuples, spread evenly from ``lows[i]`` to ``highs[i]``."""

    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    masses: NDArray[np.float64]

    @property
    def total(self) -> float:
        """How many tuples there are."""
        return float(self.masses.sum())

    @property
    def mean(self) -> float:
        """The mean latency; NaN without tuples."""
        return float((self.lows + self.highs) / 2 @ self.masses) / self.total if self.total else math.nan

    @property
    def longest(self) -> float:
        """The longest latency; NaN without tuples."""
        return float(self.highs[self.masses > 0].max()) if self.total else math.nan

    def distribution(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Give points in ascending order, and the tuples with a latency below each, and up to each. O(n log n)."""
        there = self.masses > 0
        highs, masses = self.highs[there], self.masses[there]
        # So narrow a stretch would be so steep that rounding spoils all that comes after it.
        lows = np.where(highs - self.lows[there] < _NARROW_S, highs, self.lows[there])
        points, places = np.unique(np.concatenate([lows, highs]), return_inverse=True)
        first, last = places[: len(lows)], places[len(lows) :]
        sudden = np.zeros(len(points))
        density = np.zeros(len(points))
        at_once = first == last
        np.add.at(sudden, first[at_once], masses[at_once])
        spread = ~at_once
        rates = masses[spread] / (points[last[spread]] - points[first[spread]])
        np.add.at(density, first[spread], rates)
        np.add.at(density, last[spread], -rates)
        gradual = np.concatenate([[0.0], np.cumsum(np.cumsum(density)[:-1] * np.diff(points))])
        up_to = np.maximum.accumulate(gradual + np.cumsum(sudden))
        return points, np.maximum.accumulate(up_to - sudden), up_to

    def quantiles(self, *shares: float) -> list[float]:
        """Give the least latencies that these shares of the tuples do not exceed, to a microsecond; NaN without tuples.

        >>> Delays(np.array([0.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 1.0])).quantiles(0.5, 0.75)
        [0.0, 0.5]
        """
        if not self.total:
            return [math.nan] * len(shares)
        points, below, up_to = self.distribution()
        found = []
        for share in shares:
            wanted = share * up_to[-1]
            at = min(int(np.searchsorted(up_to, wanted)), len(points) - 1)
            if at == 0 or wanted >= below[at]:
                found.append(float(points[at]))
            else:  # within the stretch that ends at this point
                part = (wanted - up_to[at - 1]) / (below[at] - up_to[at - 1])
                found.append(float(points[at - 1] + part * (points[at] - points[at - 1])))
        return found


class LatencyLog:
    """The latencies of a whole run in bounded memory: bins that are 1 % wide, from a microsecond to 30 years."""

    _EDGES: ClassVar[NDArray[np.float64]] = np.concatenate([[0.0], 1e-6 * 1.01 ** np.arange(3470)])

    def __init__(self) -> None:
        self._tuples = np.zeros(len(self._EDGES))
        self._total, self._sum, self._longest = 0.0, 0.0, 0.0

    def add(self, delays: Delays) -> None:
        """Take in a window. O(n log n + bins)."""
        if not delays.total:
            return
        points, below, up_to = delays.distribution()
        # Between two points the distribution is a straight line; at a point it may jump.
        reached = np.interp(self._EDGES, np.repeat(points, 2), np.column_stack([below, up_to]).ravel(), left=0.0)
        at = np.searchsorted(points, self._EDGES)
        exact = (at < len(points)) & (points[np.minimum(at, len(points) - 1)] == self._EDGES)
        reached[exact] = up_to[at[exact]]
        self._tuples += np.diff(reached, prepend=0.0)
        self._total += delays.total
        self._sum += delays.mean * delays.total
        self._longest = max(self._longest, delays.longest)

    def summary(self) -> LatencySummary:
        """Summarise; the mean and the maximum are exact, quantiles at most 1 % too long."""
        if not self._total:
            return LatencySummary(0, *[math.nan] * 5)
        reached = np.cumsum(self._tuples) / self._tuples.sum()
        places = np.minimum(np.searchsorted(reached, np.array([0.5, 0.95, 0.99]) - 1e-12), len(reached) - 1)
        median, p95, p99 = (1e3 * np.minimum(self._EDGES[places], self._longest)).tolist()
        return LatencySummary(round(self._total), 1e3 * self._sum / self._total, median, p95, p99, 1e3 * self._longest)


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """What came of one window.

    Parameters
    ----------
    served
        Load that was worked off.
    backlog
        Load that waits at the end.
    needed_s
        Seconds in which the busiest channel would work off its share of the window, with the pause.
    delays
        Latencies of the tuples that arrived.
    """

    served: float
    backlog: float
    needed_s: float
    delays: Delays


@dataclass(frozen=True)
class Service(ABC):
    """Channels that work at a rate, and migrations that hold them up.

    Parameters
    ----------
    rate
        Load that one channel works off in a second; tuples per second where a tuple costs 1.
    bytes_per_s
        How fast state moves.
    pause_s
        What a migration takes besides, however small it is.
    """

    rate: float
    bytes_per_s: float = math.inf
    pause_s: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate > 0) or not self.bytes_per_s > 0:
            raise InvalidArgumentError(
                f"rate must be finite and above 0, bytes_per_s above 0; got {self.rate} and {self.bytes_per_s}."
            )
        if not (math.isfinite(self.pause_s) and self.pause_s >= 0):
            raise InvalidArgumentError(f"pause_s must be finite and not negative; got {self.pause_s}.")

    def pause_for(self, moves: int, moved_bytes: int) -> float:
        """Give the seconds that a migration takes."""
        return self.pause_s + moved_bytes / self.bytes_per_s if moves else 0.0

    @abstractmethod
    def start(self) -> Queues:
        """Give empty queues."""


class Queues(ABC):
    """The queues of all channels, carried from window to window."""

    @abstractmethod
    def serve(self, loads: ArrayLike, seconds: float, pause_s: float = 0.0) -> Served:
        """Let a window's loads arrive over ``seconds``, after a pause at its start."""


@dataclass(frozen=True)
class Fluid(Service):
    r"""Tuples arrive evenly over a window, and each channel works without a break but for pauses.

    With arrivals of λ tuples/s, rate μ and an initial wait W₀ (work that waits, and the pause), a tuple that arrives at
    t waits :math:`W(t) = \max(0, W_0 - (1 - \lambda/\mu) t)`, then takes 1/μ. So a window's latencies are known in
    closed form, per channel, and its quantiles are exact. What a fluid cannot show is the wait by chance of a channel
    that is almost, but not quite, busy all the time.

    Every channel pauses: tuples wait upstream while state moves, as in the papers' pause-configure-resume. Waiting
    tuples stay with their channel when their keys move; those of a vanished channel are shared out. A pause counts for
    those who arrive after it begins; that it also holds up those who wait already is not added to the latencies of
    their window.

    Examples
    --------
    >>> queues = Fluid(rate=100).start()
    >>> served = queues.serve([50, 150], seconds=1.0)
    >>> served.served, served.backlog, served.needed_s
    (150.0, 50.0, 1.5)
    """

    def start(self) -> Queues:
        """Give empty queues."""
        return _FluidQueues(self.rate)


class _FluidQueues(Queues):
    def __init__(self, rate: float) -> None:
        self._rate, self._waiting, self._pause_left = rate, np.zeros(0), 0.0

    def serve(self, loads: ArrayLike, seconds: float, pause_s: float = 0.0) -> Served:
        arriving = np.asarray(loads, np.float64)
        waiting = _fitted(self._waiting, len(arriving))
        pause = self._pause_left + pause_s
        wait = waiting / self._rate + pause
        slope = 1 - arriving / seconds / self._rate  # how fast the wait falls
        end = np.maximum(wait - slope * seconds, 0.0)
        self._pause_left = max(pause - seconds, 0.0)
        self._waiting = np.clip((end - self._pause_left) * self._rate, 0.0, waiting + arriving)
        # Where the wait ends within the window, those who come later do not wait.
        until = np.where(slope > 0, np.minimum(wait / np.where(slope > 0, slope, 1.0), seconds), seconds)
        early = arriving * until / seconds
        own = 1 / self._rate
        delays = Delays(
            own + np.concatenate([np.minimum(wait, end), np.zeros(len(arriving))]),
            own + np.concatenate([np.maximum(wait, end), np.zeros(len(arriving))]),
            np.concatenate([early, arriving - early]),
        )
        backlog = float(self._waiting.sum())
        served = max(float((waiting + arriving).sum()) - backlog, 0.0)
        return Served(served, backlog, float(arriving.max()) / self._rate + pause_s, delays)


@dataclass(frozen=True)
class MicroBatches(Service):
    """Each window is a micro-batch: its tuples wait for its end, and it waits for its busiest channel.

    A batch starts when its window is over and the batch before is done; it takes the busiest channel's work, the time
    that state takes to move, and ``overhead_s``.

    Parameters
    ----------
    rate, bytes_per_s, pause_s
        See :class:`Service`.
    overhead_s
        What every batch takes besides, such as planning and committing it.
    """

    overhead_s: float = 0.0

    def start(self) -> Queues:
        """Give an idle engine."""
        return _Batches(self.rate, self.overhead_s)


class _Batches(Queues):
    def __init__(self, rate: float, overhead_s: float) -> None:
        self._rate, self._overhead = rate, overhead_s
        self._late = 0.0  # by how much the engine is behind the end of the last window
        self._unfinished: list[tuple[float, float]] = []  # (seconds of work left, load)

    def serve(self, loads: ArrayLike, seconds: float, pause_s: float = 0.0) -> Served:
        arriving = np.asarray(loads, np.float64)
        total = float(arriving.sum())
        takes = float(arriving.max()) / self._rate + self._overhead + pause_s
        served = self._work(seconds)
        waits = max(self._late - seconds, 0.0)  # after the window's end, until its batch starts
        self._late = waits + takes
        self._unfinished.append((takes, total))
        low = np.array([self._late])
        delays = Delays(low, low + seconds, np.array([total]))
        return Served(served, sum(load for _, load in self._unfinished), takes, delays)

    def _work(self, seconds: float) -> float:
        """Work on the batches that are open for the length of a window."""
        served = 0.0
        while self._unfinished and seconds > 0:
            takes, load = self._unfinished.pop(0)
            done = 1.0 if takes <= seconds else seconds / takes
            served += done * load
            seconds -= takes
            if done < 1:
                self._unfinished.insert(0, (takes * (1 - done), load * (1 - done)))
        return served


def _fitted(waiting: NDArray[np.float64], channels: int) -> NDArray[np.float64]:
    """What waits, for another number of channels: new ones are idle, the work of vanished ones is shared out."""
    if len(waiting) <= channels:
        return np.concatenate([waiting, np.zeros(channels - len(waiting))])
    return waiting[:channels] + waiting[channels:].sum() / channels
