"""What a channel reports of its keys: their tuples, what they hold, and how many copies they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.routing.ragged import contains
from evenkeel.state import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from evenkeel.operators import Groups
    from evenkeel.routing import RoutingTable
    from evenkeel.state import SlotTotals

__all__ = ["levels_asked", "loads_of", "state_bytes", "sum_of"]

_NAME = 80  # characters of a key's name that a report has
_HEAVY_KEYS = 100  # of each channel and batch, reported one by one


def loads_of(
    groups: Groups, counts: NDArray[np.int64], values: pa.Array, totals: SlotTotals, table: RoutingTable, channel: int
) -> dict[str, Any]:
    """Tuples per slot and of the heaviest keys, and what the slots hold now; backups are no load.

    Parameters
    ----------
    groups, counts, values
        The keys of a batch that are active on the channel, how many tuples each has, and the states that they have now,
        as they are stored.
    totals
        What each slot of the channel holds.
    table, channel
        Where keys are, and whose report it is.
    """
    by_slot = np.bincount(groups.hashes % table.slots, weights=counts, minlength=table.slots)
    touched = np.flatnonzero(by_slot)
    listed = contains(table.pin_hashes, groups.hashes) | contains(table.split_hashes, groups.hashes)
    heavy = np.zeros(len(groups), bool)
    heavy[np.lexsort((groups.hashes, -counts))[:_HEAVY_KEYS]] = True
    chosen = np.flatnonzero(heavy | listed)
    own = np.ones(len(totals.slots), bool)
    if table.has_backups:
        own = table.slot_channels[totals.slots] == channel
    sizes = pc.fill_null(pc.binary_length(values.take(pa.array(chosen))), -KEY_BYTES).to_numpy()
    return {
        "slots": touched.tolist(),
        "slot_counts": by_slot[touched].tolist(),
        "keys": groups.hashes[chosen].tolist(),
        "key_names": [_name(row) for row in groups.keys.take(pa.array(chosen)).to_pylist()],
        "key_counts": counts[chosen].tolist(),
        "key_bytes": (KEY_BYTES + sizes).tolist(),
        "held_slots": totals.slots[own].tolist(),
        "held_bytes": totals.state_bytes[own].tolist(),
        "held_keys": totals.keys[own].tolist(),
    }


def state_bytes(totals: SlotTotals) -> float:
    """Bytes of a state that may move, on average."""
    return int(totals.state_bytes.sum()) / max(1, int(totals.keys.sum()))


def levels_asked(groups: Groups, where: Mapping[str, Mapping[Any, int]], table: RoutingTable) -> list[list[int]]:
    """The keys for which a tuple's value asks for more copies than the table has, with how many.

    ``where`` says, by column and value of a tuple, how many copies its key is to have.
    """
    found: dict[int, int] = {}
    for column, levels in where.items():
        values = groups.rows[column]
        for value, wanted in levels.items():
            rows = pc.fill_null(pc.equal(values, pa.scalar(value, values.type)), False)
            keys = np.unique(groups.key_of[rows.to_numpy(zero_copy_only=False)])
            few = table.backups(groups.hashes[keys]).lengths < wanted
            for key in groups.hashes[keys[few]].tolist():
                found[key] = max(wanted, found.get(key, 0))
    return [[key, wanted] for key, wanted in found.items()][:_HEAVY_KEYS]


def _name(key: Mapping[str, Any]) -> str:
    """A key as people know it, not too long."""
    return ", ".join(str(part)[:_NAME] for part in key.values())


def sum_of(rows: pa.Table, column: str, missing: int) -> int:
    """Sum up a column that rows have only where they were combined before the shuffle."""
    return int(pc.sum(rows[column]).as_py() or 0) if column in rows.schema.names else missing
