"""What a batch writes: in order, each key once, whenever somebody looks at it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.state import Delta
from evenkeel.state.identity import unpack

NAMES = st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 2**32, -1]), st.integers(0, 2))
WRITES = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=3), st.none() | st.binary(max_size=2)), max_size=8)


def put(delta, writes, knows_previous):
    slots, hashes, hashes2 = (np.array([name[place] for name, _, _ in writes], np.int64) for place in range(3))
    values, previous = (pa.array([write[place] for write in writes], pa.binary()) for place in (1, 2))
    delta.put(slots, hashes, hashes2, values, previous if knows_previous else None)


@given(st.lists(st.tuples(WRITES, st.booleans(), st.booleans()), max_size=5))
def test_the_last_write_of_a_key_counts_whoever_looked_before(puts):
    delta = Delta()
    wanted, seen_first = {}, {}
    for writes, knows_previous, looks in puts:
        put(delta, writes, knows_previous)
        if looks:
            delta.pending()
        for name, value, previous in writes:
            wanted[name] = value
            size = -1 if not knows_previous else 0 if previous is None else 20 + len(previous)
            seen_first.setdefault(name, size)
    pending = delta.pending()
    names = list(zip(*(part.tolist() for part in unpack(pending.keys)), strict=True))
    assert names == sorted(wanted)
    assert pending.values.to_pylist() == [wanted[name] for name in names]
    assert pending.previous_bytes.tolist() == [seen_first[name] for name in names]
    assert bool(delta) == bool(wanted)
    assert delta.pending() is pending
