"""The search of the planner keel: where it stands, what it may spend, and how it goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.planning.items import Items

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from evenkeel.planning.base import Problem
    from evenkeel.planning.snapshot import LoadSnapshot

__all__ = ["SLACK", "Limits", "Search"]

NO_LIMIT = 2**62
_CHUNK = 256  # steps between two looks at the clock
_HEAVY = 0.05  # of a fair share; what is lighter can be moved about freely
_STRIDES = (1.0, 2.0, 4.0)  # how much more one long step is worth than several short ones
_BISECTIONS = 8
_FEW_STEPS = 200
SLACK = 1e-6  # of a fair share: this much over the target counts as reaching it
_CHEAPENINGS = 4
_RELOCATIONS = 4  # heavy items that are tried elsewhere before giving up


@dataclass(slots=True)
class Limits:
    """How far a search may go."""

    target: float
    budget: int
    steps: int
    deadline: float | None
    clock: Callable[[], float]
    stride: float = 1.0

    @property
    def reached(self) -> bool:
        """Whether it is time to stop."""
        return self.steps <= 0 or (self.deadline is not None and self.clock() > self.deadline)


class Search:
    """The arrays of one search; see :mod:`evenkeel.planning._kernels_keel`."""

    def __init__(self, problem: Problem, weights: Mapping[str, float], max_pins: int) -> None:
        channels = problem.channels
        keys = _hottest(problem.latest, max_pins)
        self.items = Items.of(problem.latest, problem.table, keys)
        self.parts = [Items.of(problem.latest, problem.table, keys, measure) for measure in weights]
        totals = np.array([problem.latest.total(measure) for measure in weights])
        self.scale = np.array(list(weights.values())) * channels / np.where(totals > 0, totals, 1)
        self.fair = float((self.scale * totals).max() / channels)
        self.loads = np.column_stack([part.loads for part in self.parts]) * self.scale
        self.totals = np.column_stack([part.fixed_for(channels) for part in self.parts]) * self.scale
        self.state = self.items.state_bytes
        self.origins = self.items.homes
        self.homes = np.full(len(self.items), -1, np.int32)
        self.lists = np.full(channels, -1), np.full(len(self.items), -1), np.full(len(self.items), -1)
        alive = self.items.backups()
        kept = alive.channels < channels
        rows = np.bincount(alive.rows[kept], minlength=len(self.items))
        self.backups = np.concatenate([[0], np.cumsum(rows)]), alive.channels[kept]
        self.spent, self.moves, self.swaps = 0, 0, 0
        self.hit_limit, self.too_dear = False, False
        self.clock = problem.clock
        self._link(np.flatnonzero(self.origins < channels))

    def _link(self, items: NDArray[np.int64]) -> None:
        """Put items where they are; those without load are left out of the lists, since moving them helps nobody."""
        first, after, prior = self.lists
        self.homes[items] = self.origins[items]
        items = items[self.loads[items].max(axis=1, initial=0.0) > 0]
        np.add.at(self.totals, self.origins[items], self.loads[items])
        order = items[np.argsort(self.origins[items], kind="stable")]
        same = self.origins[order[1:]] == self.origins[order[:-1]]
        after[order[:-1][same]] = order[1:][same]
        prior[order[1:][same]] = order[:-1][same]
        starts = np.concatenate([np.ones(min(1, len(order)), bool), ~same])
        first[self.origins[order[starts]]] = order[starts]

    def _arrays(self) -> tuple[Any, ...]:
        return (self.loads, self.state, self.origins, self.homes, self.totals, *self.lists, *self.backups)

    def place_homeless(self, target: float) -> int:
        """Place what was on channels that vanish; gives the bytes that must be sent for it."""
        from evenkeel.planning import _kernels_keel as kernels

        homeless = np.flatnonzero(self.homes < 0)
        order = homeless[np.argsort(-self.loads[homeless].max(axis=1, initial=0.0), kind="stable")]
        arrays = (self.loads, self.homes, self.totals, *self.lists, *self.backups)
        kernels.place_homeless(order, *arrays, target)
        self.spent = int(
            sum(
                kernels.bytes_at(item, self.homes[item], self.origins, self.state, *self.backups)
                for item in homeless.tolist()
            )
        )
        return self.spent

    @property
    def fullest(self) -> float:
        """The pressure on the fullest channel."""
        return float(self.totals.max(initial=0.0))

    def limits(
        self, *, target: float, budget: int = NO_LIMIT, steps: int = 20_000, time_limit_ms: float | None = None
    ) -> Limits:
        """Say how far the search may go from now on."""
        deadline = None if time_limit_ms is None else self.clock() + time_limit_ms / 1e3
        return Limits(target, budget, steps, deadline, self.clock)

    def run(self, limits: Limits) -> None:
        """Search for the target, or as near to it as the budget allows."""
        start = self.save()
        within = self.best_descent(start, limits, limits.target)
        if within is None:
            self.too_dear = True
            # Too dear: bisect for the lowest target that the budget pays for; where it was is always one.
            within, low, high = start, limits.target, float(start[-1][1].max())
            for _ in range(_BISECTIONS):
                middle = (low + high) / 2
                found = self.best_descent(start, limits, middle)
                if found is None:
                    low = middle
                else:
                    within, high = found, min(middle, float(found[-1][1].max()))
            # Whatever is left of the budget, spent step by step; or all of it so.
            ends = [self.spend(begin, replace(limits, stride=s)) for begin in (within, start) for s in _STRIDES]
            within = min(ends, key=_evenness)
        elif _evenness(within)[0] <= limits.target + SLACK:
            within = self.thrift(start, within, limits)
        self.restore(within)

    def thrift(self, start: tuple[Any, ...], within: tuple[Any, ...], limits: Limits) -> tuple[Any, ...]:
        """Ask whether less money would have done: bisect for the smallest budget that still reaches the target.

        Only for plans of few steps. Among many small items, the cheapest are as good as any.
        """
        low, (_, high) = start[0], _evenness(within)
        for _ in range(_BISECTIONS):
            if within[1] + within[2] > _FEW_STEPS or high <= low:
                break
            middle = (low + high) // 2
            frugal = replace(limits, budget=middle)
            ends = [self.spend(start, replace(frugal, stride=stride)) for stride in _STRIDES]
            best = min(ends, key=_evenness)
            if _evenness(best)[0] <= limits.target + SLACK:
                within, high = best, best[0]
            else:
                low = middle + 1
        return within

    def best_descent(self, start: tuple[Any, ...], limits: Limits, target: float) -> tuple[Any, ...] | None:
        """Descend in short and in long strides; of the ends within the budget give the nearest to ``target``."""
        ends = []
        for stride in _STRIDES:
            self.restore(start)
            self.descend(replace(limits, target=target, budget=NO_LIMIT, stride=stride))
            # Parting heavy items can leave the fullest channel fuller, where too little makes room for them.
            if self.spent <= limits.budget and self.fullest <= max(_evenness(start)[0], target):
                ends.append(self.save())
        return min(ends, key=lambda end: (max(_evenness(end)[0], target), end[0]), default=None)

    def descend(self, limits: Limits) -> None:
        """Reach the target, or come as near to it as can be; then cheapen."""
        self.part_heavy(limits)
        self.relieve(limits)
        while self.fullest > limits.target and self.relocate(limits):
            pass
        self.cheapen(limits.target)

    def spend(self, start: tuple[Any, ...], limits: Limits) -> tuple[Any, ...]:
        """Go on from ``start`` with steps that the budget can still pay for."""
        self.restore(start)
        self.relieve(limits)
        self.cheapen(limits.target)
        return self.save()

    def relieve(self, limits: Limits) -> None:
        """Make moves and exchanges until the target is met, nothing helps, or a limit is reached."""
        self.hit_limit |= limits.reached
        from evenkeel.planning import _kernels_keel as kernels

        partners = min(len(self.totals), 8)
        while not limits.reached:
            chunk = min(_CHUNK, limits.steps)
            self.spent, moves, swaps = kernels.relieve(
                limits.target, limits.budget, limits.stride, self.spent, chunk, partners, *self._arrays()
            )
            limits.steps -= moves + swaps
            self.moves, self.swaps = self.moves + moves, self.swaps + swaps
            if moves + swaps < chunk:
                return
            self.hit_limit |= limits.reached

    def part_heavy(self, limits: Limits) -> None:
        """First of all, get heavy items apart whose channel would be too full even without its small ones.

        Later their channel would have given all its small items away before anyone noticed.
        """
        from evenkeel.planning import _kernels_keel as kernels

        weight = self.loads.max(axis=1, initial=0.0)
        heavy = np.flatnonzero(weight >= _HEAVY * self.fair)
        sums = np.bincount(self.homes[heavy], weights=weight[heavy], minlength=len(self.totals))
        # The lightest first: it is the cheapest to send, and the heaviest may well stay.
        for item in heavy[np.argsort(weight[heavy], kind="stable")].tolist():
            source = int(self.homes[item])
            target = int(sums.argmin())
            cost = kernels.bytes_at(item, target, self.origins, self.state, *self.backups)
            if sums[source] > limits.target >= sums[target] + weight[item]:
                kernels.put(item, target, self.loads, self.homes, self.totals, *self.lists)
                self.spent += cost
                self.moves += 1
                sums[source] -= weight[item]
                sums[target] += weight[item]

    def relocate(self, limits: Limits) -> bool:
        """Get two heavy items apart that share the fullest channel; says whether that made it less full.

        Neither a move nor an exchange does that: wherever the second goes, that channel is fuller at first, and only
        becomes less full when its small items make room. So it is tried, and undone if it did not help.
        """
        from evenkeel.planning import _kernels_keel as kernels

        full = int(self.totals.max(axis=1).argmax())
        here = np.flatnonzero(self.homes == full)
        weight = self.loads[here].max(axis=1)
        for item in here[np.argsort(-weight, kind="stable")][:_RELOCATIONS].tolist():
            # Where it will be fullest by what cannot make room: the heaviest item of each channel.
            heaviest = np.zeros(len(self.totals))
            np.maximum.at(heaviest, self.homes, self.loads.max(axis=1))
            heaviest[full] = np.inf
            room = np.argsort(np.maximum(heaviest, self.totals.max(axis=1) - 1), kind="stable")
            target = int(room[0])
            if heaviest[target] + self.loads[item].max() >= self.fullest or limits.reached:
                continue
            kept = self.save()
            before = self.fullest
            self.spent += kernels.bytes_at(item, target, self.origins, self.state, *self.backups)
            self.spent -= kernels.bytes_at(item, full, self.origins, self.state, *self.backups)
            kernels.put(item, target, self.loads, self.homes, self.totals, *self.lists)
            self.moves += 1
            kernels.unlink(item, target, *self.lists)  # It stays, lest the cheapest relief be to send it back.
            self.relieve(limits)
            kernels.link(item, target, *self.lists)
            if self.fullest < before - kernels.SLACK:
                return True
            self.restore(kept)
        return False

    def save(self) -> tuple[Any, ...]:
        """Keep where the search stands, to come back to it."""
        arrays = self.homes, self.totals, *self.lists
        return self.spent, self.moves, self.swaps, tuple(array.copy() for array in arrays)

    def restore(self, kept: tuple[Any, ...]) -> None:
        """Go back to where the search stood."""
        self.spent, self.moves, self.swaps, arrays = kept
        self.homes, self.totals, *lists = (array.copy() for array in arrays)
        self.lists = lists[0], lists[1], lists[2]

    def cheapen(self, target: float) -> None:
        """Reach the same evenness with fewer bytes: send items home, or others in their place."""
        from evenkeel.planning import _kernels_keel as kernels

        for _ in range(_CHEAPENINGS):
            moved = np.flatnonzero(self.homes != self.origins)
            order = moved[np.argsort(-self.state[moved], kind="stable")]
            saved = kernels.cheapen(order, target, *self._arrays())
            self.spent -= saved
            if saved == 0:
                break


def _evenness(end: tuple[Any, ...]) -> tuple[float, int]:
    """The pressure on the fullest channel of a saved search, and the bytes it took."""
    spent, _, _, (_, totals, *_) = end
    return float(totals.max(initial=0.0)), spent


def _hottest(snapshot: LoadSnapshot, limit: int) -> NDArray[np.int64]:
    """The costliest tracked keys."""
    if len(snapshot.key_hashes) <= limit:
        return snapshot.key_hashes
    chosen = np.argpartition(-snapshot.key_costs, limit)[:limit]
    return np.sort(snapshot.key_hashes[chosen])
