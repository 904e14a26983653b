"""What scan, redist and readj share: a few hot keys are placed one by one, a consistent hash has all others."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from evenkeel import metrics
from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics import ResourceFunction, ResourceProfile, UtilityFunction
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items, resized_slots
from evenkeel.routing.ragged import contains

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.planning.snapshot import LoadSnapshot
    from evenkeel.routing import RoutingTable

    Floats: TypeAlias = NDArray[np.float64]
    Arguments: TypeAlias = tuple[
        Floats, Floats, Floats, Floats, NDArray[np.int32], int, NDArray[np.int64], Floats, int, float, float
    ]

__all__ = ["Construction", "PartialHashPlanner", "loads_by_resource"]

SMALLEST_DEVIATION = 1e-9
"""Taken for a tolerance of 1, which allows no gap: every penalty would be infinite, and none better than another."""


@dataclass(frozen=True, slots=True, eq=False)
class Construction:
    r"""The explicit hash to be built: the hot keys, hottest first, and where they come from.

    Loads are in tuples; all penalties are ratios, so the paper's relative frequencies give the same.

    Parameters
    ----------
    counts
        Tuples of each key to place, falling; keys with equal counts by ascending hash.
    states
        What moving each key costs, :math:`\beta_s`.
    old
        The channel of each key now, :math:`p^{(t)}`; it may be one that vanishes.
    hashed
        The channel of each key by the new consistent hash, :math:`H_c^{(t+1)}`.
    channels
        How many channels there are to be, :math:`N^{(t+1)}`.
    moved
        State that moves because its key is no longer tracked: m at the start.
    ideal
        A channel's fair share of the state of all keys tracked before or now, :math:`\bar{m}`.
    base
        Load of each channel that no hot key carries, one row as in ``weights``; zeros in the paper.
    weights
        The load of each key, one row per kind of resource function but constant ones: linear, then quadratic.
    row_of, deviations
        For each resource that is not constant: the row of its loads, and :math:`\theta_k`.
    mode
        The number of the utility function, as the compiled loops know it.
    """

    counts: NDArray[np.float64]
    states: NDArray[np.float64]
    old: NDArray[np.int32]
    hashed: NDArray[np.int32]
    channels: int
    moved: float
    ideal: float
    base: NDArray[np.float64]
    weights: NDArray[np.float64]
    row_of: NDArray[np.int64]
    deviations: NDArray[np.float64]
    mode: int

    @property
    def arguments(self) -> Arguments:
        """What every compiled loop takes first, in this order."""
        keys = (self.base, self.weights, self.counts, self.states, self.old, self.channels)
        return *keys, self.row_of, self.deviations, self.mode, self.moved, self.ideal

    def place_anew(self, *, choose: bool) -> tuple[NDArray[np.int32], str]:
        """Place all keys from nothing, hottest first, or with ``choose`` the best next; also say so in words."""
        from evenkeel.planning import _kernels_gedik

        places = np.empty(len(self.counts), np.int32)
        _kernels_gedik.place(*self.arguments, choose, places)
        return places, f"They were placed anew, and {int((places != self.old).sum())} move: {self.penalties(places)}."

    def penalties(self, places: NDArray[np.int32]) -> str:
        """Tell both penalties of the hot keys on ``places``, in words."""
        return f"balance penalty {self.balance(places):.3g}, migration penalty {self.migration(places):.3g}"

    def balance(self, places: NDArray[np.int32]) -> float:
        """Give the balance penalty ρ of the hot keys on ``places``."""
        from evenkeel.planning import _kernels_gedik

        gap, mean = np.zeros(2), np.ones(2)
        for row, weights in enumerate(self.weights):
            loads = self.base[row] + np.bincount(places, weights=weights, minlength=self.channels)
            gap[row], mean[row] = np.ptp(loads), loads.mean()
        return _kernels_gedik.balance_penalty(gap[0], mean[0], gap[1], mean[1], self.row_of, self.deviations, False)

    def migration(self, places: NDArray[np.int32]) -> float:
        """Give the migration penalty γ of the hot keys on ``places``."""
        return float(self.moved + self.states[places != self.old].sum()) / self.ideal


@dataclass(frozen=True, slots=True)
class PartialHashPlanner(Planner):
    """Place the hot keys by a utility of balance and migration; leave all others to a consistent hash.

    Parameters
    ----------
    profile
        How state, computation and communication grow with the frequency of a key, and the imbalance tolerated.
    utility
        How balance and migration are weighed: ``"A"``, ``"APM"``, ``"APLM"``, ``"ATM"`` or ``"ATLM"``, see
        :class:`evenkeel.metrics.UtilityFunction`.
    untracked_share
        The part σ of the tolerated imbalance that the keys left to the hash may use up. Less makes more keys hot.
    count_untracked
        Whether channels start with the load of all keys left to the hash. The paper looks at hot keys alone, taking the
        hash to spread the others evenly; counting them evens out what the hash does not.
    """

    measure: ClassVar[str] = "relative imbalance b"

    profile: ResourceProfile = field(default_factory=ResourceProfile.named)
    utility: UtilityFunction | str = "APM"
    untracked_share: float = 0.1
    count_untracked: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "utility", UtilityFunction(self.utility))
        if not 0 < self.untracked_share <= 1:
            raise InvalidArgumentError(
                f"untracked_share must be in (0, 1], got {self.untracked_share}.", untracked_share=self.untracked_share
            )

    @abstractmethod
    def _build(self, task: Construction) -> tuple[NDArray[np.int32], str]:
        """Give the channel of each hot key, and what was done in words."""

    def propose(self, problem: Problem) -> Proposal:
        """Give the table with the hot keys where :meth:`_build` puts them, and all others where the hash does."""
        snapshot, table, channels = problem.latest, problem.table, problem.channels
        items = Items.of(snapshot, table, "tracked", "counts")
        if not problem.resizes and self._balanced(snapshot, table, items):
            return Proposal(table, ("All channels are equally loaded.",))
        slots = resized_slots(table, channels)
        homes = slots[items.slot_of].astype(np.int32)  # all by the hash
        total = snapshot.total("counts")
        if total == 0:
            keep = items.homes < channels
            keep[: items.slots] = False
            homes[keep] = items.homes[keep]
            return Proposal(items.table_with(homes, channels), ("No tuples were counted, so pins stay.",))
        counts = items.loads[items.slots :]
        threshold, hot = self._hot(counts / total, max(snapshot.distinct_keys, len(counts), 1), channels)
        pinned = contains(table.pin_hashes, items.key_hashes)
        dropped = int((pinned & ~hot).sum())
        reasons = [
            f"{int(hot.sum())} of {len(counts)} keys have at least {threshold:.2g} of all tuples"
            + (f"; {dropped} pins below that go back to the hash." if dropped else ".")
        ]
        if hot.any():
            rows = np.flatnonzero(hot)
            rows = rows[np.argsort(-counts[rows], kind="stable")]
            task = self._construction(problem, items, homes, rows, pinned & ~hot)
            homes[items.slots + rows], done = self._build(task)
            reasons.append(done)
            if channels * counts[rows[0]] > total:
                reasons.append(
                    f"The hottest key alone is {channels * counts[rows[0]] / total:.1f} times a channel's fair share; "
                    "no placement of whole keys balances it."
                )
        return Proposal(items.table_with(homes, channels), tuple(reasons))

    def score(self, problem: Problem, table: RoutingTable) -> float:
        """Measure the relative imbalance b (Eq. 11) of all three resources, by :func:`loads_by_resource`."""
        return metrics.relative_imbalance(loads_by_resource(problem.latest, table, self.profile), self.profile)

    def _balanced(self, snapshot: LoadSnapshot, table: RoutingTable, items: Items) -> bool:
        """Whether no resource but constant ones can be spread more evenly."""
        tuples = items.channel_loads(items.homes, table.channels)
        if not _equal(tuples):
            return False
        loads = loads_by_resource(snapshot, table, self.profile)
        return all(
            resource.function is ResourceFunction.CONSTANT or _equal(row)
            for resource, row in zip(self.profile, loads, strict=True)
        )

    def _hot(self, frequencies: NDArray[np.float64], n_keys: int, channels: int) -> tuple[float, NDArray[np.bool_]]:
        """The threshold δ, raised for quadratic resources once frequencies are known, and the keys that reach it."""
        threshold = metrics.tracking_threshold(
            self.profile, n_channels=channels, n_keys=n_keys, untracked_share=self.untracked_share
        )
        hot = (frequencies >= threshold) & (frequencies > 0)
        if any(resource.function is ResourceFunction.QUADRATIC for resource in self.profile):
            threshold = metrics.refined_threshold(
                frequencies[hot],
                self.profile,
                n_channels=channels,
                n_keys=n_keys,
                untracked_share=self.untracked_share,
            )
            hot &= frequencies >= threshold
        return threshold, hot

    def _construction(
        self,
        problem: Problem,
        items: Items,
        hashed: NDArray[np.int32],
        rows: NDArray[np.int64],
        dropped: NDArray[np.bool_],
    ) -> Construction:
        channels = problem.channels
        counts = items.loads[items.slots :]
        old, new = items.homes[items.slots :], hashed[items.slots :]
        power = self.profile.state.function.degree
        gone = counts[dropped] ** power
        states = counts[rows] ** power
        uneven = [resource for resource in self.profile if resource.function is not ResourceFunction.CONSTANT]
        degrees = sorted({resource.function.degree for resource in uneven}) or [1]
        base = np.zeros((len(degrees), channels))
        if self.count_untracked:
            cold = items.loads.copy()
            cold[items.slots + rows] = 0.0
            for row, degree in enumerate(degrees):
                cold_loads = cold**degree
                cold_loads[: items.slots] = _rest(problem.latest, degree)
                base[row] = items.fixed_for(channels) ** degree
                base[row] += np.bincount(hashed, weights=cold_loads, minlength=channels)
        return Construction(
            counts=counts[rows],
            states=states,
            old=old[rows].astype(np.int32),
            hashed=new[rows],
            channels=channels,
            moved=float(gone[old[dropped] != new[dropped]].sum()),
            ideal=float(gone.sum() + states.sum()) / channels,
            base=base,
            weights=np.stack([counts[rows] ** degree for degree in degrees]),
            row_of=np.array([degrees.index(resource.function.degree) for resource in uneven], np.int64),
            deviations=np.array(
                [
                    max(metrics.allowed_deviation(resource.tolerance, channels), SMALLEST_DEVIATION)
                    for resource in uneven
                ],
                np.float64,
            ),
            mode=list(UtilityFunction).index(UtilityFunction(self.utility)),
        )


def loads_by_resource(snapshot: LoadSnapshot, table: RoutingTable, profile: ResourceProfile) -> NDArray[np.float64]:
    r"""Give the load of each channel in state, computation and communication, as resources x channels.

    A tracked key has :math:`\beta_k` of its tuples; a split one has it of an even share on each of its channels. Of
    the untracked rest of a slot just the tuples are known: it is taken to be as many keys as the average slot holds,
    at least one, with equal frequencies. In tuples, so that only ratios between channels mean something.
    """
    places = table.active_channels(snapshot.key_hashes)
    parts = np.repeat(snapshot.key_counts / places.lengths, places.lengths)
    loads = np.zeros((3, table.channels))
    for row, resource in enumerate(profile):
        degree = resource.function.degree
        loads[row] = np.bincount(table.slot_channels, weights=_rest(snapshot, degree), minlength=table.channels)
        loads[row] += np.bincount(places.channels, weights=parts**degree, minlength=table.channels)
    return loads


def _rest(snapshot: LoadSnapshot, degree: int) -> NDArray[np.float64]:
    """The load of the untracked rest of each slot, as of equally frequent keys."""
    keys = max((snapshot.distinct_keys - len(snapshot.key_hashes)) / snapshot.slots, 1.0)
    tuples = snapshot.slot_counts
    return np.where(tuples > 0, keys * (tuples / keys) ** degree, 0.0)


def _equal(loads: NDArray[np.float64]) -> bool:
    return bool(np.ptp(loads) <= 1e-12 * loads.max())
