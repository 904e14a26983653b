"""Versioned keyed state: (channel, slot, key) → bytes, one version per micro-batch.

The truth is in the checkpoint: a delta per channel and batch, snapshots now and then, a manifest that names the files
that count, and the driver's commit that names the manifests. On the host, a working copy in LMDB makes opening a
version a matter of a fraction of a millisecond. It never runs ahead: a task opens the last committed version, reads,
and writes a delta; it is applied after its batch is committed, by the next opening at the latest.
"""

from evenkeel.state.checkpoint import Checkpoint, Commit
from evenkeel.state.copies import HeldCopy, forget, forget_others, held_copies
from evenkeel.state.delta import Delta
from evenkeel.state.files import Files, StoredFile
from evenkeel.state.identity import KEY_BYTES, SECOND_SEED, both_hashes
from evenkeel.state.lease import Lease
from evenkeel.state.manifest import Manifest, ManifestRef
from evenkeel.state.retention import Cleaned, clean
from evenkeel.state.selection import Selection
from evenkeel.state.store import DeltaFile, StateStore
from evenkeel.state.totals import SlotTotals
from evenkeel.state.view import EXPORTED, Opening, StateView, exported
from evenkeel.state.wakes import wakes_of, with_wakes, without_wakes

__all__ = [
    "EXPORTED",
    "KEY_BYTES",
    "SECOND_SEED",
    "Checkpoint",
    "Cleaned",
    "Commit",
    "Delta",
    "DeltaFile",
    "Files",
    "HeldCopy",
    "Lease",
    "Manifest",
    "ManifestRef",
    "Opening",
    "Selection",
    "SlotTotals",
    "StateStore",
    "StateView",
    "StoredFile",
    "both_hashes",
    "clean",
    "exported",
    "forget",
    "forget_others",
    "held_copies",
    "wakes_of",
    "with_wakes",
    "without_wakes",
]
