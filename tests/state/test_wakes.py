"""Keys that want to be called: exactly those, by time, whatever is written, deleted, moved or rebuilt."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from evenkeel.state import Delta, Selection, wakes_of, with_wakes, without_wakes
from evenkeel.state.wakes import NEVER
from state.state_world import SLOTS, Stage, keys_of, name_of, put

TIMES = st.one_of(st.integers(-5, 30), st.just(NEVER), st.just(-(2**63)))


@given(st.lists(st.tuples(st.none() | st.binary(max_size=9), TIMES)))
def test_times_travel_with_values(pairs):
    values = pa.array([value for value, _ in pairs], pa.large_binary())
    joined = with_wakes(values, np.array([time for _, time in pairs], np.int64))
    assert without_wakes(joined).to_pylist() == values.to_pylist()
    assert wakes_of(joined).tolist() == [NEVER if value is None else time for value, time in pairs]


def names(found) -> set:
    slots, hashes, hashes2, values = found
    assert len(values) == len(slots)
    return set(zip(slots.tolist(), hashes.tolist(), hashes2.tolist(), strict=True))


WRITES = st.dictionaries(st.integers(0, 30), st.none() | TIMES, max_size=8)


@pytest.mark.parametrize("warm", [True, False], ids=["working copy kept", "rebuilt for every batch"])
@given(st.lists(st.tuples(WRITES, st.sets(st.integers(0, SLOTS - 1), max_size=2)), min_size=1, max_size=8))
def test_exactly_the_keys_that_want_it_are_called(tmp_path_factory, warm, batches):
    place = tmp_path_factory.mktemp("wakes")
    store = Stage(fs.LocalFileSystem(), place / "checkpoint", place / "work").store()
    ref, wanted = None, {}
    for batch, (writes, dropped) in enumerate(batches):
        clock = 4 * batch
        with store.open(ref) as view:
            delta = Delta()
            delta.woken_until = clock
            slots = sorted(dropped)
            delta.drop(Selection.of(np.array(slots, np.int64)))
            left = {key: time for key, time in wanted.items() if name_of(key)[0] not in dropped}
            due = {key for key, time in left.items() if time <= clock}
            assert names(view.due(clock, delta)) == {name_of(key) for key in due}
            changed = dict.fromkeys(due, NEVER) | writes
            values = pa.array([None if time is None else b"v" for time in changed.values()], pa.large_binary())
            times = np.array([NEVER if time is None else time for time in changed.values()], np.int64)
            delta.put(*keys_of(list(changed)), with_wakes(values, times))
            wanted = {key: time for key, time in (left | changed).items() if time is not None}
            written = store.write_delta(view, delta, batch=batch, attempt="a")
            ref = store.write_manifest(view, written, batch=batch, attempt="a", snapshot=batch == 3)
        if not warm:
            store.forget()


def test_what_is_imported_counts_at_once(tmp_path):
    store = Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work").store()
    with store.open(None) as view:
        delta = Delta()
        values = with_wakes(pa.array([b"early", b"later", b"never"], pa.large_binary()), np.array([3, 9, NEVER]))
        delta.put(*keys_of([1, 2, 3]), values)
        assert names(view.due(5, delta)) == {name_of(1)}
        assert names(view.due(NEVER, delta)) == {name_of(1), name_of(2)}


def test_keys_that_are_adopted_are_called_where_they_come_to(tmp_path):
    beside = Stage(fs.LocalFileSystem(), tmp_path / "beside", tmp_path / "work-beside").store()
    with beside.open(None) as view:
        delta = Delta()
        delta.woken_until = 0
        put(delta, dict(enumerate(with_wakes(pa.array([b"v"] * 30, pa.large_binary()), np.arange(30)).to_pylist())))
        file = beside.write_delta(view, delta, batch=0, attempt="a")
        ref = beside.write_manifest(view, file, batch=0, attempt="a")
    here = Stage(fs.LocalFileSystem(), tmp_path / "checkpoint", tmp_path / "work").store()
    move = Selection.of([2, 5])
    mine = {key for key in range(30) if name_of(key)[0] in move.slots}
    with here.open(None) as view, beside.open(ref) as source:
        delta = Delta()
        delta.adopt(source, move)
        assert names(view.due(12, delta)) == {name_of(key) for key in mine if key <= 12}
        delta.woken_until = 12
        file = here.write_delta(view, delta, batch=0, attempt="a")
        ref = here.write_manifest(view, file, batch=0, attempt="a")
    with here.open(ref) as view:
        assert names(view.due(20, Delta())) == {name_of(key) for key in mine if key <= 20}
        assert view.totals().total_keys == len(mine)
