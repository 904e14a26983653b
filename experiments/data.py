"""Real streams, where the folder of the environment variable EVENKEEL_DATA has them."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["real"]


def real(name: str) -> Path | None:
    """Give the path of a data set, or None where it is not there."""
    folder = os.environ.get("EVENKEEL_DATA")
    path = Path(folder or "") / f"{name}.parquet"
    return path if folder and path.is_file() else None
