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

    Tracked are the keys that ``table`` lists, reported or not, and besides them the ``max_keys`` costliest. These may
    not be among the heaviest of every batch, and so be reported in some only; where tracked keys hold all the state of
    their slot they are its only ones, and what is left of its load is theirs. O(slots + keys · log).
    """
    listed = union(table.pin_hashes, table.split_hashes)
    others = np.flatnonzero(~contains(listed, keys.ids))
    costliest = others[np.argsort(-keys.costs[others], kind="stable")[:max_keys]]
    tracked = union(listed, keys.ids[costliest])
    known = contains(tracked, keys.ids)
    places = np.searchsorted(tracked, keys.ids[known])
    fields: dict[str, Any] = {}
    slot_of, unlisted = tracked % table.slots, ~contains(listed, tracked)
    alone = np.zeros(table.slots, bool)
    for measure in ("state_bytes", "counts", "costs"):
        own = getattr(keys, measure)[known]
        of_keys, whole = np.zeros(len(tracked), own.dtype), np.zeros(table.slots, own.dtype)
        of_keys[places] = own
        whole[slots.ids] = getattr(slots, measure)
        theirs = np.bincount(slot_of, weights=of_keys, minlength=table.slots).astype(own.dtype)
        # A key's level may be older than its slot's, and sums of floats round: never below nothing.
        rest = np.maximum(whole - theirs, 0)
        if measure == "state_bytes":
            alone = (whole > 0) & (rest == 0)
        else:
            takers = np.bincount(slot_of, weights=of_keys * unlisted, minlength=table.slots)
            given = alone & (takers > 0)
            more = np.divide(rest, takers, out=np.zeros(table.slots), where=given)
            of_keys, rest = of_keys * (1 + unlisted * more[slot_of]), np.where(given, 0.0, rest)
        fields[f"key_{measure}"], fields[f"slot_{measure}"] = of_keys, rest
    return LoadSnapshot(key_hashes=tracked, distinct_keys=keys_held, **fields)


def save_loads(snapshot: LoadSnapshot) -> Saved:
    """Give a load snapshot, to be stored."""
    arrays = {name: getattr(snapshot, name) for name in ("key_hashes", *_PARTS)}
    return Saved({"distinct_keys": snapshot.distinct_keys}, arrays)


def load_loads(saved: Saved) -> LoadSnapshot:
    """Read what :func:`save_loads` gave."""
    fields: dict[str, Any] = {**saved.arrays, **saved.facts}
    return LoadSnapshot(**fields)
