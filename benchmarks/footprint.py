"""What state takes per held key, what grows with keys, channels and pins, and what starting takes.

Every case runs in a process of its own, with all cores, and prints one line of JSON.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import lmdb
import numpy as np
import pyarrow as pa
from pyarrow import fs

from benchmarks.engine import COUNT_AND_SUM, Shift
from benchmarks.measure import alone, descendants, each_alone, own_mb, repeated, report
from benchmarks.spark_peers import Workplace, discard, run_native, run_ours, session, trigger_ms
from benchmarks.state import Channel
from evenkeel.hashing import hash_keys
from evenkeel.state import Checkpoint, Delta, StateStore
from evenkeel.state.identity import as_list, pack

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = ["disk", "memory", "spark_memory", "spark_disk", "keys", "channels", "pins", "imports", "starts"]
NEAR_LINEAR = 1.1  # the exponent, at most
FILL = 50_000  # keys in a batch that fills up: for what a batch takes is not to be counted as what is held


def run(quick: bool) -> list[dict]:
    """Run all cases, one after the other."""
    return each_alone("footprint", CASES, quick, first=["disk", "memory", "keys", "imports"])


def _bytes(*folders: str | Path) -> int:
    """What files take on disk; working copies have holes."""
    found = (file for folder in folders for file in Path(folder).rglob("*"))
    return sum(_on_disk(file) for file in found if file.is_file())


def _on_disk(file: Path) -> int:
    return 512 * file.stat().st_blocks


def _sizes(quick: bool) -> list[int]:
    return [100_000, 300_000] if quick else [100_000, 1_000_000, 10_000_000]


# -- disk and memory --------------------------------------------------------------------------------------------------


def disk(quick: bool) -> list[dict]:
    """Bytes per key of a working copy and of a snapshot, and of LMDB alone, filled in order and so with full pages."""
    found = []
    for held in _sizes(quick):
        place = Workplace(files=1)
        channel = Channel(place.path, held, np.random.default_rng(0))
        channel.batch(channel.same[:10], snapshot=True)
        channel.store.open(channel.ref).close()
        least = _bare(place.path / "bare", channel)
        sizes = {
            "working copy": _bytes(place.path / "work"),
            "snapshot": sum(_on_disk(file) for file in place.path.rglob("*.snapshot.mdb")),
        }
        for what, size in sizes.items():
            found.append(
                {
                    "what": f"{what}, {held:,} keys of 16 bytes held",
                    "value": size / held,
                    "unit": "bytes/key",
                    "ratio": size / least,
                    "peer": f"bare LMDB: {least / held:.1f}",
                }
            )
        place.remove()
    return found


def _bare(folder: Path, channel: Channel) -> int:
    packed = as_list(np.sort(pack(channel.slots, channel.hashes, channel.hashes2)))
    with lmdb.open(str(folder), map_size=8 << 30, sync=False, metasync=False) as environment:
        with environment.begin(write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti(((key, b"0123456789abcdef") for key in packed), append=True)
        environment.sync(True)
    return _bytes(folder)


def memory(quick: bool) -> list[dict]:
    """Memory of a process that works on 100,000 keys, ours and bare LMDB: all of it, and what each key held adds.

    Pages of the files are not counted: they belong to the system.
    """
    found = []
    few: tuple[int, list[int]] | None = None
    for held in _sizes(quick):
        place = Workplace(files=1)
        channel = Channel(place.path, held, np.random.default_rng(0))
        channel.same_batch()
        _bare(place.path / "bare", channel)
        (place.path / "given").write_bytes(pickle.dumps((channel.keys(channel.same), channel.ref)))
        ours, bare = own = [alone("footprint", worker, str(place.path))[0]["own"] for worker in ("work", "work_bare")]
        found.append(
            {
                "what": f"memory of a task on 100,000 keys, {held:,} held",
                "value": ours / 1e6,
                "unit": "MB",
                "ratio": ours / bare,
                "peer": f"bare LMDB, get and put: {bare / 1e6:.0f} MB",
            }
        )
        few = few or (held, own)
        if held > few[0]:
            mine, other = ((many - before) / (held - few[0]) for many, before in zip(own, few[1], strict=True))
            found.append(
                {
                    "what": f"of that, for each key held, beyond {few[0]:,}",
                    "value": mine,
                    "unit": "bytes/key",
                    "target": "≤ 1.5×",
                    "met": mine <= 1.5 * other,
                    "ratio": mine / other,
                    "peer": f"bare LMDB: {other:.1f}",
                }
            )
        place.remove()
    return found


def work(place: str) -> list[dict]:
    """Run batches over the keys that were given, and say how much memory that took at most."""
    keys, ref = pickle.loads((Path(place) / "given").read_bytes())
    checkpoint = Checkpoint.open(fs.LocalFileSystem(), f"{place}/checkpoint", job="benchmark", run="run")
    store = StateStore(checkpoint, "stage", 0, Path(place) / "work", snapshot_every=10**6)
    own = []
    for number in range(ref.batch + 1, ref.batch + 11):
        with store.open(ref) as view:
            delta = Delta()
            values = pa.array(np.full(len(keys[0]), number).astype("S16").view("V16"), pa.binary(16))
            delta.put(*keys, values, previous=view.get(*keys))
            own.append(_own_bytes())
            file = store.write_delta(view, delta, batch=number, attempt="a")
            ref = store.write_manifest(view, file, batch=number, attempt="a")
    return [{"own": max(own)}]


def work_bare(place: str) -> list[dict]:
    """Do so with bare LMDB."""
    keys, _ = pickle.loads((Path(place) / "given").read_bytes())
    packed, own = as_list(np.sort(pack(*keys))), []
    with lmdb.open(f"{place}/bare", map_size=8 << 30, sync=False, metasync=False) as environment:
        for _ in range(10):
            with environment.begin(write=True) as transaction, transaction.cursor() as cursor:
                cursor.getmulti(packed)
                cursor.putmulti([(key, b"fedcba9876543210") for key in packed])
                own.append(_own_bytes())
    return [{"own": max(own)}]


def _own_bytes() -> int:
    """Memory of this process that is no file's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def spark_memory(quick: bool) -> list[dict]:
    """What held keys add to the memory of all processes of a job, beside Spark's own query with RocksDB.

    Pages of files are not counted. Java's heap is all there from the start, so that garbage is not counted either.
    """
    repeats = 1 if quick else 2

    def held_mb(query: str, held: int) -> float:
        return median(alone("footprint", query, str(held))[0]["own"] for _ in range(repeats))

    queries, found = ("hold_ours", "hold_native"), []
    few = [held_mb(query, FILL) for query in queries]
    for held in _sizes(quick)[1:]:
        ours, theirs = many = [held_mb(query, held) for query in queries]
        mine, other = (1e6 * (own - before) / (held - FILL) for own, before in zip(many, few, strict=True))
        found.append(
            {
                "what": f"memory of a job for each word held, of {held:,}",
                "value": mine,
                "unit": "bytes/key",
                "target": "≤ 1.5×",
                "met": mine <= 1.5 * other,
                "ratio": mine / other,
                "peer": f"Spark's RocksDB: {other:.1f}; {ours:.0f} and {theirs:.0f} MB in all",
                "repeats": repeats,
            }
        )
    return found


def hold_ours(held: str) -> list[dict]:
    """Megabytes of all processes while a query of ours holds so many words."""
    from evenkeel.spark.api import stream

    def start(rows, place: Workplace):
        flow = stream(rows, key="word").apply(COUNT_AND_SUM, channels=2)
        query = flow.start(discard, checkpoint=place.fresh("checkpoint"), local_directory=place.fresh("local"))
        return query, query.process_all_available

    return _holding(int(held), start)


def hold_native(held: str) -> list[dict]:
    """Megabytes of all processes while Spark's own query holds so many words."""
    from pyspark.sql import functions as F

    def start(rows, place: Workplace):
        frame = rows.groupBy("word").agg(F.count("*"), F.sum("value"))
        writer = frame.writeStream.outputMode("update").foreachBatch(discard)
        query = writer.option("checkpointLocation", place.fresh("native")).start()
        return query, query.processAllAvailable

    return _holding(int(held), start)


def _holding(held: int, start: Callable[..., tuple[Any, Callable[[], None]]]) -> list[dict]:
    """Start a query, wait as it says until it has all, and look at the memory."""
    place = _held(held, 10, 10_000, fill=FILL)
    with session(2, 2, heap_at_once=True) as spark:
        query, wait = start(place.stream(spark), place)
        wait()
        own = own_mb(os.getpid(), *descendants(os.getpid()))
        query.stop()
    place.remove()
    return [{"own": own}]


def spark_disk(quick: bool) -> list[dict]:
    """The checkpoint of the same job, ours and Spark's own in RocksDB: keys filled in, then small batches."""
    from pyspark.sql import functions as F

    from evenkeel.spark.api import stream

    found = []
    with session(2, 2) as spark:
        for held in _sizes(quick):
            place = _held(held, 5 if quick else 20, 1_000)
            flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, channels=2)
            checkpoint, local = place.fresh("checkpoint"), place.fresh("local")
            query = flow.start(discard, checkpoint=checkpoint, local_directory=local)
            query.process_all_available()
            query.stop()
            native = place.fresh("native")
            run_native(place.stream(spark).groupBy("word").agg(F.count("*"), F.sum("value")), native)
            ours, theirs = _bytes(checkpoint), _bytes(native)
            found.append(
                {
                    "what": f"checkpoint of count and sum, {held:,} words held",
                    "value": ours / held,
                    "unit": "bytes/key",
                    "target": "≤ 1.5×",
                    "met": ours <= 1.5 * theirs,
                    "ratio": ours / theirs,
                    "peer": f"Spark's RocksDB: {theirs / held:.1f}; our working copy has {_bytes(local) / held:.1f}",
                }
            )
            place.remove()
    return found


# -- growth -----------------------------------------------------------------------------------------------------------


def _held(held: int, batches: int, touched: int, fill: int = 1_000_000) -> Workplace:
    """A stream that first brings so many keys, some in each batch, and then small batches of some of them."""
    place, rng = Workplace(files=1), np.random.default_rng(1)
    for start in range(0, held, fill):
        words = np.arange(start, min(start + fill, held)).astype(str)
        place.add(pa.table({"word": words, "value": np.ones(len(words), np.int64)}))
    for _ in range(batches):
        words = rng.integers(0, held, touched).astype(str)
        place.add(pa.table({"word": words, "value": np.ones(touched, np.int64)}))
    return place


def _growth(what: str, times: dict[int, list[float]], *, flat: bool = False) -> list[dict]:
    """A row for each size, the last one with how batch times grow: as which power of the size, or by how much."""
    sizes = sorted(times)
    rows = [
        {
            "what": f"small batch, {size:,} {what}",
            "value": median(times[size]),
            "unit": "ms",
            **repeated(times[size]),
        }
        for size in sizes
    ]
    ratio = median(times[sizes[-1]]) / median(times[sizes[0]])
    exponent = float(np.log(ratio) / np.log(sizes[-1] / sizes[0]))
    rows[-1] |= {
        "target": "≤ 1.5×" if flat else f"≤ size^{NEAR_LINEAR}",
        "met": ratio <= 1.5 if flat else exponent <= NEAR_LINEAR,
        "ratio": ratio,
        "peer": f"{sizes[0]:,} {what}; grows as size^{exponent:.2f}",
    }
    return rows


def keys(quick: bool) -> list[dict]:
    """Batches of 10,000 keys with few and many held."""
    from evenkeel.spark.api import stream

    times: dict[int, list[float]] = {}
    with session(2, 2) as spark:
        sizes = _sizes(quick)
        for held in [*sizes, sizes[0]]:  # few before and after, so that neither is colder
            place = _held(held, 10, 10_000)
            flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, channels=2)
            times.setdefault(held, []).extend(trigger_ms(run_ours(flow, place))[-8:])
            place.remove()
    return _growth("keys held", times, flat=True)


def channels(quick: bool) -> list[dict]:
    """Batches of 10,000 rows on few and many channels, two cores."""
    from evenkeel.spark.api import stream

    times = {}
    place = _held(100_000, 5 if quick else 10, 10_000)
    with session(2, 2) as spark:
        for number in (4, 4, 16) if quick else (4, 4, 16, 64, 256):  # the first one warms up
            flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, strategy="stay_put", channels=number)
            times[number] = trigger_ms(run_ours(flow, place))[3:]
    place.remove()
    return _growth("channels", times)


class Pinned(Shift):
    """Pins the first so many words after the first batch, each where it is not."""

    def __init__(self, pins: int) -> None:
        super().__init__()
        self.hashes = np.sort(hash_keys(np.arange(pins).astype(str)))

    def decide(self, table, now):  # noqa: ARG002
        """Give the next table."""
        if self.batch:
            return None, None
        elsewhere = (table.route(self.hashes) + 1) % table.channels
        return None, table.evolve(pin_hashes=self.hashes, pin_channels=elsewhere.astype(np.int32))


def pins(quick: bool) -> list[dict]:
    """Batches of 10,000 rows with few and many keys in the table."""
    from evenkeel.spark.api import stream

    times = {}
    place = _held(100_000, 6 if quick else 12, 10_000)
    with session(2, 4) as spark:
        for number in (100, 100, 1_000, *([] if quick else [10_000, 100_000])):  # the first one warms up
            flow = stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, strategy=Pinned(number), channels=4)
            times[number] = trigger_ms(run_ours(flow, place))[3:]
    place.remove()
    return _growth("pins", times)


# -- starting ---------------------------------------------------------------------------------------------------------

IMPORT = """
import sys, time
started = time.perf_counter()
import evenkeel
took = time.perf_counter() - started
assert "pyspark" not in sys.modules and "numba" not in sys.modules
print(took)
"""
FIRST_ROUTE = """
import time
started = time.perf_counter()
from evenkeel.routing import RoutingTable
RoutingTable.even(channels=8).route(["keel"])
print(time.perf_counter() - started)
"""


def imports(quick: bool) -> list[dict]:
    """Import, and import and route, in fresh processes."""
    took: dict[str, list[float]] = {IMPORT: [], FIRST_ROUTE: []}
    for _ in range(5 if quick else 15):
        for program, seconds in took.items():
            printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            seconds.append(float(printed.stdout))
    took = {program: seconds[1:] for program, seconds in took.items()}  # the first of each fills caches
    quickly = median(took[IMPORT])
    return [
        {
            "what": "import evenkeel",
            "value": quickly,
            "unit": "s",
            "target": "≤ 0.3",
            "met": quickly <= 0.3,
            **repeated(took[IMPORT]),
        },
        {
            "what": "import and route a first key",
            "value": median(took[FIRST_ROUTE]),
            "unit": "s",
            **repeated(took[FIRST_ROUTE]),
        },
    ]


def starts(quick: bool) -> list[dict]:
    """From a fresh process to its first committed batch, ours and Spark's own query, in turn."""
    ours, theirs = [], []
    for _ in range(1 if quick else 5):
        theirs += [row["seconds"] for row in alone("footprint", "first_native", str(time.time()))]
        ours += [row["seconds"] for row in alone("footprint", "first_ours", str(time.time()))]
    ratios = [own / other for own, other in zip(ours, theirs, strict=True)]
    return [
        {
            "what": "fresh process to the first committed batch",
            "value": median(ours),
            "unit": "s",
            "ratio": median(ratios),
            "peer": f"Spark's own query, with the same imports: {median(theirs):.1f} s",
            **repeated(ratios),
        }
    ]


def first_native(started: str) -> list[dict]:
    """Seconds to the first batch of Spark's own query, since it was asked for."""
    from pyspark.sql import functions as F

    place = _held(1_000, 0, 0)
    with session(2, 2) as spark:
        run_native(place.stream(spark).groupBy("word").agg(F.count("*"), F.sum("value")), place.fresh("native"))
        took = time.time() - float(started)
    place.remove()
    return [{"seconds": took}]


def first_ours(started: str) -> list[dict]:
    """Seconds to the first batch of ours, since it was asked for."""
    from evenkeel.spark.api import stream

    place = _held(1_000, 0, 0)
    with session(2, 2) as spark:
        run_ours(stream(place.stream(spark), key="word").apply(COUNT_AND_SUM, channels=2), place)
        took = time.time() - float(started)
    place.remove()
    return [{"seconds": took}]


if __name__ == "__main__":
    report(globals(), sys.argv[1:])
