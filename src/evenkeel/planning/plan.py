"""A plan: the next routing table, what it moves, what it should bring, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel import metrics
from evenkeel.routing import Action
from evenkeel.routing.ragged import contains, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.planning.snapshot import LoadSnapshot
    from evenkeel.routing import Moves, RoutingTable

__all__ = ["Balance", "Movement", "Plan", "state_of_moves"]


@dataclass(frozen=True, slots=True)
class Balance:
    """How even the channels' costs are, in the common measures; see :mod:`evenkeel.metrics`."""

    imbalance: float
    """Maximum minus average."""
    skewness: float
    """Maximum over average."""
    relative_std_percent: float
    """Standard deviation over average, in percent."""
    variance: float
    """Population variance."""

    @classmethod
    def of(cls, loads: NDArray[np.float64]) -> Balance:
        """Measure the loads of the channels."""
        return cls(
            metrics.imbalance(loads),
            metrics.skewness(loads),
            metrics.relative_std_percent(loads),
            metrics.load_variance(loads),
        )


@dataclass(frozen=True, slots=True)
class Movement:
    """What carrying out a plan sends from channel to channel."""

    state_bytes: int
    percent: float
    """Of all state held."""
    moves: int
    """Slots and keys whose state is sent."""
    switches: int
    """Slots and keys that only change roles; free."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The next routing table, what it moves, what it should bring, and why.

    Parameters
    ----------
    planner
        Who made it.
    table
        The table to use next; the one in force, unchanged, where nothing is to be done.
    moves
        What has to move.
    before, after
        Balance of the last window under the old and under the new table.
    measure, own_before, own_after
        The planner's own measure, and its value under both tables.
    movement
        State to be sent.
    seconds
        How long planning took.
    reasons
        Why, in words.
    """

    planner: str
    table: RoutingTable
    moves: Moves
    before: Balance
    after: Balance
    measure: str
    own_before: float
    own_after: float
    movement: Movement
    seconds: float
    reasons: tuple[str, ...]

    @property
    def changes_nothing(self) -> bool:
        """Whether the table in force stays."""
        return len(self.moves) == 0 and self.before == self.after

    def __str__(self) -> str:
        return (
            f"{self.planner}: skewness {self.before.skewness:.3f} → {self.after.skewness:.3f}, "
            f"{self.movement.moves} moves of {self.movement.state_bytes:,} bytes ({self.movement.percent:.1f} %), "
            f"{self.movement.switches} switches, {self.seconds * 1e3:.1f} ms. {' '.join(self.reasons)}"
        )


def state_of_moves(moves: Moves, snapshot: LoadSnapshot, old: RoutingTable, new: RoutingTable) -> NDArray[np.int64]:
    """Give the bytes that each move sends; a switch of roles sends none.

    A slot's row carries the state of its untracked rest and of those tracked keys that neither table lists; a key's row
    carries the key's, or its share of it where the key was split.
    """
    listed = union(old.pin_hashes, old.split_hashes, new.pin_hashes, new.split_hashes)
    apart = contains(listed, snapshot.key_hashes)
    in_slots = np.bincount(
        snapshot.key_hashes[~apart] % old.slots, weights=snapshot.key_state_bytes[~apart], minlength=old.slots
    ).astype(np.int64)
    in_slots += snapshot.slot_state_bytes
    sizes = np.zeros(len(moves), np.int64)
    slots = ~moves.is_key
    sizes[slots] = in_slots[moves.ids[slots]]
    known = moves.is_key & contains(snapshot.key_hashes, moves.ids)
    keys = moves.ids[known]
    parts = old.active_channels(keys).lengths
    sizes[known] = snapshot.key_state_bytes[np.searchsorted(snapshot.key_hashes, keys)] // parts
    sizes[moves.actions == Action.SWITCH] = 0
    return sizes
