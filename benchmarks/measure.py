"""How every benchmark measures: interleaved repeats, median and spread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one thing, over several repeats."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """Seconds of the middle repeat."""
        return median(self.seconds)

    @property
    def repeated(self) -> dict[str, float]:
        """How often it was timed, and the spread of that."""
        return repeated(self.seconds)


def repeated(values: Sequence[float]) -> dict[str, float]:
    """Say of what was measured several times how often that was, and (largest − smallest) / median."""
    return {"repeats": len(values), "spread": (max(values) - min(values)) / median(values)}


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


def each_alone(module: str, cases: Sequence[str], quick: bool, *, first: Sequence[str] | None = None) -> list[dict]:
    """Run each case in a process of its own; for a first look some of them, in one that starts Java once."""
    found = []
    for together in [",".join(first or cases)] if quick else cases:
        started = time.perf_counter()
        found += alone(module, together, "quick" if quick else "full")
        if not quick:
            print(f"{module} {together}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return found


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    found = list(parents.get(pid, []))
    for child in found:
        found += parents.get(child, [])
    return found


def own_mb(*pids: int) -> float:
    """Memory of processes that is no file's; what they share is counted once.

    Pages of files are left out: of libraries, a process is charged the less the more others use them.
    """
    total = 0
    for pid in pids:
        with suppress(OSError):  # it has ended
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += next((int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:")), 0)
    return total * 1024 / 1e6


def report(cases: Mapping[str, Callable[..., list[dict]]], arguments: Sequence[str]) -> None:
    """Be a process that :func:`alone` starts: with all cores, run the cases named, and print what they found.

    The arguments are the cases, and whether they are to be quick, or else whatever they are to be given.
    """
    if len(arguments) < 2 or not all(callable(cases.get(name)) for name in arguments[0].split(",")):
        sys.exit("error: say which case, and whether it is to be quick or full.")
    names, given = arguments[:2]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    argument = given == "quick" if given in ("quick", "full") else given
    found = []
    for name in names.split(","):
        started = time.perf_counter()
        found += cases[name](argument)
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    print(json.dumps(found, default=float))
