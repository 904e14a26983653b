"""How a task of the engine loses its state while the query runs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from experiments.engine import ENGINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["FAILURE", "losing"]

FAILURE = (
    ENGINE + " A failure is the loss of one channel's working copy, as with its host: the folder is removed while the "
    "query runs. A channel whose keys have backups is not restored: they are switched on, and the batch is run again. "
    "Others are restored from the checkpoint, as a whole."
)


def losing(channel_after: Mapping[int, int]) -> Callable[[int, Path], None]:
    """Remove what a channel holds on its host, once a batch's results are out; by batch, which channel."""

    def remove(batch: int, local: Path) -> None:
        if batch in channel_after:
            for copy in local.rglob(f"c{channel_after[batch]:05d}"):
                shutil.rmtree(copy)

    return remove
