"""A large plan carried out over several batches, hottest first."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.control.saved import Saved
from evenkeel.planning.plan import state_of_moves
from evenkeel.routing import Ragged, RoutingTable
from evenkeel.routing.ragged import contains, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.planning import LoadSnapshot

__all__ = ["Schedule"]


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The way from one routing table to another in steps, each a valid table of its own.

    What moves as one is a unit: the unlisted rest of a slot, or a key that either table lists. Before its step a unit
    is where the first table has it, from then on where the last one has it: so no unit moves twice, none is ever
    elsewhere, and the steps' moves together are just those of the whole plan. There are as many channels as the larger
    of both tables has, until the last step: new ones are there from the first step, vanishing ones until the last.

    Units go by falling load, filling one batch's budget after the other; a unit larger than the budget goes alone, and
    those that send nothing go with the first step. So there are at most 2 · bytes / budget + 1 steps. Bytes are those
    of the window that was planned for.

    Parameters
    ----------
    start, target
        The first and the last table.
    is_key, ids
        The units that move: a slot's number, or a key's hash.
    steps
        With which step each of them moves, from 0.
    step_bytes
        The state that each step sends.
    """

    start: RoutingTable
    target: RoutingTable
    is_key: NDArray[np.bool_]
    ids: NDArray[np.int64]
    steps: NDArray[np.int64]
    step_bytes: NDArray[np.int64]

    @classmethod
    def of(
        cls, start: RoutingTable, target: RoutingTable, snapshot: LoadSnapshot, budget_bytes: int | None = None
    ) -> Schedule:
        """Divide the way from ``start`` to ``target`` so that no step sends more than ``budget_bytes``.

        O(units · log + slots), and as much for each table on the way.
        """
        moves = start.diff(target)
        # Slots come first and both are ascending: a unit's rows are neighbours.
        first = np.ones(len(moves), np.bool_)
        first[1:] = (moves.ids[1:] != moves.ids[:-1]) | (moves.is_key[1:] != moves.is_key[:-1])
        unit_of = np.cumsum(first) - 1
        is_key, ids = moves.is_key[first], moves.ids[first]
        sizes = np.zeros(len(ids), np.int64)
        np.add.at(sizes, unit_of, state_of_moves(moves, snapshot, start, target))
        order = np.lexsort((np.arange(len(ids)), -_loads(is_key, ids, snapshot, start, target), sizes > 0))
        steps = np.zeros(len(ids), np.int64)
        steps[order] = _fill(sizes[order], budget_bytes)
        count = int(steps.max(initial=0)) + 1
        step_bytes = np.zeros(count, np.int64)
        np.add.at(step_bytes, steps, sizes)
        return cls(start, target, is_key, ids, steps, step_bytes)

    def __len__(self) -> int:
        return len(self.step_bytes)

    @property
    def state_bytes(self) -> int:
        """The state that all steps together send."""
        return int(self.step_bytes.sum())

    def table(self, done: int) -> RoutingTable:
        """Give the table after so many steps; each step is an epoch."""
        start, target = self.start, self.target
        if done == 0:
            return start
        if done == len(self):
            return dataclasses.replace(target, epoch=start.epoch + done)
        moved = self.steps < done
        slots = np.zeros(start.slots, np.bool_)
        slots[self.ids[moved & ~self.is_key]] = True
        keys = union(start.pin_hashes, start.split_hashes, target.pin_hashes, target.split_hashes)
        apart = contains(self.ids[moved & self.is_key], keys)
        listed = np.where(
            apart,
            contains(union(target.pin_hashes, target.split_hashes), keys),
            contains(union(start.pin_hashes, start.split_hashes), keys),
        )
        # A key that its table leaves to its slot needs a place of its own while the slot follows the other table.
        listed |= apart != slots[keys % start.slots]
        keys, apart = keys[listed], apart[listed]
        active = _choose(start.active_channels(keys), target.active_channels(keys), apart)
        split = np.where(apart, contains(target.split_hashes, keys), contains(start.split_hashes, keys))
        pins = np.flatnonzero(~split)
        return RoutingTable(
            slot_channels=np.where(slots, target.slot_channels, start.slot_channels),
            channels=max(start.channels, target.channels),
            epoch=start.epoch + done,
            pin_hashes=keys[pins],
            pin_channels=active.take(pins).channels,
            pin_backups=_choose(start.backups(keys), target.backups(keys), apart).take(pins),
            split_hashes=keys[split],
            split_channels=active.take(np.flatnonzero(split)),
            slot_backups=_choose(start.backups_of_slots, target.backups_of_slots, slots),
        )

    def snapshot(self) -> Saved:
        """Give both tables and the steps, to be stored."""
        facts = {"start": self.start.to_json(indent=None), "target": self.target.to_json(indent=None)}
        names = ("is_key", "ids", "steps", "step_bytes")
        return Saved(facts, {name: getattr(self, name) for name in names})

    @classmethod
    def restore(cls, saved: Saved) -> Schedule:
        """Read what :meth:`snapshot` gave."""
        start, target = (RoutingTable.from_json(saved.facts[name]) for name in ("start", "target"))
        return cls(start, target, **saved.arrays)


def _loads(
    is_key: NDArray[np.bool_],
    ids: NDArray[np.int64],
    snapshot: LoadSnapshot,
    start: RoutingTable,
    target: RoutingTable,
) -> NDArray[np.float64]:
    """The cost of each unit; a slot's is without the keys that either table lists."""
    listed = union(start.pin_hashes, start.split_hashes, target.pin_hashes, target.split_hashes)
    inside = ~contains(listed, snapshot.key_hashes)
    of_slots = snapshot.slot_costs + np.bincount(
        snapshot.key_hashes[inside] % start.slots, weights=snapshot.key_costs[inside], minlength=start.slots
    )
    loads = np.zeros(len(ids))
    loads[~is_key] = of_slots[ids[~is_key]]
    known = is_key & contains(snapshot.key_hashes, ids)
    loads[known] = snapshot.key_costs[np.searchsorted(snapshot.key_hashes, ids[known])]
    return loads


def _fill(sizes: NDArray[np.int64], budget_bytes: int | None) -> list[int]:
    """The step of each unit, in the given order; a new step begins where a unit does not fit any more."""
    steps, step, room = [], 0, budget_bytes
    for size in sizes.tolist():
        if room is not None and budget_bytes is not None:
            if size > room and room < budget_bytes:
                step, room = step + 1, budget_bytes
            room -= size
        steps.append(step)
    return steps


def _choose(first: Ragged, second: Ragged, take_second: NDArray[np.bool_]) -> Ragged:
    """Row by row, the one or the other."""
    both = Ragged(
        np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        np.concatenate([first.channels, second.channels]),
    )
    rows = np.arange(len(first))
    return both.take(np.where(take_second, len(first) + rows, rows))
