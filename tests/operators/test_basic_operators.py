"""Operators beside plain Python: any cut of a stream into batches gives the same states and results."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, KeyFailedError, UnsupportedTypeError
from evenkeel.hashing import hash_keys
from evenkeel.operators import Count, Groups, PerKey, Sum

ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None, ""]), st.none() | st.integers(-9, 9)), max_size=30)
SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])


def groups_of(rows) -> Groups:
    table = pa.Table.from_pylist([{"key": key, "value": value} for key, value in rows], SCHEMA)
    return Groups.of(table, ["key"], hash_keys(table["key"]), hash_keys(table["key"], seed=9))


def run(operator, batches) -> tuple[dict, list]:
    """Keep states by key from batch to batch, as the engine does."""
    schema = operator.state_schema(SCHEMA)
    states: dict = {}
    results = []
    for rows in batches:
        groups = groups_of(rows)
        keys = groups.keys["key"].to_pylist()
        nothing = dict.fromkeys(schema.names)
        before = pa.Table.from_pylist([states.get(key, nothing) for key in keys], schema)
        update = operator.update(groups, before, np.array([key in states for key in keys], bool))
        states |= dict(zip(keys, update.states.to_pylist(), strict=True))
        key_of = range(len(keys)) if update.key_of_outputs is None else update.key_of_outputs.tolist()
        results += [(keys[i], row) for i, row in zip(key_of, update.outputs.to_pylist(), strict=True)]
    return states, results


@given(ROWS)
def test_tuples_are_told_apart_by_their_keys(rows):
    groups = groups_of(rows)
    keys = groups.keys["key"].to_pylist()
    assert len(set(keys)) == len(keys) == len(groups)
    assert [keys[i] for i in groups.key_of] == [key for key, _ in rows]
    assert groups.hashes.tolist() == sorted(groups.hashes.tolist())
    by_key, starts = groups.rows_by_key()
    for i, key in enumerate(keys):
        mine = by_key.slice(starts[i], starts[i + 1] - starts[i]).to_pylist()
        assert [(row["key"], row["value"]) for row in mine] == [row for row in rows if row[0] == key]


def test_keys_that_share_their_first_hash_stay_apart():
    table = pa.table({"key": ["x", "y", "x"]})
    groups = Groups.of(table, ["key"], np.array([5, 5, 5]), np.array([1, 2, 1]))
    assert groups.keys["key"].to_pylist() == ["x", "y"]
    assert groups.key_of.tolist() == [0, 1, 0]


@given(st.lists(ROWS, max_size=4))
def test_counting(batches):
    counts: dict = defaultdict(int)
    for rows in batches:
        for key, _ in rows:
            counts[key] += 1
    states, results = run(Count(), batches)
    assert {key: state["count"] for key, state in states.items()} == counts
    assert {key: row["count"] for key, row in results} == counts


@given(st.lists(ROWS, max_size=4))
def test_adding_up(batches):
    sums: dict = {}
    for rows in batches:
        for key, value in rows:
            before = sums.setdefault(key, None)
            sums[key] = before if value is None else (before or 0) + value
    states, _ = run(Sum("value"), batches)
    assert {key: state["sum"] for key, state in states.items()} == sums


def test_only_numbers_that_are_there_can_be_added_up():
    with pytest.raises(InvalidArgumentError, match="no column called 'valeu'"):
        Sum("valeu").state_schema(SCHEMA)
    with pytest.raises(UnsupportedTypeError, match="takes whole numbers and floats"):
        Sum("key").state_schema(SCHEMA)
    assert Sum("x").state_schema(pa.schema([("x", pa.float32())])).field("sum").type == pa.float64()


@given(st.lists(ROWS, max_size=4))
def test_a_function_per_key(batches):
    kept = pa.schema([("seen", pa.string())])

    def remember(key, rows, state):
        assert all(row["key"] == key[0] for row in rows)
        seen = (state["seen"] if state else "") + "".join(f"{row['value']};" for row in rows)
        return {"seen": seen}, [{"seen": seen}] * (len(rows) % 3)

    wanted: dict = defaultdict(str)
    for rows in batches:
        for key, value in rows:
            wanted[key] += f"{value};"
    states, _ = run(PerKey(remember, state=kept, output=kept), batches)
    assert {key: state["seen"] for key, state in states.items()} == wanted


def test_a_function_that_fails_names_its_key():
    def fail(key, rows, state):
        return {}[key]

    with pytest.raises(KeyFailedError, match="KeyError") as caught:
        run(PerKey(fail, state=SCHEMA, output=SCHEMA), [[("a", 1)]])
    assert caught.value.key == ("a",)
