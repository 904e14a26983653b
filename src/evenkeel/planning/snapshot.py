"""What was measured in one statistics window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import as_hashes
from evenkeel.routing.ragged import is_ascending

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from evenkeel.routing import RoutingTable

__all__ = ["LoadSnapshot"]

_MEASURES = ("counts", "costs", "state_bytes")


@dataclass(frozen=True, slots=True, eq=False)
class LoadSnapshot:
    """Loads of one statistics window: of each tracked key, and of the untracked rest of each slot.

    Parameters
    ----------
    slot_counts, slot_costs, slot_state_bytes
        Tuples, computation cost and state of each slot, without its tracked keys.
    key_hashes
        The tracked keys; any order, kept ascending.
    key_counts, key_costs, key_state_bytes
        The same measures of each tracked key.
    distinct_keys
        About how many keys there are, tracked or not (the papers' |D| or K).

    Notes
    -----
    Plain arrays: 24 bytes per slot and 32 per tracked key. Cost has any unit, such as milliseconds; it defaults to the
    number of tuples where it is not measured.
    """

    slot_counts: NDArray[np.float64]
    slot_costs: NDArray[np.float64]
    slot_state_bytes: NDArray[np.int64]
    key_hashes: NDArray[np.int64]
    key_counts: NDArray[np.float64]
    key_costs: NDArray[np.float64]
    key_state_bytes: NDArray[np.int64]
    distinct_keys: int = 0

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "key_hashes", np.array(self.key_hashes, np.int64))
        order = slice(None) if is_ascending(self.key_hashes) else np.argsort(self.key_hashes)
        put(self, "key_hashes", self.key_hashes[order])
        if (np.diff(self.key_hashes) == 0).any():
            raise InvalidArgumentError("A key is tracked twice in one snapshot.")
        for measure in _MEASURES:
            kind = np.int64 if measure == "state_bytes" else np.float64
            for part, length in (("slot", len(self.slot_counts)), ("key", len(self.key_hashes))):
                name = f"{part}_{measure}"
                array = np.array(getattr(self, name), kind)
                if array.shape != (length,):
                    raise InvalidArgumentError(f"{name} must have {length} entries; got shape {array.shape}.")
                if not np.isfinite(array).all() or (array < 0).any():
                    raise InvalidArgumentError(f"{name} must be finite and not negative.")
                put(self, name, array[order] if part == "key" else array)
        put(self, "distinct_keys", max(int(self.distinct_keys), len(self.key_hashes)))
        for name in ("key_hashes", *(f"{part}_{measure}" for part in ("slot", "key") for measure in _MEASURES)):
            getattr(self, name).setflags(write=False)

    @classmethod
    def of_keys(
        cls,
        keys: Any,
        counts: ArrayLike,
        *,
        slots: int,
        costs: ArrayLike | None = None,
        state_bytes: ArrayLike | None = None,
        track: int | None = None,
    ) -> LoadSnapshot:
        """Build a snapshot from a full histogram.

        Parameters
        ----------
        keys
            Distinct keys (a column), or their hashes (an int64 NumPy array).
        counts
            Tuples of each key.
        slots
            How many slots the routing table has.
        costs, state_bytes
            Cost and state of each key; one per tuple by default.
        track
            How many keys to track, the costliest first; all by default. The others go into their slots.

        Examples
        --------
        >>> snapshot = LoadSnapshot.of_keys(["a", "b", "c"], [5, 3, 1], slots=4, track=1)
        >>> snapshot.key_counts.tolist(), snapshot.slot_counts.sum().item()
        ([5.0], 4.0)
        """
        hashes = as_hashes(keys)
        values = {
            "counts": np.asarray(counts, np.float64),
            "costs": np.asarray(counts if costs is None else costs, np.float64),
            "state_bytes": np.asarray(counts if state_bytes is None else state_bytes, np.int64),
        }
        for measure, array in values.items():
            if array.shape != hashes.shape:
                raise InvalidArgumentError(f"{measure} has shape {array.shape} for {len(hashes)} keys.")
        tracked = np.ones(len(hashes), bool)
        if track is not None and track < len(hashes):
            tracked[np.argsort(-values["costs"], kind="stable")[track:]] = False
        rest = ~tracked
        fields: dict[str, Any] = {}
        for measure, array in values.items():
            fields[f"slot_{measure}"] = np.bincount(hashes[rest] % slots, weights=array[rest], minlength=slots)
            fields[f"key_{measure}"] = array[tracked]
        return cls(key_hashes=hashes[tracked], distinct_keys=len(hashes), **fields)

    @property
    def slots(self) -> int:
        """How many slots were measured."""
        return len(self.slot_counts)

    def total(self, measure: str = "costs") -> float:
        """Add up ``"counts"``, ``"costs"`` or ``"state_bytes"``."""
        return float(self.of_slots(measure).sum() + self.of_keys_tracked(measure).sum())

    def of_slots(self, measure: str) -> NDArray[Any]:
        """Give one measure of the untracked rest of each slot."""
        values: NDArray[Any] = getattr(self, f"slot_{measure}")
        return values

    def of_keys_tracked(self, measure: str) -> NDArray[Any]:
        """Give one measure of each tracked key."""
        values: NDArray[Any] = getattr(self, f"key_{measure}")
        return values

    def per_channel(self, table: RoutingTable, measure: str = "costs") -> NDArray[np.float64]:
        """Give each channel's load under ``table``; a split key's is spread evenly over its channels."""
        loads: NDArray[np.float64] = np.bincount(
            table.slot_channels, weights=self.of_slots(measure), minlength=table.channels
        ).astype(np.float64)
        places = table.active_channels(self.key_hashes)
        shares = np.repeat(self.of_keys_tracked(measure) / places.lengths, places.lengths)
        return loads + np.bincount(places.channels, weights=shares, minlength=table.channels)
