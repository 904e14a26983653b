"""Load snapshots from what was reported, and how they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.control.saved import Saved
from evenkeel.planning import LoadSnapshot
from evenkeel.routing.ragged import contains, union

if TYPE_CHECKING:
    from evenkeel.control.tally import Tally
    from evenkeel.routing import RoutingTable

__all__ = ["load_loads", "save_loads", "to_snapshot"]

_PARTS = [f"{part}_{measure}" for part in ("slot", "key") for measure in ("counts", "costs", "state_bytes")]


def to_snapshot(slots: Tally, keys: Tally, table: RoutingTable, max_keys: int, keys_held: int) -> LoadSnapshot:
    """Choose the keys to track, and take what they carry out of their slots.

    Tracked are the keys that ``table`` lists, reported or not, and besides them the ``max_keys`` costliest.
    O(slots + keys · log).
    """
    listed = union(table.pin_hashes, table.split_hashes)
    others = np.flatnonzero(~contains(listed, keys.ids))
    costliest = others[np.argsort(-keys.costs[others], kind="stable")[:max_keys]]
    tracked = union(listed, keys.ids[costliest])
    known = contains(tracked, keys.ids)
    places = np.searchsorted(tracked, keys.ids[known])
    fields: dict[str, Any] = {}
    for measure in ("counts", "costs", "state_bytes"):
        own = getattr(keys, measure)[known]
        of_keys, whole = np.zeros(len(tracked), own.dtype), np.zeros(table.slots, own.dtype)
        of_keys[places] = own
        whole[slots.ids] = getattr(slots, measure)
        rest = whole - np.bincount(tracked % table.slots, weights=of_keys, minlength=table.slots).astype(own.dtype)
        fields[f"key_{measure}"] = of_keys
        # A key's level may be older than its slot's, and sums of floats round: never below nothing.
        fields[f"slot_{measure}"] = np.maximum(rest, 0)
    return LoadSnapshot(key_hashes=tracked, distinct_keys=keys_held, **fields)


def save_loads(snapshot: LoadSnapshot) -> Saved:
    """Give a load snapshot, to be stored."""
    arrays = {name: getattr(snapshot, name) for name in ("key_hashes", *_PARTS)}
    return Saved({"distinct_keys": snapshot.distinct_keys}, arrays)


def load_loads(saved: Saved) -> LoadSnapshot:
    """Read what :func:`save_loads` gave."""
    fields: dict[str, Any] = {**saved.arrays, **saved.facts}
    return LoadSnapshot(**fields)
