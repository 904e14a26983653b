"""Jobs on a cluster of loopback addresses, to be disturbed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.loopback import Cluster, start_driver, until

if TYPE_CHECKING:
    import subprocess

__all__ = ["Cluster", "commits", "start_job", "until"]


def start_job(directory: Path, script: str, *arguments: str) -> subprocess.Popen:
    """Run a script of this folder as a driver, in a process group of its own."""
    return start_driver(Path(__file__).parent / script, directory / "job.log", *arguments)


def commits(directory: Path) -> int:
    """Count the batches that are committed; old commits are removed, so the last one's number tells."""
    numbers = [int(path.name[1:13]) for path in directory.glob("checkpoint/commits/*.json")]
    return 1 + max(numbers, default=-1)
