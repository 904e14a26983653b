"""How every benchmark measures: interleaved repeats, median and spread."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one thing, over several repeats."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """Seconds of the middle repeat."""
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """(slowest − fastest) / median."""
        return (max(self.seconds) - min(self.seconds)) / self.median


def time_together(repeats: int, **contenders: Callable[[], object]) -> dict[str, Timing]:
    """Time the contenders in turn, round by round, so that a noisy spell of the machine hits all alike.

    One round before the first is not counted: it compiles and warms up.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(repeats + 1):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            if round_number:
                seconds[name].append(time.perf_counter() - start)
    return {name: Timing(values) for name, values in seconds.items()}


def alone(module: str, *arguments: str) -> list[dict]:
    """Run a benchmark in a process of its own, and give the rows that it prints as its last line."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])
