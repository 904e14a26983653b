"""Routing tables as Arrow, for machines, and as JSON, for people.

The Arrow form has one row per entry:

======== ============= ===============================================================
column   type          meaning
======== ============= ===============================================================
kind     int8          0 slot, 1 pin, 2 split
id       int64         the slot's number, or the key's hash
channel  int32         its home
others   list<int32>   backups of a slot or pin; the further channels of a split key
======== ============= ===============================================================

Epoch, number of channels and format version are in the schema's metadata.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import CorruptDataError, EvenkeelError
from evenkeel.routing.ragged import Ragged
from evenkeel.routing.table import RoutingTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SCHEMA", "from_arrow", "from_json", "to_arrow", "to_json"]

FORMAT = 1
SLOT, PIN, SPLIT = 0, 1, 2
SCHEMA = pa.schema(
    [
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("channel", pa.int32(), nullable=False),
        pa.field("others", pa.list_(pa.int32()), nullable=False),
    ]
)


def to_arrow(table: RoutingTable) -> pa.Table:
    """Give the table as an Arrow table, one row per entry."""
    splits = table.split_channels
    first = splits.offsets[:-1]
    rest = np.ones(len(splits.channels), bool)
    rest[first] = False
    offsets = [
        table.backups_of_slots.offsets,
        table.backups_of_pins.offsets[1:],
        splits.offsets[1:] - np.arange(1, len(splits) + 1),
    ]
    offsets[1] = offsets[1] + offsets[0][-1]
    offsets[2] = offsets[2] + np.concatenate(offsets[:2])[-1]
    others = np.concatenate([table.backups_of_slots.channels, table.backups_of_pins.channels, splits.channels[rest]])
    kinds = np.repeat(np.array([SLOT, PIN, SPLIT], np.int8), [table.slots, len(table.pin_hashes), len(splits)])
    metadata = {"evenkeel.routing_table": str(FORMAT), "epoch": str(table.epoch), "channels": str(table.channels)}
    return pa.table(
        [
            kinds,
            np.concatenate([np.arange(table.slots), table.pin_hashes, table.split_hashes]),
            np.concatenate([table.slot_channels, table.pin_channels, splits.channels[first]]),
            pa.ListArray.from_arrays(np.concatenate(offsets).astype(np.int32), others),
        ],
        schema=SCHEMA.with_metadata(metadata),
    )


def from_arrow(table: pa.Table) -> RoutingTable:
    """Read what :func:`to_arrow` gave; anything else is a :class:`CorruptDataError`."""
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    if "evenkeel.routing_table" not in metadata:
        raise CorruptDataError("This Arrow table is not a routing table: its schema does not say so.")
    _check_format(metadata["evenkeel.routing_table"])
    if not table.schema.equals(SCHEMA):
        raise CorruptDataError(f"This routing table has other columns than its format says:\n{table.schema}")
    kinds = table["kind"].to_numpy()
    ids = table["id"].to_numpy()
    homes = table["channel"].to_numpy()
    others = table["others"].combine_chunks()
    lists = Ragged(others.offsets.to_numpy() - others.offsets[0].as_py(), others.flatten().to_numpy())
    slots, pins, splits = (np.flatnonzero(kinds == kind) for kind in (SLOT, PIN, SPLIT))
    if len(slots) + len(pins) + len(splits) != len(kinds) or not np.array_equal(ids[slots], np.arange(len(slots))):
        raise CorruptDataError("This routing table has entries of unknown kind, or slots that are missing or repeated.")
    try:
        return RoutingTable(
            slot_channels=homes[slots],
            channels=int(metadata["channels"]),
            epoch=int(metadata["epoch"]),
            pin_hashes=ids[pins],
            pin_channels=homes[pins],
            pin_backups=lists.take(pins),
            split_hashes=ids[splits],
            split_channels=_prepend(homes[splits], lists.take(splits)),
            slot_backups=lists.take(slots),
        )
    except (EvenkeelError, KeyError, ValueError) as error:
        raise CorruptDataError(f"This routing table breaks its own laws: {error}") from error


def _check_format(found: str) -> None:
    if found != str(FORMAT):
        raise CorruptDataError(
            f"This routing table has format {found}; this version reads {FORMAT}. "
            "Use the version of Evenkeel that wrote it, or a newer one."
        )


def _prepend(heads: NDArray[np.int32], tails: Ragged) -> Ragged:
    return Ragged(tails.offsets + np.arange(len(tails) + 1), np.insert(tails.channels, tails.offsets[:-1], heads))


def to_json(table: RoutingTable, names: dict[int, str] | None = None, indent: int | None = 2) -> str:
    """Give the table as JSON; channels of slots are run lengths, ``[channel, how many]``, in the slots' order."""
    names = names or {}

    def entry(key_hash: int, **places: Any) -> dict[str, Any]:
        name = {"key": names[key_hash]} if key_hash in names else {}
        return {**name, "hash": key_hash, **{place: value for place, value in places.items() if value != []}}

    starts = np.flatnonzero(np.diff(table.slot_channels, prepend=-1))
    runs = np.diff(np.append(starts, table.slots))
    document = {
        "format": FORMAT,
        "epoch": table.epoch,
        "channels": table.channels,
        "slots": np.column_stack([table.slot_channels[starts], runs]).tolist(),
        "pins": [
            entry(key, channel=channel, backups=backups)
            for key, channel, backups in zip(
                table.pin_hashes.tolist(), table.pin_channels.tolist(), table.backups_of_pins.tolist(), strict=True
            )
        ],
        "splits": [
            entry(key, channels=channels)
            for key, channels in zip(table.split_hashes.tolist(), table.split_channels.tolist(), strict=True)
        ],
        "slot_backups": {slot: backups for slot, backups in enumerate(table.backups_of_slots.tolist()) if backups},
    }
    return json.dumps(document, indent=indent, ensure_ascii=False)


def from_json(text: str) -> RoutingTable:
    """Read what :func:`to_json` gave; anything else is a :class:`CorruptDataError`."""
    try:
        document = json.loads(text)
        _check_format(str(document["format"]))
        runs = np.array(document["slots"], np.int64).reshape(-1, 2)
        slot_channels = np.repeat(runs[:, 0], runs[:, 1])
        backups: list[list[int]] = [[]] * len(slot_channels)
        for slot, channels in document["slot_backups"].items():
            backups[int(slot)] = channels
        return RoutingTable(
            slot_channels=slot_channels.astype(np.int32),
            channels=document["channels"],
            epoch=document["epoch"],
            pin_hashes=np.array([pin["hash"] for pin in document["pins"]], np.int64),
            pin_channels=np.array([pin["channel"] for pin in document["pins"]], np.int32),
            pin_backups=Ragged.of(pin.get("backups", []) for pin in document["pins"]),
            split_hashes=np.array([split["hash"] for split in document["splits"]], np.int64),
            split_channels=Ragged.of(split["channels"] for split in document["splits"]),
            slot_backups=Ragged.of(backups),
        )
    except CorruptDataError:
        raise
    except (EvenkeelError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise CorruptDataError(f"This is not a routing table in JSON: {error}") from error
