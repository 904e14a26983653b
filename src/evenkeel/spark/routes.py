"""Per-tuple routing: what runs before the shuffle, in Spark's Python workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.hashing import hash_keys
from evenkeel.spark.homes import ROWS
from evenkeel.spark.parcels import packed, together
from evenkeel.spark.worker import promptly

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from evenkeel.routing import Router

__all__ = ["Route"]

_AT_ONCE = 4 << 20
"""How many bytes of tuples are routed and packed at once, about."""


@dataclass(frozen=True)
class Route:
    """Send each tuple to a channel; every task is a source of its own, with a router that starts afresh.

    Parameters
    ----------
    router
        Chooses the channels.
    key_names, row_schema
        The key columns, and all.
    probe
        A column of booleans: tuples for which it is true go to every channel that may hold a part of their key.
    """

    router: Router
    key_names: tuple[str, ...]
    row_schema: pa.Schema
    probe: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the tuples, packed by channel."""
        for table in together(promptly(batches), _AT_ONCE):
            rows = table.cast(self.row_schema)
            hashes = hash_keys(*(rows[name] for name in self.key_names))
            if self.probe is None:
                channels = self.router.route(hashes)
            else:
                asks = rows[self.probe].fill_null(False).to_numpy()
                plain, channels = np.flatnonzero(~asks), self.router.route(hashes[~asks])
                reach = self.router.reachable(hashes[asks])
                wanted = np.repeat(np.flatnonzero(asks), reach.shape[1])
                pairs = np.unique(np.column_stack([wanted, reach.ravel()]), axis=0)
                rows = rows.take(np.concatenate([plain, pairs[:, 0]]))
                channels = np.concatenate([channels, pairs[:, 1]])
            yield packed(rows, channels.astype(np.int32), ROWS)
