"""Advise on a stream: try candidates in the simulator, choose, and say why."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.sim.advice.candidates import CANDIDATES, PLAIN, Candidate, find_candidates
from evenkeel.sim.advice.outcome import Costs, Outcome, try_out
from evenkeel.sim.advice.profile import Profile
from evenkeel.sim.advice.reasons import reasons_for
from evenkeel.sim.ledger import StateModel
from evenkeel.sim.queueing import MicroBatches
from evenkeel.sim.workloads import Histograms

if TYPE_CHECKING:
    from evenkeel.sim.advice.profile import KeysOf
    from evenkeel.sim.workloads import Workload

__all__ = ["Advice", "Answer", "Progress", "advise"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what is being tried, how many steps are done, and of how many."""

ABOUT_AS_GOOD = 1.03  # of the best makespan; the simplest of these is advised
WORTH_A_CHANNEL = 0.7  # of its time, a channel must be of use for one more to make sense
KEEPS_UP = 0.8  # of the time between two batches, the busiest channel may work
LEAST_WINDOWS = 18  # so that the controller can act, and what it did can be seen
WARM_UP = 1 / 3  # of the windows


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What to do, for operators whose partial states merge, or for those whose do not.

    Parameters
    ----------
    mergeable
        Which of the two.
    chosen, plain
        What is advised, and key grouping on as many channels, which is what Spark does by itself.
    outcomes
        All that was tried on that number of channels.
    scaling
        The best that was found for each number of channels.
    keeps_up
        Whether the busiest channel is fast enough; None where no rate is known.
    reasons
        Why, in words.
    code
        The lines to paste.
    """

    mergeable: bool
    chosen: Outcome
    plain: Outcome
    outcomes: tuple[Outcome, ...]
    scaling: tuple[Outcome, ...]
    keeps_up: bool | None
    reasons: tuple[str, ...]
    code: str

    @property
    def gain(self) -> float:
        """How many times as fast as plain Spark the stage is."""
        return self.plain.makespan / self.chosen.makespan if self.chosen.makespan else 1.0

    def as_dict(self) -> dict[str, Any]:
        """Give the answer, for JSON."""
        return {
            "mergeable": self.mergeable,
            "strategy": self.chosen.candidate.strategy,
            "channels": self.chosen.channels,
            "gain": self.gain,
            "keeps_up": self.keeps_up,
            "chosen": self.chosen.as_dict(),
            "plain": self.plain.as_dict(),
            "tried": [outcome.as_dict() for outcome in self.outcomes],
            "scaling": [outcome.as_dict() for outcome in self.scaling],
            "reasons": list(self.reasons),
            "code": self.code,
        }


@dataclass(frozen=True, slots=True)
class Advice:
    """What the stream is like, and what to do: one answer, or one for each kind of operator."""

    profile: Profile
    answers: tuple[Answer, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Give all of it, for JSON."""
        answers = [answer.as_dict() for answer in self.answers]
        return {"profile": self.profile.as_dict(), "notes": list(self.notes), "answers": answers}


def advise(
    workload: Workload,
    *,
    key: Sequence[str] = ("key",),
    mergeable: bool | None = None,
    channels: int = 32,
    sources: int | None = None,
    strategies: Sequence[str] | None = None,
    state: StateModel | None = None,
    rate: float | None = None,
    timed: bool = False,
    costs: Costs | None = None,
    keys_of: KeysOf | None = None,
    progress: Progress = lambda what, done, of: None,  # noqa: ARG005
) -> Advice:
    """Say which strategy a stream wants, on how many channels, what it brings and what it costs.

    Candidates are replayed, planners under the controller that runs on Spark; of those that are about as good as the
    best, within 3 % of its makespan, the simplest is advised. The first third of the windows is a warm-up and does not
    count. A stream of few windows is repeated.

    Parameters
    ----------
    workload
        The stream; its histograms are kept in memory.
    key
        The key's columns, for the code.
    mergeable
        Whether the operator's partial states merge; if that is not known, both are answered.
    channels
        How many there may be at most.
    sources
        Map tasks that read the stream; as many as channels by default.
    strategies
        What to try, besides key grouping; see :data:`CANDIDATES`.
    state
        How much state a key holds: 100 bytes by default, or what the histograms say.
    rate
        Tuples per second that one channel works off.
    timed
        Whether the windows' lengths are real times. With a rate, the fewest channels that keep up are advised; else as
        many as are of use.
    costs
        What takes time besides.
    keys_of
        Finds the keys behind hashes, to name the hottest.
    progress
        Told of every step.

    Examples
    --------
    >>> from evenkeel.sim import Weighted
    >>> stream = Histograms.of(Weighted([60.0] + [1.0] * 40, tuples=1000), windows=6)
    >>> advice = advise(stream, mergeable=False, channels=8)
    >>> [(answer.chosen.name, answer.chosen.channels) for answer in advice.answers]
    [('keel', 2)]
    """
    if channels < 1:
        raise InvalidArgumentError(f"channels must be at least 1; got {channels}.")
    prepared = workload if isinstance(workload, Histograms) else Histograms.of(workload)
    profile = Profile.of(prepared, keys_of=keys_of)
    if profile.tuples == 0:
        raise InvalidArgumentError("There is not a single tuple in the trace; there is nothing to advise on.")
    tried = CANDIDATES if strategies is None else find_candidates(strategies)
    if rate is not None:
        costs = Costs(1e3 / rate) if costs is None else costs
    costs = costs or Costs()
    if state is None and "state_bytes" not in prepared.table.column_names:
        state = StateModel(100, "constant", windows=None)
    stream, notes = _long_enough(prepared, profile)
    service = None
    if rate is not None and timed:
        service = MicroBatches(rate, bytes_per_s=1e3 * costs.bytes_per_ms)
    bench = _Bench(stream, sources, state, costs, service, progress, _Steps(profile, channels, mergeable))
    kinds = (False, True) if mergeable is None else (mergeable,)
    answers = tuple(bench.answer(profile, tuple(key), kind, tried) for kind in kinds)
    return Advice(profile, answers, notes)


class _Steps:
    """Which numbers of channels are tried, and how far one is."""

    def __init__(self, profile: Profile, most: int, mergeable: bool | None) -> None:
        doubled = {1 << power for power in range(most.bit_length())}
        # A key that stays whole fills one channel of so many, however many there are.
        fills = 1 / profile.hottest_share if profile.hottest_share else 1.0
        fitting = {math.floor(fills), math.ceil(fills)}
        self.numbers = sorted(number for number in doubled | fitting | {most} if number <= most)
        self.total = (len(self.numbers) + 1) * (2 if mergeable is None else 1)
        self.done = 0


@dataclass(slots=True)
class _Bench:
    """Where candidates are tried out."""

    stream: Histograms
    sources: int | None
    state: StateModel | None
    costs: Costs
    service: MicroBatches | None
    progress: Progress
    steps: _Steps

    def answer(self, profile: Profile, key: Sequence[str], mergeable: bool, tried: Sequence[Candidate]) -> Answer:
        """Choose how many channels first, by what balances best, and then the strategy."""
        allowed = [candidate for candidate in tried if mergeable or not candidate.needs_merge]
        scouts = [each for each in allowed if each.name in {"keel+short", "keel+combine", "w_choices"}]
        scaling = [
            min(self._try(scouts or allowed, number), key=lambda outcome: outcome.makespan)
            for number in self.steps.numbers
        ]
        number, keeps_up = self._number(profile, scaling)
        outcomes = self._try(allowed, number)
        best = min(outcome.makespan for outcome in outcomes)
        chosen = next(outcome for outcome in outcomes if outcome.makespan <= ABOUT_AS_GOOD * best)
        plain = next(outcome for outcome in outcomes if outcome.candidate is PLAIN)
        return Answer(
            mergeable=mergeable,
            chosen=chosen,
            plain=plain,
            outcomes=tuple(outcomes),
            scaling=tuple(scaling),
            keeps_up=keeps_up,
            reasons=tuple(reasons_for(profile, chosen, plain, outcomes, scaling, mergeable, keeps_up)),
            code=chosen.candidate.code(key, number),
        )

    def _try(self, candidates: Sequence[Candidate], channels: int) -> list[Outcome]:
        self.progress(f"{channels} channels", self.steps.done, self.steps.total)
        self.steps.done += 1
        return try_out(
            self.stream,
            candidates,
            channels,
            sources=self.sources or channels,
            warm_up=int(WARM_UP * self._windows),
            state=self.state,
            costs=self.costs,
            service=self.service,
        )

    @property
    def _windows(self) -> int:
        return int(self.stream.table["window"].to_numpy().max()) + 1

    def _number(self, profile: Profile, scaling: Sequence[Outcome]) -> tuple[int, bool | None]:
        """The fewest channels that keep up; without a rate, as many as are of use."""
        if self.service is not None:
            room = KEEPS_UP * self.service.rate * self.stream.seconds
            fast_enough = [outcome.channels for outcome in scaling if outcome.worst <= room]
            if fast_enough:
                return fast_enough[0], True
            return min(scaling, key=lambda outcome: (outcome.makespan, outcome.channels)).channels, False
        work = profile.tuples / profile.windows
        of_use = [
            outcome.channels
            for outcome in scaling
            if work >= WORTH_A_CHANNEL * outcome.channels * outcome.makespan or outcome.channels == 1
        ]
        return max(of_use), None


def _long_enough(workload: Histograms, profile: Profile) -> tuple[Histograms, tuple[str, ...]]:
    """Repeat a stream of few windows, so that what is planned in one can be seen in another."""
    times = -(-LEAST_WINDOWS // profile.windows)
    if times == 1:
        return workload, ()
    table = workload.table
    place = table.column_names.index("window")
    windows = table["window"].to_numpy()
    parts = [table.set_column(place, "window", [windows + turn * profile.windows]) for turn in range(times)]
    few = "1 window" if profile.windows == 1 else f"{profile.windows} windows"
    note = f"The trace has {few}, too few to see a plan at work; it was repeated {times} times."
    return Histograms(pa.concat_tables(parts), workload.seconds, workload.seed), (note,)
