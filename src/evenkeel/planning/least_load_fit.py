"""What the least-load-fit planners share: where they start, what is overloaded, what is best to move, when to stop."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from evenkeel import metrics
from evenkeel.errors import InvalidArgumentError
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items, resized_slots
from evenkeel.routing import Ragged
from evenkeel.routing.ragged import contains

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from evenkeel.planning.snapshot import LoadSnapshot
    from evenkeel.routing import RoutingTable

__all__ = [
    "LeastLoadPlanner",
    "Start",
    "backups_of",
    "check_at_least_zero",
    "relieved",
    "with_power_costs",
    "within_table_limit",
]

_ROUNDING = 1e-12  # sums of the same loads in another order are no overload


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where planning starts: the items, a place for each, and what counts as overload.

    Parameters
    ----------
    items
        Slots' untracked rests and keys.
    channels
        How many channels there are to be.
    homes
        A channel for each item; the ones in force, unless the number of channels changes.
    movable
        The items that may be dealt out: those with load, slots only if allowed.
    limit
        The load above which a channel is overloaded (the paper's upb).
    """

    items: Items
    channels: int
    homes: NDArray[np.int32]
    movable: NDArray[np.bool_]
    limit: float

    @classmethod
    def of(
        cls, snapshot: LoadSnapshot, problem: Problem, *, theta_max: float, move_slots: bool, use_backups: bool
    ) -> Start:
        """Cut the last window into items, each on a channel that exists.

        Where the number of channels changes, slots go where a consistent hash sends them and their unpinned keys with
        them; pins stay while their channel exists, and otherwise go back to their slot. With ``use_backups``, what is
        on a vanished channel goes first to the first of its backups that is left.
        """
        items = Items.of(snapshot, problem.table, "tracked")
        homes = _resized_homes(items, problem.channels, use_backups) if problem.resizes else items.homes
        movable = items.loads > 0
        if not move_slots:
            movable[: items.slots] = False
        average = float(items.channel_loads(homes, problem.channels).mean())
        return cls(items, problem.channels, homes, movable, (1 + theta_max) * average * (1 + _ROUNDING))

    def loads(self, homes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Give the load of each channel."""
        return self.items.channel_loads(homes, self.channels)

    def unmovable_loads(self) -> NDArray[np.float64]:
        """Give the load of each channel that stays whatever is planned."""
        stays = np.where(self.movable, 0.0, self.items.loads)
        return self.items.fixed_for(self.channels) + np.bincount(self.homes, weights=stays, minlength=self.channels)

    def apart(self, homes: NDArray[np.int32]) -> NDArray[np.int64]:
        """Give the keys that are not where their slot is: those that need a pin."""
        slots = self.items.slots
        return slots + np.flatnonzero(homes[slots:] != homes[self.items.slot_of[slots:]])

    def back_on_slots(self, homes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Send every key back to its slot: an empty routing table."""
        return homes[self.items.slot_of]

    def by_cost(self) -> NDArray[np.int64]:
        """Sort the movable items, costliest first; ties by item."""
        items = np.flatnonzero(self.movable)
        return items[np.argsort(-self.items.loads[items], kind="stable")]

    def by_index(
        self, by_cost: NDArray[np.int64], beta: float, weights: NDArray[np.float64] | None = None
    ) -> NDArray[np.int64]:
        """Sort items by their migration priority index, state / cost^β (times a weight), the least first.

        Ties (state in proportion to cost, as is common) go to the costlier item, so that fewer move.
        """
        with np.errstate(all="ignore"):  # tiny costs to a large power: infinite is right, 0 / 0 is free to move
            power = self.items.loads[by_cost] ** beta if beta != 1 else self.items.loads[by_cost]
            index = self.items.state_bytes[by_cost] / power
            if weights is not None:
                index *= weights[by_cost]
        index[np.isnan(index)] = 0
        return by_cost[np.argsort(index, kind="stable")]


@dataclass(frozen=True, slots=True)
class LeastLoadPlanner(Planner):
    """Base of the planners that give keys to the least-loaded channel, costliest key first.

    They act only if a channel is overloaded, that is above (1 + ``theta_max``) times the average, or if the table is
    longer than it may be; otherwise, and also where the outcome would be no better than what is, the table in force
    stays. A channel with little load is no reason to act: it slows nobody.

    Parameters
    ----------
    theta_max
        How far above the average load a channel may be, relative to it (θ_max).
    alpha
        Take count^α for the cost of a key (the paper's c = g^α); ``None``: the measured costs. A slot's rest counts as
        that many equal keys as there are untracked ones on average.
    move_slots
        Whether slots' untracked rests are dealt out like keys. They need no pin, and where few keys are tracked there
        is no balance without them; but then a tracked key that does not follow its slot needs a pin.
    """

    measure = "worst balance indicator"

    theta_max: float = 0.1
    alpha: float | None = None
    move_slots: bool = True

    uses_backups: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.theta_max) and self.theta_max >= 0):
            raise InvalidArgumentError(f"theta_max must be finite and at least 0; got {self.theta_max}.")
        if self.alpha is not None and not (math.isfinite(self.alpha) and self.alpha > 0):
            raise InvalidArgumentError(f"alpha must be None, or finite and above 0; got {self.alpha}.")

    @property
    def pins_allowed(self) -> int | None:
        """How many pins the table may have; ``None``: any number."""
        return None

    def propose(self, problem: Problem) -> Proposal:
        """Leave a balanced table alone; otherwise rearrange."""
        start = Start.of(
            with_power_costs(problem.latest, self.alpha),
            problem,
            theta_max=self.theta_max,
            move_slots=self.move_slots,
            use_backups=self.uses_backups,
        )
        before = start.loads(start.homes)
        worst = float(before.max())
        fits = self.pins_allowed is None or len(start.apart(start.homes)) <= self.pins_allowed
        if worst <= start.limit and fits:
            why = f"No channel is above {1 + self.theta_max:g} times the average load."
            return Proposal(start.items.table_with(start.homes, problem.channels), (why,))
        homes, reasons = self.rearrange(start)
        homes = _with_followers(start, homes)
        loads = start.loads(homes)
        change = f"from {metrics.skewness(before):.3f} to {metrics.skewness(loads):.3f} times the average load"
        if not problem.resizes and fits and loads.max() >= worst * (1 - 1e-9):
            why = f"The fullest channel would go {change}, no better: nothing moves."
            return Proposal(problem.table, (why, *_of_overload(start, before)))
        pins = len(start.apart(homes))
        why = f"The fullest channel goes {change}; {pins} keys are pinned."
        return Proposal(start.items.table_with(homes, problem.channels), (*reasons, why, *_of_overload(start, loads)))

    @abstractmethod
    def rearrange(self, start: Start) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """Give new homes, and reasons; the heart of each of these planners."""

    def score(self, problem: Problem, table: RoutingTable) -> float:
        """Give the worst θ of any channel, |L(d) - L̄| / L̄."""
        snapshot = with_power_costs(problem.latest, self.alpha)
        return float(metrics.balance_indicators(snapshot.per_channel(table)).max())


def with_power_costs(snapshot: LoadSnapshot, alpha: float | None) -> LoadSnapshot:
    """Give the snapshot with count^α for cost; as it is where ``alpha`` is ``None``."""
    if alpha is None:
        return snapshot
    rest = max(1.0, (snapshot.distinct_keys - len(snapshot.key_hashes)) / snapshot.slots)
    return dataclasses.replace(
        snapshot,
        key_costs=snapshot.key_counts**alpha,
        slot_costs=rest * (snapshot.slot_counts / rest) ** alpha,
    )


def within_table_limit(
    start: Start, table_limit: int | None, balance: Callable[[NDArray[np.int32]], NDArray[np.int32]]
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Balance after sending the n pinned keys with the least state back to their slots, n grown until the table fits.

    n starts at 0 and grows by as many pins as are too many, at least by an eighth: O(log pins) rounds. Where no n makes
    the table fit, the shortest table found is taken.
    """
    entries = start.apart(start.homes)
    entries = entries[np.argsort(start.items.state_bytes[entries], kind="stable")]
    sent_back, shortest = 0, start.homes
    fewest = -1
    while True:
        homes = start.homes.copy()
        back = entries[:sent_back]
        homes[back] = homes[start.items.slot_of[back]]
        homes = balance(homes)
        pins = len(start.apart(homes))
        if table_limit is None or pins <= table_limit:
            return homes, (f"{sent_back} of {len(entries)} pins were sent back to their slots.",) if sent_back else ()
        if fewest < 0 or pins < fewest:
            shortest, fewest = homes, pins
        if sent_back == len(entries):
            return shortest, (f"No table with at most {table_limit} pins was found; this one has {fewest}.",)
        sent_back = min(len(entries), sent_back + max(pins - table_limit, sent_back // 8))


def relieved(
    start: Start,
    homes: NDArray[np.int32],
    by_cost: NDArray[np.int64],
    by_index: NDArray[np.int64],
    *,
    exchange: bool,
    backups: Ragged | None = None,
) -> NDArray[np.int32]:
    """Take items out of overloaded channels and place them, costliest first; ``homes`` is left as it is.

    Parameters
    ----------
    by_cost, by_index
        The movable items in the order in which they are placed, and in the order in which channels give them up.
    exchange
        Whether a channel gives up lighter items for one that would overload it (FTLB's second phase), or each item goes
        to the least-loaded channel, come what may (LLFD).
    backups
        Channels that are preferred if they have room; only with ``exchange``.
    """
    from evenkeel.planning import _kernels_llfd as kernels

    costs, loads = start.items.loads, start.loads(homes)
    homes, taken = homes.copy(), np.zeros(len(homes), np.bool_)
    kernels.take_from_overloaded(by_index, costs, homes, loads, start.limit, taken)
    if exchange:
        standby = Ragged.empty(0) if backups is None else backups
        heavy = start.unmovable_loads()
        kernels.place_by_exchange(
            by_cost, by_index, costs, taken, homes, loads, heavy, start.limit, standby.offsets, standby.channels
        )
    else:
        kernels.place_on_least_loaded(by_cost, costs, taken, homes, loads)
    return homes


def check_at_least_zero(**options: float | None) -> None:
    """Raise unless every option is ``None``, or finite and not negative."""
    for name, value in options.items():
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise InvalidArgumentError(f"{name} must be finite and at least 0; got {value}.")


def backups_of(items: Items) -> Ragged:
    """Give the backups of each item; quickly where the table has none at all."""
    table = items.table
    if len(table.backups_of_slots.channels) + len(table.backups_of_pins.channels) == 0:
        return Ragged.empty(len(items))
    return items.backups()


def _resized_homes(items: Items, channels: int, use_backups: bool) -> NDArray[np.int32]:
    vanishing = items.homes >= channels
    slots = resized_slots(items.table, channels).copy()
    standby = np.full(len(items), -1, np.int32)
    if use_backups:
        backups = backups_of(items)
        left = backups.channels < channels
        rows, first = np.unique(backups.rows[left], return_index=True)
        standby[rows] = backups.channels[left][first]
        standby[~vanishing] = -1
    switched = standby[: items.slots] >= 0
    slots[switched] = standby[: items.slots][switched]
    homes = slots[items.slot_of]
    pinned = np.zeros(len(items), np.bool_)
    pinned[items.slots :] = contains(items.table.pin_hashes, items.key_hashes)
    stays, switches = pinned & ~vanishing, pinned & (standby >= 0)
    homes[stays] = items.homes[stays]
    homes[switches] = standby[switches]
    return homes


def _with_followers(start: Start, homes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Let keys without load that must move anyway go where their slot goes, so that they need no pin."""
    items = start.items
    follows = (items.loads == 0) & (start.homes != items.homes) & (start.homes == start.homes[items.slot_of])
    return np.where(follows, homes[items.slot_of], homes)


def _of_overload(start: Start, loads: NDArray[np.float64]) -> tuple[str, ...]:
    """Say what is left to wish for."""
    over = int((loads > start.limit).sum())
    hot = int((start.movable & (start.items.loads > start.limit)).sum())
    return (
        *((f"{over} channels stay overloaded.",) if over else ()),
        *((f"{hot} keys or slots are each more than one channel may carry: no placement helps.",) if hot else ()),
    )
