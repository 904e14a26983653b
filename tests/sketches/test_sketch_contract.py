"""What all sketches share: Arrow and pickle round trips, refusals, empty input, quick imports."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import evenkeel.sketches
from evenkeel.errors import CorruptDataError, InvalidArgumentError
from evenkeel.sketches import LossyCounting, SlidingLossyCounting, SpaceSaving, StreamingHistogram
from evenkeel.sketches._arrow import SCALARS

LONGS = np.iinfo(np.int64)
MAKERS = {
    "lossy counting": lambda: LossyCounting(0.05),
    "sliding lossy counting": lambda: SlidingLossyCounting(60, 0.05, 4),
    "space-saving": lambda: SpaceSaving(20),
    "streaming histogram": lambda: StreamingHistogram(20),
}
KEYED = [name for name in MAKERS if name != "streaming histogram"]
every_sketch = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
every_keyed_sketch = pytest.mark.parametrize("make", [MAKERS[name] for name in KEYED], ids=KEYED)


def stream(seed, items=1_000):
    values = np.random.default_rng(seed).zipf(1.3, items) % 500
    values[:2] = LONGS.min, LONGS.max
    return values


def same(one, two):
    return one.to_arrow().equals(two.to_arrow(), check_metadata=True)


def through_ipc(batch):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


def test_the_room_exports_exactly_its_public_names():
    public = {name for name, value in vars(evenkeel.sketches).items() if isinstance(value, type)}
    assert public == set(evenkeel.sketches.__all__)


def test_importing_the_room_does_not_import_numba():
    code = "import sys, evenkeel.sketches; sys.exit('numba' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@every_sketch
@pytest.mark.parametrize("items", [0, 1, 19, 20, 21, 59, 60, 61, 80, 1_000], ids="after {} items".format)
@pytest.mark.parametrize(
    "travel",
    [
        pytest.param(lambda sketch: type(sketch).from_arrow(sketch.to_arrow()), id="through Arrow"),
        pytest.param(lambda sketch: type(sketch).from_arrow(through_ipc(sketch.to_arrow())), id="through IPC"),
        pytest.param(lambda sketch: pickle.loads(pickle.dumps(sketch)), id="through pickle"),
    ],
)
def test_a_sketch_that_travelled_is_the_same_and_goes_on_the_same(make, items, travel):
    sketch = make()
    sketch.observe(stream(1)[:items])
    arrived = travel(sketch)
    assert same(sketch, arrived)
    assert arrived.size_bound == sketch.size_bound
    for one in (sketch, arrived):
        one.observe(stream(2))
    assert same(sketch, arrived)


@every_sketch
def test_a_merged_sketch_travels_too(make):
    one, two = make(), make()
    one.observe(stream(3))
    two.observe(stream(4))
    merged = one.merge(two)
    arrived = type(merged).from_arrow(merged.to_arrow())
    assert same(merged, arrived)
    for sketch in (merged, arrived):
        sketch.observe(stream(5))
    assert same(merged, arrived)
    assert arrived.size_bound == merged.size_bound


@every_sketch
def test_merging_with_an_empty_sketch_changes_no_answer(make):
    sketch = make()
    sketch.observe(stream(3)[:50])
    for merged in (sketch.merge(make()), make().merge(sketch)):
        assert merged.total == 50
        if hasattr(sketch, "heavy_keys"):
            assert merged.heavy_keys(1).keys.tolist() == sketch.heavy_keys(1).keys.tolist()
        else:
            assert merged.centres.tolist() == sketch.centres.tolist()


@every_sketch
def test_equal_streams_give_equal_sketches(make):
    one, two = make(), make()
    one.observe(stream(6))
    two.observe(pa.array(stream(6)))
    assert same(one, two)


def rebuilt(batch, columns=None, metadata=None, **scalars):
    """The batch with other columns, metadata or scalars."""
    metadata = dict(batch.schema.metadata) if metadata is None else metadata
    if scalars:
        metadata[SCALARS] = json.dumps(json.loads(metadata[SCALARS]) | scalars).encode()
    columns = columns or dict(zip(batch.schema.names, batch.columns, strict=True))
    return pa.RecordBatch.from_pydict(columns).replace_schema_metadata(metadata)


def with_first(batch, name, value):
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns[name] = pa.array([value, *columns[name].to_pylist()[1:]], columns[name].type)
    return rebuilt(batch, columns)


ANYWHERE = {
    "no batch at all": lambda _: None,
    "a table instead of a batch": lambda batch: pa.Table.from_batches([batch]),
    "no metadata": lambda batch: rebuilt(batch, metadata={}),
    "another kind": lambda batch: rebuilt(batch, metadata={b"evenkeel.sketch": b"bloom filter"}),
    "scalars that are not JSON": lambda b: rebuilt(b, metadata={**b.schema.metadata, SCALARS: b"\xff{"}),
    "scalars that are no object": lambda b: rebuilt(b, metadata={**b.schema.metadata, SCALARS: b"[1]"}),
    "scalars that are missing": lambda b: rebuilt(b, metadata={**b.schema.metadata, SCALARS: b"{}"}),
    "a column that is missing": lambda batch: rebuilt(batch, {"key": batch.column(0)}),
    "a column of another type": lambda batch: rebuilt(
        batch, {name: batch.column(i).cast(pa.string()) for i, name in enumerate(batch.schema.names)}
    ),
    "a count that is null": lambda batch: with_first(batch, "count", None),
    "a count that is negative": lambda batch: with_first(batch, "count", -5),
}
IN_KEYED = {
    "a key that is there twice": lambda batch: with_first(batch, "key", batch["key"][1].as_py()),
    "an error that is negative": lambda batch: with_first(batch, "error", -1),
    "an error beyond the bound": lambda batch: with_first(batch, "error", 10**6),
    "a total below the counts": lambda batch: rebuilt(batch, total=3),
    "a total that is negative": lambda batch: rebuilt(batch, total=-3),
}
SPOILED = [
    *((name, what, spoil) for name in MAKERS for what, spoil in ANYWHERE.items()),
    *((name, what, spoil) for name in KEYED for what, spoil in IN_KEYED.items()),
    ("lossy counting", "an epsilon of 2", lambda batch: rebuilt(batch, epsilon=2.0)),
    ("lossy counting", "more merged than seen", lambda batch: rebuilt(batch, merged_total=10**6)),
    ("sliding lossy counting", "an epsilon of 2", lambda batch: rebuilt(batch, epsilon=2.0)),
    ("sliding lossy counting", "one counter", lambda batch: rebuilt(batch, counters=1)),
    ("sliding lossy counting", "no window", lambda batch: rebuilt(batch, window=0)),
    ("sliding lossy counting", "an unknown counter", lambda batch: with_first(batch, "counter", 10**6)),
    ("space-saving", "a capacity of 0", lambda batch: rebuilt(batch, capacity=0)),
    ("space-saving", "less capacity than entries", lambda batch: rebuilt(batch, capacity=5)),
    ("space-saving", "more capacity than entries", lambda batch: rebuilt(batch, capacity=50)),
    ("space-saving", "a bound that is negative", lambda batch: rebuilt(batch, bound=-1)),
    ("streaming histogram", "fewer bins than there are", lambda batch: rebuilt(batch, bins=2)),
    ("streaming histogram", "no bins", lambda batch: rebuilt(batch, bins=0)),
    ("streaming histogram", "a centre that is NaN", lambda batch: with_first(batch, "centre", np.nan)),
    ("streaming histogram", "centres that fall", lambda batch: with_first(batch, "centre", 1e19)),
    ("streaming histogram", "a least value above all", lambda batch: rebuilt(batch, minimum=1e300)),
]


@pytest.mark.parametrize(
    ("name", "spoil"),
    [pytest.param(name, spoil, id=f"{name} with {what}") for name, what, spoil in SPOILED],
)
def test_spoiled_data_is_refused(name, spoil):
    sketch = MAKERS[name]()
    sketch.observe(stream(8))
    with pytest.raises(CorruptDataError):
        type(sketch).from_arrow(spoil(sketch.to_arrow()))


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(lambda: LossyCounting(0), id="epsilon of 0"),
        pytest.param(lambda: LossyCounting(1.0), id="epsilon of 1"),
        pytest.param(lambda: LossyCounting(float("nan")), id="epsilon of NaN"),
        pytest.param(lambda: LossyCounting(0.1).frequent(0.05), id="delta below epsilon"),
        pytest.param(lambda: LossyCounting(0.1).frequent(1.5), id="delta above 1"),
        pytest.param(lambda: LossyCounting(0.1).heavy_keys(0), id="threshold of 0"),
        pytest.param(lambda: SlidingLossyCounting(1, 0.1, 3), id="window too short to cut"),
        pytest.param(lambda: SlidingLossyCounting(10, 0.1, 1), id="only one counter"),
        pytest.param(lambda: SlidingLossyCounting(10, -0.1), id="negative epsilon of a sliding counter"),
        pytest.param(lambda: SpaceSaving(0), id="capacity of 0"),
        pytest.param(lambda: SpaceSaving(2.5), id="capacity that is no integer"),
        pytest.param(lambda: SpaceSaving(True), id="capacity that is a bool"),
        pytest.param(lambda: SpaceSaving(2).frequent(-0.1), id="negative delta"),
        pytest.param(lambda: SpaceSaving(2).observe([1], [0]), id="weight of 0"),
        pytest.param(lambda: SpaceSaving(2).observe([1], [0.5]), id="weight that is no integer"),
        pytest.param(lambda: SpaceSaving(2).observe([1, 2], [1]), id="fewer weights than keys"),
        pytest.param(lambda: StreamingHistogram(0), id="no bins"),
        pytest.param(lambda: StreamingHistogram(3).observe([1.0, np.nan]), id="NaN in a histogram"),
        pytest.param(lambda: StreamingHistogram(3).observe([np.inf]), id="infinity in a histogram"),
        pytest.param(lambda: StreamingHistogram(3).observe(["a"]), id="text in a histogram"),
        pytest.param(lambda: StreamingHistogram(3).observe([1.0], [-1]), id="negative count in a histogram"),
        pytest.param(lambda: StreamingHistogram(3).uniform(0), id="histogram cut into no parts"),
    ],
)
def test_a_mistake_is_an_error_that_is_also_a_value_error(mistake):
    with pytest.raises(InvalidArgumentError) as caught:
        mistake()
    assert isinstance(caught.value, ValueError)


@every_keyed_sketch
@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(np.array([1.0]), id="floats"),
        pytest.param(np.array([1], np.uint64), id="unsigned longs"),
        pytest.param(np.array([True]), id="bools"),
        pytest.param(np.array(["a"]), id="text"),
        pytest.param(np.array([[1]]), id="a matrix"),
        pytest.param(np.int64(1), id="a scalar"),
    ],
)
def test_keys_that_are_no_int64_array_are_refused(make, keys):
    sketch = make()
    with pytest.raises(InvalidArgumentError, match="int64 array"):
        sketch.observe(keys)
    with pytest.raises(InvalidArgumentError, match="int64 array"):
        sketch.estimate(keys)
    assert sketch.total == 0


@every_keyed_sketch
def test_an_empty_sketch_answers(make):
    sketch = make()
    sketch.observe(np.empty(0, np.int64))
    assert (sketch.total, len(sketch), sketch.error_bound) == (0, 0, 0)
    assert sketch.estimate([5]).tolist() == [0]
    assert sketch.estimate(np.empty(0, np.int64)).tolist() == []
    assert [column.tolist() for column in sketch.heavy_keys(1)] == [[], [], []]
    assert [column.tolist() for column in sketch.frequent(0.5)] == [[], [], []]


@every_keyed_sketch
@pytest.mark.parametrize("key", [LONGS.min, -1, 0, 1, LONGS.max], ids="key {}".format)
def test_a_stream_of_one_key_is_counted_exactly(make, key):
    sketch = make()
    sketch.observe(np.full(50, key))
    assert sketch.estimate([key]).tolist() == [50]
    assert sketch.frequent(1.0).keys.tolist() == [key]


@every_keyed_sketch
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(lambda keys: keys.astype(np.int32), id="narrower integers"),
        pytest.param(lambda keys: keys.astype(np.uint16), id="unsigned shorts"),
        pytest.param(lambda keys: np.repeat(keys, 3)[::3], id="a strided array"),
        pytest.param(lambda keys: keys.astype(">i8"), id="the other byte order"),
        pytest.param(pa.array, id="an Arrow array"),
        pytest.param(lambda keys: keys.tolist(), id="a list"),
    ],
)
def test_any_array_of_integers_that_fits_is_taken(make, shape):
    keys = np.random.default_rng(9).integers(0, 300, 200)
    one, two = make(), make()
    one.observe(keys)
    two.observe(shape(keys))
    assert same(one, two)
