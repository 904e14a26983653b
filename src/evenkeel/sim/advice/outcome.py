"""What a candidate would bring, and at what price: the figures that the advisor compares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.sim.replay import replay
from evenkeel.sim.workloads import Histograms, Sourced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evenkeel.sim.advice.candidates import Candidate
    from evenkeel.sim.ledger import StateModel
    from evenkeel.sim.queueing import Service
    from evenkeel.sim.results import Replay
    from evenkeel.sim.runs import Sight

__all__ = ["Costs", "Outcome", "combined", "try_out"]


@dataclass(frozen=True, slots=True)
class Costs:
    """What takes time besides tuples on their channels. The unit of work is one tuple on its channel.

    Parameters
    ----------
    ms_per_tuple
        How long one tuple takes on its channel.
    bytes_per_ms
        How fast state moves; while it does, the batch waits.
    before_shuffle
        What a tuple costs in its map task where it is routed one by one, or combined, as a share of its cost on its
        channel. Map tasks share it evenly.
    """

    ms_per_tuple: float = 0.01
    bytes_per_ms: float = 20_000.0
    before_shuffle: float = 0.25

    def __post_init__(self) -> None:
        for name in ("ms_per_tuple", "bytes_per_ms"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InvalidArgumentError(f"{name} must be finite and above 0; got {getattr(self, name)}.")
        if not self.before_shuffle >= 0:
            raise InvalidArgumentError(f"before_shuffle must not be negative; got {self.before_shuffle}.")

    def of_moving(self, state_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the work that could have been done while so much state moves."""
        return state_bytes / (self.bytes_per_ms * self.ms_per_tuple)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One candidate on one number of channels. Means are over the windows after the warm-up.

    Parameters
    ----------
    candidate, channels
        What was tried.
    makespan
        What an average window takes, in tuples' work: its busiest channel, what happens before the shuffle, merging
        of partial states, and moving state.
    busiest
        The part of it that is the busiest channel's work.
    worst
        The busiest channel's work in the worst window.
    skewness, max_skewness
        Busiest channel over the average one: mean, and in the worst window.
    moved_bytes, moved_first_bytes, state_bytes
        State moved per window, state moved in the warm-up, and state held by all channels in the last window.
    fullest_bytes
        State of the fullest channel in the last window, where keys have one place.
    parts_per_key
        How many partial states a key has in a window.
    shuffled_share
        Rows that are shuffled, per tuple.
    pins, table_bytes, plan_ms
        The largest table, and how long a plan took; None where there is no table.
    latency_p95_ms
        With a service.
    loads
        The channels' work in the last window, the busiest first.
    """

    candidate: Candidate
    channels: int
    makespan: float
    busiest: float
    worst: float
    skewness: float
    max_skewness: float
    moved_bytes: float
    moved_first_bytes: int
    state_bytes: int | None
    fullest_bytes: int | None
    parts_per_key: float
    shuffled_share: float
    pins: int | None
    table_bytes: int | None
    plan_ms: float | None
    latency_p95_ms: float | None
    loads: NDArray[np.float64]

    @property
    def name(self) -> str:
        """The candidate's."""
        return self.candidate.name

    def as_dict(self) -> dict[str, Any]:
        """Give the figures, for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in {"candidate", "loads"}}
        chosen = self.candidate
        options = {"strategy": chosen.strategy, "batches": chosen.batches, "combine": chosen.combine}
        return {"name": self.name, **options, **plain, "loads": self.loads.tolist()}


def try_out(
    workload: Histograms,
    candidates: Sequence[Candidate],
    channels: int,
    *,
    sources: int,
    warm_up: int,
    state: StateModel | None,
    costs: Costs,
    service: Service | None = None,
) -> list[Outcome]:
    """Replay a stream through candidates and weigh what each brings."""
    histograms = [window.histogram() for window in workload.windows()]
    sizes = np.array([[each.tuples, len(each)] for each in histograms], np.float64)[warm_up:]
    outcomes = {}
    for combine in (False, True):
        mine = [candidate for candidate in candidates if candidate.combine is combine]
        if not mine:
            continue
        stream = combined(workload, sources) if combine else workload
        done = replay(
            stream if "source" in stream.table.column_names else Sourced(stream, sources),
            {candidate.name: candidate.replayed() for candidate in mine},
            channels=channels,
            state=state,
            service=service,
            measures={"fullest_bytes": _fullest_bytes},
            keep_loads=True,
        )
        summaries = {row["strategy"]: row for row in done.summary().to_pylist()}
        for candidate in mine:
            summary = summaries[candidate.name]
            outcomes[candidate.name] = _weigh(done, summary, candidate, channels, sizes, warm_up, costs)
    return [outcomes[candidate.name] for candidate in candidates]


def combined(workload: Histograms, sources: int) -> Histograms:
    """Give the partial states that map tasks send in place of tuples: one for each key that a task has.

    Where the histograms do not name sources, tuples reach map tasks in turn, so that c tuples of a key are at about
    S(1 − (1 − 1/S)^c) of S tasks.

    >>> import pyarrow as pa
    >>> stream = Histograms(pa.table({"window": [0, 0], "hash": [7, 8], "count": [1000, 1]}))
    >>> combined(stream, 4).table["count"].to_pylist()
    [4, 1]
    """
    counts = workload.table["count"].to_numpy()
    sent = np.minimum(counts, 1)
    if "source" not in workload.table.column_names:
        sent = np.maximum(sent, np.rint(sources * (1 - (1 - 1 / sources) ** counts)).astype(np.int64))
    place = workload.table.column_names.index("count")
    return Histograms(workload.table.set_column(place, "count", [sent]), workload.seconds, workload.seed)


def _weigh(
    done: Replay,
    summary: dict[str, Any],
    candidate: Candidate,
    channels: int,
    sizes: NDArray[np.float64],
    warm_up: int,
    costs: Costs,
) -> Outcome:
    rows = done.of(candidate.name)

    def column(name: str) -> NDArray[np.float64]:
        return np.nan_to_num(rows[name].to_numpy().astype(np.float64))[warm_up:]

    busiest, moved = column("load_max"), column("moved_bytes")
    work = busiest + costs.of_moving(moved)
    if candidate.needs_merge:
        work = work + costs.before_shuffle * sizes[:, 0] / channels
    if candidate.splits:
        work = work + column("messages") / channels  # a stage of its own merges the parts, evenly
    last = rows.slice(rows.num_rows - 1).to_pylist()[0]
    parts = float(column("messages").sum() / max(sizes[:, 1].sum(), 1)) if candidate.splits else 1.0
    fullest = last["fullest_bytes"]
    table_bytes = column("table_bytes")
    return Outcome(
        candidate=candidate,
        channels=channels,
        makespan=float(work.mean()),
        busiest=float(busiest.mean()),
        worst=float(busiest.max()),
        skewness=float(column("skewness").mean()),
        max_skewness=float(column("skewness").max()),
        moved_bytes=float(moved.mean()),
        moved_first_bytes=int((summary["moved_bytes"] or 0) - moved.sum()),
        state_bytes=last["state_bytes"],
        fullest_bytes=None if fullest is None or math.isnan(fullest) else int(fullest),
        parts_per_key=parts,
        shuffled_share=float(column("tuples").sum() / max(sizes[:, 0].sum(), 1)),
        pins=summary["pins"],
        table_bytes=int(table_bytes.max()) if table_bytes.any() else None,
        plan_ms=summary["plan_ms"],
        latency_p95_ms=summary.get("latency_p95_ms"),
        loads=np.sort(done.loads[candidate.name][-1])[::-1],
    )


def _fullest_bytes(sight: Sight) -> float:
    """State of the channel that holds the most."""
    if sight.measured is None or sight.homes is None:
        return math.nan
    held = np.bincount(sight.homes, weights=sight.measured.state_bytes, minlength=len(sight.loads))
    return float(held.max())
