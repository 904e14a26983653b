"""Other stream processors for Python: count and sum per key on one core, the same trace for all.

Each peer lives in an environment of its own below ``.venv-peers``, made when it is needed, and is run as its
documentation recommends, with its own state and recovery (see the ``peer_*.py`` programs). Start-up is excluded; those
that run on Java, ours too, go over the whole trace once before it counts. What cannot be installed or run here is a row
that says why.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks.measure import repeated
from benchmarks.spark_peers import Workplace, run_ours, session, trigger_ms, zipf_rows
from evenkeel.operators import Aggregate, Count, Sum

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, KEYS = 500_000, 100_000
HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".venv-peers"
PATIENCE_SECONDS = 1200


class UnavailableError(Exception):
    """A peer that cannot be installed or run here."""


@dataclass(frozen=True)
class Trace:
    """The same rows as every contender wants them."""

    place: Workplace
    few: Path
    many: Path
    few_python: Path
    many_python: Path

    @classmethod
    def make(cls, files: int, python_rows: int) -> Trace:
        """Write a trace: one file to warm up with, the others to measure; some of it as CSV."""
        place, rng = Workplace(files=1), np.random.default_rng(0)
        for _ in range(files + 1):
            place.add(zipf_rows(ROWS, KEYS, 1.0, rng))
        trace = cls(place, *(place.path / name for name in ("few", "many", "few_python", "many_python")))
        plain = csv.WriteOptions(include_header=False, quoting_style="none")
        for number, file in enumerate(sorted((place.path / "in").glob("*.parquet"))):
            table = pq.read_table(file)
            pieces = {trace.many: table}
            if number == 0:
                pieces |= {
                    trace.few: table,
                    trace.few_python: table.slice(0, python_rows // 10),
                    trace.many_python: table.slice(0, python_rows + python_rows // 10),
                }
            for folder, rows in pieces.items():
                folder.mkdir(exist_ok=True)
                csv.write_csv(rows, folder / f"{number:05d}.csv", plain)
        return trace

    @property
    def counted(self) -> int:
        """The rows that are measured: all but the first file's."""
        return ROWS * (self.place.batches - 1)


@dataclass(frozen=True)
class Peer:
    """A stream processor, one way to use it, and which of ours does the same."""

    name: str
    packages: tuple[str, ...]
    module: str
    beside: str
    rate: Callable[[Path, Trace], float]

    def python(self) -> Path:
        """The interpreter of the peer's environment, which is made if it is not there yet."""
        folder = ENVIRONMENTS / self.module
        python = folder / "bin" / "python"
        needed = f"import {self.module}, pyarrow"
        if python.exists() and not subprocess.run([python, "-c", needed], capture_output=True, check=False).returncode:
            return python
        shutil.rmtree(folder, ignore_errors=True)
        for command in (
            [sys.executable, "-m", "venv", folder],
            [python, "-m", "pip", "install", "--quiet", *self.packages],
            [python, "-c", needed],
        ):
            _output(command, "could not be installed")
        return python


def _output(command: list, otherwise: str) -> str:
    """What a command prints; where it fails, its last line of complaint."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{otherwise}: not done after {PATIENCE_SECONDS} s") from None
    if done.returncode:
        complaint = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise UnavailableError(f"{otherwise}: {complaint[:200]}")
    return done.stdout


def _run(python: Path, program: str, *arguments: object) -> dict:
    printed = _output([python, HERE / program, *map(str, arguments)], "did not run")
    return json.loads(printed.splitlines()[-1])


def _bytewax(way: str) -> Callable[[Path, Trace], float]:
    def rate(python: Path, trace: Trace) -> float:
        found = _run(python, "peer_bytewax.py", trace.place.path / "in", trace.place.fresh("bytewax"), way)
        if found["n"] != trace.counted + ROWS:
            raise UnavailableError(f"counted {found['n']} rows of {trace.counted + ROWS}")
        return trace.counted / found["seconds"]

    return rate


def _pyflink_sql(python: Path, trace: Trace) -> float:
    found = _run(python, "peer_pyflink.py", trace.few, trace.many, trace.place.fresh("flink"), "sql")
    return trace.counted / found["seconds"]


def _pyflink_python(python: Path, trace: Trace) -> float:
    checkpoint = trace.place.fresh("flink")
    found = _run(python, "peer_pyflink.py", trace.few_python, trace.many_python, checkpoint, "python")
    few, many = (sum(1 for _ in next(folder.iterdir()).open()) for folder in (trace.few_python, trace.many_python))
    return (many - few) / found["seconds"]


def _quix(python: Path, trace: Trace) -> float:
    file = min((trace.place.path / "in").glob("*.parquet"))
    rows = sum(1 for _ in next(trace.many_python.iterdir()).open())
    found = _run(python, "peer_quix.py", file, trace.place.fresh("quix"), rows)
    if found["n"] != rows:
        raise UnavailableError(f"counted {found['n']} rows of {rows}")
    return found["rows"] / found["seconds"]


BYTEWAX = ("bytewax==0.21.1", "pyarrow")
PYFLINK = ("apache-flink==2.3.0", "setuptools<81")
QUIX = ("quixstreams==3.28.1", "pyarrow")
PEERS = [
    Peer("Bytewax, row by row", BYTEWAX, "bytewax", "row by row", _bytewax("rows")),
    Peer("Bytewax, files combined by Arrow before it", BYTEWAX, "bytewax", "combined", _bytewax("combined")),
    Peer("PyFlink, its own SQL aggregate on CSV, no Python", PYFLINK, "pyflink", "combined", _pyflink_sql),
    Peer("PyFlink, KeyedProcessFunction on CSV", PYFLINK, "pyflink", "row by row", _pyflink_python),
    Peer("Quix Streams, on a mock broker", QUIX, "quixstreams", "row by row", _quix),
]


def ours(folder: str) -> dict[str, float]:
    """Rows per second of ours on one core, with and without combining before the shuffle."""
    from evenkeel.spark.api import stream

    place = Workplace(files=1, path=folder)
    rates = {}
    with session(1, 1) as spark:
        for name, combine in [("combined", True), ("row by row", False)] * 2:  # the second time counts
            flow = stream(place.stream(spark), key="word").apply(
                Aggregate(n=Count(), total=Sum("value")), channels=1, combine=combine
            )
            took = trigger_ms(run_ours(flow, place))[1:]  # the first file is not counted for any
            rates[name] = 1000 * ROWS * len(took) / sum(took)  # all of the time, as for the peers
    return rates


def run(quick: bool) -> list[dict]:
    """Measure all, round by round."""
    trace = Trace.make(2 if quick else 12, 200_000)
    peers = PEERS[:1] if quick else PEERS
    mine: list[dict[str, float]] = []
    theirs: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    try:
        for _ in range(1 if quick else 3):
            command = [sys.executable, "-m", "benchmarks.peers", str(trace.place.path)]
            mine.append(json.loads(_output(command, "Evenkeel did not run").splitlines()[-1]))
            for peer in peers:
                if peer.name in failed:
                    continue
                try:
                    theirs.setdefault(peer.name, []).append(peer.rate(peer.python(), trace))
                except UnavailableError as error:
                    failed[peer.name] = str(error)
    finally:
        trace.place.remove()
    return [_row(peer, mine, theirs.get(peer.name, []), failed.get(peer.name)) for peer in peers]


def _row(peer: Peer, mine: list[dict[str, float]], theirs: list[float], failed: str | None) -> dict:
    what = f"count and sum on one core, {peer.beside}"
    rates = [rates[peer.beside] for rates in mine]
    row = {"what": what, "value": median(rates) / 1e6, "unit": "M rows/s"}
    if failed is not None:
        return {**row, "peer": f"{peer.name}: {failed}"}
    ratios = [own / other for own, other in zip(rates, theirs, strict=True)]
    return {
        **row,
        "ratio": median(ratios),
        "peer": f"{peer.name}: {median(theirs):,.0f} rows/s",
        **repeated(ratios),
    }


if __name__ == "__main__":
    print(json.dumps(ours(sys.argv[1])))
