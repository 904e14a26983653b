"""What moved between channels when one table replaced another, as flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.routing import Action

if TYPE_CHECKING:
    from evenkeel.routing import RoutingTable

__all__ = ["Flow", "Movement"]

_MOST_FLOWS = 200


@dataclass(frozen=True, slots=True)
class Flow:
    """Slots and keys that went one way, and how: ``"move"``, ``"switch"`` of roles, or ``"copy"`` to a backup."""

    source: int
    target: int
    action: str
    slots: int
    keys: int

    @property
    def items(self) -> int:
        """Slots and keys together."""
        return self.slots + self.keys


@dataclass(frozen=True, slots=True)
class Movement:
    """All that moves with a new table.

    Parameters
    ----------
    batch
        The first batch under the new table; state moves on its way into it.
    epoch, channels
        Of the new table.
    flows
        The largest, largest first.
    items
        How many slots and keys take part, by action; also those whose flows are not listed.
    """

    batch: int
    epoch: int
    channels: int
    flows: tuple[Flow, ...]
    items: dict[str, int]

    @classmethod
    def between(cls, before: RoutingTable, after: RoutingTable, batch: int) -> Movement:
        """Compare two tables with equal numbers of slots. O(slots + listed keys)."""
        moves = before.diff(after)
        ways = np.stack([moves.sources, moves.targets, moves.actions], axis=1)
        found, places = np.unique(ways, axis=0, return_inverse=True)
        keys = np.bincount(places.ravel(), weights=moves.is_key, minlength=len(found)).astype(int)
        whole = np.bincount(places.ravel(), minlength=len(found))
        most = np.argsort(-whole, kind="stable")[:_MOST_FLOWS].tolist()
        flows = tuple(
            Flow(
                int(found[row, 0]),
                int(found[row, 1]),
                Action(found[row, 2]).name.lower(),
                int(whole[row] - keys[row]),
                int(keys[row]),
            )
            for row in most
        )
        items = {action.name.lower(): int((moves.actions == action).sum()) for action in Action}
        return cls(batch, after.epoch, after.channels, flows, items)
