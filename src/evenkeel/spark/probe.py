"""Asking channels on their hosts whether their state is there, without touching the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from evenkeel.spark.homes import HOME, host_name, seat_of
from evenkeel.spark.worker import promptly
from evenkeel.state import StateStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evenkeel.state import Checkpoint, ManifestRef

__all__ = ["WarmProbe"]


@dataclass(frozen=True)
class WarmProbe:
    """Asks channels, where they are at home, whether their state is near.

    Parameters
    ----------
    checkpoint, stage, directory
        Where the truth is, whose state, and below which directory hosts keep working copies.
    seats
        The channel that sits in each home.
    versions
        What each channel holds.
    """

    checkpoint: Checkpoint
    stage: str
    directory: str
    seats: tuple[int, ...]
    versions: Mapping[int, ManifestRef]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Say of each channel whose home row is in ``batches`` whether its state is near."""
        for batch in promptly(batches):
            for seat in batch.column(HOME).to_pylist():
                channel = self.seats[seat_of(seat, len(self.seats))]
                store = StateStore(self.checkpoint, self.stage, channel, Path(self.directory) / host_name())
                view = store.open_if_near(self.versions.get(channel))
                if view is not None:
                    view.close()
                warm = view is not None or channel not in self.versions
                yield pa.RecordBatch.from_arrays([pa.array([channel]), pa.array([warm])], names=["channel", "warm"])
