"""The search of the planner keel: where it stands, what it may spend, and how it goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenkeel.planning.items import Items

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from evenkeel.planning.base import Problem
    from evenkeel.planning.snapshot import LoadSnapshot

__all__ = ["NO_LIMIT", "SLACK", "Board", "Limits", "Search"]

NO_LIMIT = 2**62
_CHUNK = 256  # steps between two looks at the clock
_HEAVY = 0.05  # of a fair share; what is lighter can be moved about freely
_STRIDES = (1.0, 2.0, 4.0)  # how much more one long step is worth than several short ones
_BISECTIONS = 8
_FEW_STEPS = 200
SLACK = 1e-6  # of a fair share: this much over the target counts as reaching it
_CHEAPENINGS = 4
_PARTNERS = 8  # emptiest channels to exchange items with
_RELOCATIONS = 4  # heavy items that are tried elsewhere before giving up


class Board(NamedTuple):
    """All items and channels of a search, as arrays that compiled loops read and change.

    ``loads`` is items × resources, scaled so that an even share of a channel is the resource's weight, and ``totals``
    channels × resources. The items of a channel are a linked list: ``first[channel]``, ``after[item]``,
    ``prior[item]``, ended by -1; items without load are in none. ``homes`` is -1 for items whose channel vanishes,
    until they are placed.
    """

    loads: NDArray[np.float64]
    state: NDArray[np.int64]
    origins: NDArray[np.int32]
    offsets: NDArray[np.int64]
    backups: NDArray[np.int32]
    homes: NDArray[np.int32]
    totals: NDArray[np.float64]
    first: NDArray[np.int64]
    after: NDArray[np.int64]
    prior: NDArray[np.int64]

    def copy(self) -> Board:
        """Give a board that changes on its own."""
        return self._replace(
            homes=self.homes.copy(),
            totals=self.totals.copy(),
            first=self.first.copy(),
            after=self.after.copy(),
            prior=self.prior.copy(),
        )

    @property
    def fullest(self) -> float:
        """The pressure on the fullest channel."""
        return float(self.totals.max(initial=0.0))


class Mark(NamedTuple):
    """Where a search stood, to come back to it."""

    board: Board
    spent: int
    moves: int
    swaps: int

    @property
    def rank(self) -> tuple[float, int]:
        """Evener is better, then cheaper."""
        return self.board.fullest, self.spent


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
    """A local search from the table in force; the steps are in :mod:`evenkeel.planning._kernels_keel`."""

    def __init__(
        self, problem: Problem, weights: Mapping[str, float], max_pins: int, budget_bytes: int | None = None
    ) -> None:
        from evenkeel.planning import _kernels_keel

        self.kernels = _kernels_keel
        channels = problem.channels
        keys = _hottest(problem.latest, max_pins)
        self.items = Items.of(problem.latest, problem.table, keys)
        parts = [Items.of(problem.latest, problem.table, keys, measure) for measure in weights]
        totals = np.array([problem.latest.total(measure) for measure in weights])
        scale = np.array(list(weights.values())) * channels / np.where(totals > 0, totals, 1)
        self.fair = float((scale * totals).max() / channels)
        backups = self.items.backups()
        alive = backups.channels < channels
        rows = np.bincount(backups.rows[alive], minlength=len(self.items))
        self.board = Board(
            loads=np.column_stack([part.loads for part in parts]) * scale,
            state=self.items.state_bytes,
            origins=self.items.homes.copy(),
            offsets=np.concatenate([[0], np.cumsum(rows)]),
            backups=backups.channels[alive],
            homes=np.full(len(self.items), -1, np.int32),
            totals=np.column_stack([part.fixed_for(channels) for part in parts]) * scale,
            first=np.full(channels, -1),
            after=np.full(len(self.items), -1),
            prior=np.full(len(self.items), -1),
        )
        self.spent, self.moves, self.swaps = 0, 0, 0
        self.hit_limit, self.too_dear = False, False
        self.clock = problem.clock
        self.sent_back, self.sent_back_bytes = 0, 0
        if len(problem.table.pin_hashes) > max_pins and problem.channels >= problem.table.channels:
            surplus = len(problem.table.pin_hashes) - max_pins
            self._send_back(surplus, NO_LIMIT if budget_bytes is None else budget_bytes)
        self._set_up(np.flatnonzero(self.board.origins < channels))

    def _set_up(self, items: NDArray[np.int64]) -> None:
        """Put items where they are; those without load are in no list, since moving them helps nobody."""
        board = self.board
        board.homes[items] = board.origins[items]
        items = items[board.loads[items].max(axis=1, initial=0.0) > 0]
        homes = board.origins[items]
        np.add.at(board.totals, homes, board.loads[items])
        order = items[np.argsort(homes, kind="stable")]
        same = board.origins[order[1:]] == board.origins[order[:-1]]
        board.after[order[:-1][same]] = order[1:][same]
        board.prior[order[1:][same]] = order[:-1][same]
        starts = np.concatenate([np.ones(min(1, len(order)), bool), ~same])
        board.first[board.origins[order[starts]]] = order[starts]

    def _send_back(self, most: int, budget: int) -> None:
        """Have so many pinned keys, the coldest first, be where their slots are, as far as room and budget allow.

        Otherwise keys that were hot once would keep their places for ever, and tables and reports would grow with every
        change of what is hot. A key with backups stays: they are where it is.
        """
        board = self.board
        with_slot = board.origins[self.items.slot_of]
        loads = board.loads.max(axis=1, initial=0.0)
        totals = board.totals.copy()
        np.add.at(totals, board.origins, board.loads)
        apart = np.flatnonzero((board.origins != with_slot) & (np.diff(board.offsets) == 0))
        for item in apart[np.lexsort((board.state[apart], loads[apart]))][:most].tolist():
            home, size = with_slot[item], int(board.state[item])
            if self.sent_back_bytes + size > budget:
                break
            if loads[item] == 0 or (totals[home] + board.loads[item] <= self.fair).all():
                totals[home] += board.loads[item]
                totals[board.origins[item]] -= board.loads[item]
                board.origins[item] = home
                self.sent_back, self.sent_back_bytes = self.sent_back + 1, self.sent_back_bytes + size

    def mark(self) -> Mark:
        """Keep where the search stands."""
        return Mark(self.board.copy(), self.spent, self.moves, self.swaps)

    def go_back(self, mark: Mark) -> None:
        """Go on from where the search once stood."""
        self.board, self.spent, self.moves, self.swaps = mark.board.copy(), mark.spent, mark.moves, mark.swaps

    def limits(
        self, *, target: float, budget: int = NO_LIMIT, steps: int = 20_000, time_limit_ms: float | None = None
    ) -> Limits:
        """Say how far the search may go from now on."""
        deadline = None if time_limit_ms is None else self.clock() + time_limit_ms / 1e3
        return Limits(target, budget, steps, deadline, self.clock)

    def place_homeless(self, target: float) -> int:
        """Place what was on channels that vanish, heaviest first; give the bytes that must be sent for it."""
        homeless = np.flatnonzero(self.board.homes < 0)
        order = homeless[np.argsort(-self.board.loads[homeless].max(axis=1, initial=0.0), kind="stable")]
        self.spent = self.kernels.place_homeless(self.board, order, target)
        return self.spent

    def run(self, limits: Limits) -> None:
        """Search for the target, or as near to it as the budget allows."""
        start = self.mark()
        within = self.best_descent(start, limits, limits.target)
        if within is None:
            within = self.best_for_budget(start, limits)
        elif within.board.fullest <= limits.target + SLACK:
            within = self.thrift(start, within, limits)
        self.go_back(within)

    def best_for_budget(self, start: Mark, limits: Limits) -> Mark:
        """The target is too dear: bisect for the lowest that the budget pays for; where it was is always one."""
        self.too_dear = limits.budget < NO_LIMIT
        within, low, high = start, limits.target, start.board.fullest
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            found = self.best_descent(start, limits, middle)
            if found is None:
                low = middle
            else:
                within, high = found, min(middle, found.board.fullest)
        # What is left of the budget, spent step by step; or all of it so.
        ends = [self.spend(begin, replace(limits, stride=s)) for begin in (within, start) for s in _STRIDES]
        return min(ends, key=lambda end: end.rank)

    def thrift(self, start: Mark, within: Mark, limits: Limits) -> Mark:
        """Ask whether less would have done: bisect for the smallest budget that still reaches the target.

        Only for plans of few steps. Among many small items, the cheapest are as good as any.
        """
        low, high = start.spent, within.spent
        for _ in range(_BISECTIONS):
            if within.moves + within.swaps > _FEW_STEPS or high <= low:
                break
            middle = (low + high) // 2
            ends = [self.spend(start, replace(limits, budget=middle, stride=stride)) for stride in _STRIDES]
            best = min(ends, key=lambda end: end.rank)
            if best.board.fullest <= limits.target + SLACK:
                within, high = best, best.spent
            else:
                low = middle + 1
        return within

    def best_descent(self, start: Mark, limits: Limits, target: float) -> Mark | None:
        """Descend in short and in long strides; of the ends within the budget give the nearest to ``target``."""
        ends = []
        for stride in _STRIDES:
            self.go_back(start)
            self.descend(replace(limits, target=target, budget=NO_LIMIT, stride=stride))
            # Parting heavy items can leave the fullest channel fuller, where too little makes room for them.
            if self.spent <= limits.budget and self.board.fullest <= max(start.board.fullest, target):
                ends.append(self.mark())
        return min(ends, key=lambda end: (max(end.board.fullest, target), end.spent), default=None)

    def descend(self, limits: Limits) -> None:
        """Reach the target, or come as near to it as can be; then cheapen."""
        self.part_heavy(limits.target)
        self.relieve(limits)
        while self.board.fullest > limits.target and self.relocate(limits):
            pass
        self.cheapen(limits.target)

    def spend(self, start: Mark, limits: Limits) -> Mark:
        """Go on from ``start`` with steps that the budget can still pay for."""
        self.go_back(start)
        self.relieve(limits)
        self.cheapen(limits.target)
        return self.mark()

    def relieve(self, limits: Limits) -> None:
        """Make moves and exchanges until the target is met, nothing helps, or a limit is reached."""
        partners = min(len(self.board.totals), _PARTNERS)
        while not limits.reached:
            chunk = min(_CHUNK, limits.steps)
            self.spent, moves, swaps = self.kernels.relieve(
                self.board, limits.target, limits.budget, self.spent, limits.stride, chunk, partners
            )
            limits.steps -= moves + swaps
            self.moves, self.swaps = self.moves + moves, self.swaps + swaps
            if moves + swaps < chunk:
                return
        self.hit_limit = True

    def part_heavy(self, most: float) -> None:
        """First of all, get heavy items apart whose channel would be too full even without its small ones.

        Later their channel would have given all its small items away before anyone noticed.
        """
        board = self.board
        weight = board.loads.max(axis=1, initial=0.0)
        heavy = np.flatnonzero(weight >= _HEAVY * self.fair)
        sums = np.bincount(board.homes[heavy], weights=weight[heavy], minlength=len(board.totals))
        # The lightest first: it is the cheapest to send, and the heaviest may well stay.
        for item in heavy[np.argsort(weight[heavy], kind="stable")].tolist():
            source, target = int(board.homes[item]), int(sums.argmin())
            if sums[source] > most >= sums[target] + weight[item]:
                self._move(item, target)
                sums[source] -= weight[item]
                sums[target] += weight[item]

    def relocate(self, limits: Limits) -> bool:
        """Get two heavy items apart that share the fullest channel; say whether that made it less full.

        Neither a move nor an exchange does that: wherever the second goes, that channel is fuller at first, and only
        becomes less full when its small items make room. So it is tried, and undone if it did not help.
        """
        start = self.mark()
        board = start.board
        weight = board.loads.max(axis=1)
        pressure = board.totals.max(axis=1)
        full = int(pressure.argmax())
        # Where it will be fullest by what cannot make room: the heaviest item of each channel.
        heaviest = np.zeros(len(board.totals))
        np.maximum.at(heaviest, board.homes, weight)
        heaviest[full] = np.inf
        target = int(np.maximum(heaviest, pressure - self.fair).argmin())
        here = np.flatnonzero(board.homes == full)
        for item in here[np.argsort(-weight[here], kind="stable")][:_RELOCATIONS].tolist():
            if heaviest[target] + weight[item] >= board.fullest or limits.reached:
                continue
            self._move(item, target)
            self.kernels.unlink(self.board, item, target)  # It stays, lest the cheapest relief be to send it back.
            self.relieve(limits)
            self.kernels.link(self.board, item, target)
            if self.board.fullest < board.fullest - SLACK:
                return True
            self.go_back(start)
        return False

    def _move(self, item: int, target: int) -> None:
        source = int(self.board.homes[item])
        self.spent += self.kernels.cost_at(self.board, item, target) - self.kernels.cost_at(self.board, item, source)
        self.kernels.put(self.board, item, target)
        self.moves += 1

    def cheapen(self, target: float) -> None:
        """Reach the same evenness with fewer bytes: send items home, or others in their place."""
        for _ in range(_CHEAPENINGS):
            moved = np.flatnonzero(self.board.homes != self.board.origins)
            order = moved[np.argsort(-self.board.state[moved], kind="stable")]
            saved = self.kernels.cheapen(self.board, order, target)
            self.spent -= saved
            if saved == 0:
                break


def _hottest(snapshot: LoadSnapshot, limit: int) -> NDArray[np.int64]:
    """The costliest tracked keys."""
    if len(snapshot.key_hashes) <= limit:
        return snapshot.key_hashes
    chosen = np.argpartition(-snapshot.key_costs, limit)[:limit]
    return np.sort(snapshot.key_hashes[chosen])
