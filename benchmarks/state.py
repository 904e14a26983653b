"""State: a batch's cost by keys touched and keys held, opening, exporting, rebuilding; beside bare LMDB."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

import lmdb
import numpy as np
import pyarrow as pa
from pyarrow import fs

from benchmarks.measure import Timing, time_together
from evenkeel.state import Checkpoint, Delta, Selection, StateStore
from evenkeel.state.identity import as_list, pack

TOUCHED = 100_000
SLOTS = 4096


class Channel:
    """A channel that holds some keys, and runs batches over them."""

    def __init__(self, place: Path, held: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.hashes, self.hashes2 = (rng.integers(-(2**63), 2**63 - 1, held) for _ in range(2))
        self.slots = (self.hashes % SLOTS).astype(np.int32)
        checkpoint = Checkpoint.open(fs.LocalFileSystem(), str(place / "checkpoint"), job="benchmark", run="run")
        self.store = StateStore(checkpoint, "stage", 0, place / "work", snapshot_every=10**6)
        self.place, self.ref, self.batches = place, None, itertools.count()
        for start in range(0, held, 1_000_000):
            self.batch(np.arange(start, min(start + 1_000_000, held)))
        self.same = rng.choice(held, TOUCHED, replace=False)
        self.parts: dict[str, list[float]] = {}

    def keys(self, chosen):
        """Slots, hashes and second hashes of some keys."""
        return self.slots[chosen], self.hashes[chosen], self.hashes2[chosen]

    def batch(self, chosen, *, snapshot=False) -> None:
        """Open what is committed, read the states of some keys, write new ones."""
        number = next(self.batches)
        keys = self.keys(chosen)
        clock = [time.perf_counter()]
        with self.store.open(self.ref) as view:
            clock.append(time.perf_counter())
            previous = view.get(*keys)
            clock.append(time.perf_counter())
            values = pa.array(np.full(len(chosen), number).astype("S16").view("V16"), pa.binary(16))
            delta = Delta()
            delta.put(*keys, values, previous=previous)
            file = self.store.write_delta(view, delta, batch=number, attempt="a")
            clock.append(time.perf_counter())
            self.ref = self.store.write_manifest(view, file, batch=number, attempt="a", snapshot=snapshot)
        if hasattr(self, "parts"):
            for name, seconds in zip(("open", "get", "write"), np.diff(clock).tolist(), strict=True):
                self.parts.setdefault(name, []).append(seconds)

    def same_batch(self) -> None:
        """Touch the same keys as ever."""
        self.batch(self.same)

    def random_batch(self) -> None:
        """Touch other keys than before."""
        self.batch(self.rng.choice(len(self.hashes), TOUCHED, replace=False))


class BareLmdb:
    """The same keys in LMDB alone: get and put of sorted keys, nothing else."""

    def __init__(self, place: Path, channel: Channel) -> None:
        packed = pack(channel.slots, channel.hashes, channel.hashes2)
        self.env = lmdb.open(str(place / "bare"), map_size=8 << 30, sync=False, metasync=False, readahead=False)
        with self.env.begin(write=True) as txn, txn.cursor() as cursor:
            cursor.putmulti(((key, b"0123456789abcdef") for key in as_list(np.sort(packed))), append=True)
        self.same = as_list(np.sort(packed[channel.same]))

    def same_batch(self) -> None:
        """Read and write the same keys as ever."""
        with self.env.begin() as txn, txn.cursor() as cursor:
            cursor.getmulti(self.same)
        with self.env.begin(write=True) as txn, txn.cursor() as cursor:
            cursor.putmulti([(key, b"fedcba9876543210") for key in self.same])


def row(what, value, unit, *, target="", met=None, ratio=None, peer="", timing: Timing | None = None):
    return {
        "what": what,
        "value": value,
        "unit": unit,
        "target": target,
        "met": met,
        "ratio": ratio,
        "peer": peer,
        **(timing.repeated if timing else {}),
    }


def run(quick: bool) -> list[dict[str, object]]:
    place = Path(tempfile.mkdtemp(prefix="evenkeel-bench-"))
    try:
        return [*_growth(place, 300_000 if quick else 5_000_000), *_moving(place / "moving")]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _growth(place: Path, many: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    small, large = Channel(place / "small", TOUCHED, rng), Channel(place / "large", many, rng)
    bare_small, bare_large = BareLmdb(place / "small", small), BareLmdb(place / "large", large)
    timings = time_together(
        9,
        small=small.same_batch,
        large=large.same_batch,
        bare_small=bare_small.same_batch,
        bare_large=bare_large.same_batch,
    )
    growth = timings["large"].median / timings["small"].median
    bare_growth = timings["bare_large"].median / timings["bare_small"].median
    parts = {name: 1000 * median(seconds) for name, seconds in large.parts.items()}
    rows = [
        row(
            f"batch of 100,000 keys, {many:,} held, the same keys every batch",
            1000 * timings["large"].median,
            "ms",
            target="<= 1.5 x 100,000 held",
            met=growth <= 1.5,
            ratio=growth,
            peer="the same batch with 100,000 keys held",
            timing=timings["large"],
        ),
        row(
            f"bare LMDB, getmulti + putmulti, {many:,} held",
            1000 * timings["bare_large"].median,
            "ms",
            ratio=bare_growth,
            peer="bare LMDB with 100,000 keys held",
            timing=timings["bare_large"],
        ),
        row(
            "batch of 100,000 keys, 100,000 held",
            1000 * timings["small"].median,
            "ms",
            ratio=timings["small"].median / timings["bare_small"].median,
            peer="bare LMDB, getmulti + putmulti",
            timing=timings["small"],
        ),
        *(row(f"of the batch with {many:,} held: {name}", value, "ms") for name, value in parts.items()),
    ]
    other = time_together(9, small=small.random_batch, large=large.random_batch)
    rows.append(
        row(
            f"batch of 100,000 keys, {many:,} held, other random keys every batch",
            1000 * other["large"].median,
            "ms",
            ratio=other["large"].median / other["small"].median,
            peer="the same batch with 100,000 keys held",
            timing=other["large"],
        )
    )
    return [*rows, *_opening(large)]


def _opening(channel: Channel) -> list[dict[str, object]]:
    channel.batch(channel.same, snapshot=True)
    channel.store.open(channel.ref).close()
    fresh = itertools.count()
    size = sum(file.stat().st_size for file in (channel.place / "checkpoint").rglob("*.snapshot.mdb"))

    def rebuild() -> None:
        directory = channel.place / f"work-{next(fresh)}"
        StateStore(channel.store.checkpoint, "stage", 0, directory).open(channel.ref).close()
        shutil.rmtree(directory)

    timings = time_together(5, rebuild=rebuild)
    warm = time_together(200, warm=lambda: channel.store.open(channel.ref).close())["warm"]
    rebuilt = timings["rebuild"]
    held = len(channel.hashes)
    return [
        row("open warm", 1000 * warm.median, "ms", target="<= 1", met=1000 * warm.median <= 1, timing=warm),
        row(f"rebuild {held:,} keys from a snapshot", held / rebuilt.median / 1e6, "M keys/s", timing=rebuilt),
        row(f"rebuild {held:,} keys from a snapshot", size / rebuilt.median / 1e6, "MB/s", timing=rebuilt),
    ]


def _moving(place: Path) -> list[dict[str, object]]:
    channel = Channel(place, 1_000_000, np.random.default_rng(1))
    bare = BareLmdb(place, channel)
    channel.store.open(channel.ref).close()
    view = channel.store.open(channel.ref)
    tenth = Selection.of(np.arange(0, SLOTS, 10))
    moved = sum(batch.num_rows for batch in view.export(tenth))
    values = pa.array([b"0123456789abcdef"] * TOUCHED, pa.binary())
    number = itertools.count(100)

    def write() -> None:
        delta = Delta()
        delta.put(*channel.keys(channel.same), values)
        channel.store.write_delta(view, delta, batch=next(number), attempt="a")

    def scan_bare() -> None:
        with bare.env.begin() as txn, txn.cursor() as cursor:
            found = list(itertools.islice(cursor.iternext(), moved))
            assert len(found) == moved

    timings = time_together(5, export=lambda: list(view.export(tenth)), write=write, bare=scan_bare)
    view.close()
    export, wrote = timings["export"], timings["write"]
    return [
        row(
            "export 10 % of 1,000,000 keys",
            moved / export.median / 1e6,
            "M keys/s",
            ratio=export.median / timings["bare"].median,
            peer="bare LMDB, pairs of as many keys",
            timing=export,
        ),
        row("write a delta, previous values looked up", TOUCHED / wrote.median / 1e6, "M keys/s", timing=wrote),
    ]
