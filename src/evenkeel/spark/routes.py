"""Per-tuple routing: what runs before the shuffle, in Spark's Python workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.hashing import hash_keys
from evenkeel.spark.homes import PLACE
from evenkeel.spark.worker import promptly

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evenkeel.routing import Router

__all__ = ["Route"]


@dataclass(frozen=True)
class Route:
    """Give each tuple a channel; every task is a source of its own, with a router that starts afresh.

    Parameters
    ----------
    router
        Chooses the channels.
    key_names
        The key columns.
    addresses
        The placement value of each channel.
    probe
        A column of booleans: tuples for which it is true go to every channel that may hold a part of their key.
    """

    router: Router
    key_names: tuple[str, ...]
    addresses: tuple[int, ...]
    probe: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add the placement values."""
        addresses = np.array(self.addresses, np.int32)
        for batch in promptly(batches):
            hashes = hash_keys(*(batch.column(name) for name in self.key_names))
            if self.probe is None:
                yield batch.append_column(PLACE, pa.array(addresses[self.router.route(hashes)]))
                continue
            asks = batch.column(self.probe).fill_null(False).to_numpy(zero_copy_only=False)
            rows, channels = np.flatnonzero(~asks), self.router.route(hashes[~asks])
            reach = self.router.reachable(hashes[asks])
            wanted = np.repeat(np.flatnonzero(asks), reach.shape[1])
            pairs = np.unique(np.column_stack([wanted, reach.ravel()]), axis=0)
            sent = batch.take(np.concatenate([rows, pairs[:, 0]]))
            places = addresses[np.concatenate([channels, pairs[:, 1]])]
            yield sent.append_column(PLACE, pa.array(places))
