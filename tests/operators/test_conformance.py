"""What every operator must do, checked on samples of each; operators are found by themselves."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pickle
import pkgutil
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel.operators
from evenkeel.operators import Groups, Mergeable, Operator, RowCodec, fold
from operators.harness import groups_of, run
from operators.samples import SAMPLES, Sample


def every_operator() -> list[type[Operator]]:
    """Concrete operators of the package, in whichever module they are."""
    for module in pkgutil.walk_packages(evenkeel.operators.__path__, "evenkeel.operators."):
        if not module.name.rpartition(".")[2].startswith("_kernels"):
            importlib.import_module(module.name)
    found, waiting = [], [Operator]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        is_ours = kind.__module__.startswith("evenkeel.operators.") and not kind.__name__.startswith("_")
        if is_ours and not inspect.isabstract(kind):
            found.append(kind)
    return sorted(set(found), key=lambda kind: kind.__name__)


some = settings(max_examples=6)


def on_all(test, kind=Operator):
    """Run a check on every sample, unless the sample says why it does not hold."""
    params = [
        pytest.param(
            sample,
            id=f"{operator.__name__} {number}",
            marks=[pytest.mark.skip(reason=why) for check, why in sample.except_for.items() if check == test.__name__],
        )
        for operator, samples in SAMPLES.items()
        for number, sample in enumerate(samples, 1)
        if isinstance(sample.operator, kind)
    ]
    return pytest.mark.parametrize("sample", params)(test)


def on_mergeable(test):
    """The same for those that merge."""
    return on_all(test, Mergeable)


@pytest.mark.parametrize("kind", every_operator(), ids=lambda kind: kind.__name__)
def test_there_is_a_sample(kind):
    assert SAMPLES.get(kind), f"{kind.__module__}.{kind.__name__} has no sample: add one in tests/operators/samples.py."
    assert all(type(sample.operator) is kind for sample in SAMPLES[kind])


def play(sample: Sample, batches: list[pa.Table]):
    return run(sample.operator, batches, event_time=sample.event_time, delay=sample.delay, flush=True)


@on_all
def test_it_is_a_value_that_travels(sample):
    operator = sample.operator
    assert is_dataclass(operator)
    there = pickle.loads(pickle.dumps(operator))
    assert repr(there) == repr(operator)
    assert there == operator
    assert type(operator).name == operator.name
    with pytest.raises(FrozenInstanceError):
        setattr(operator, fields(operator)[0].name if fields(operator) else "name", None)


@on_all
def test_its_schemas_fit_together(sample):
    operator, schema = sample.operator, sample.schema
    assert set(operator.columns(schema)) <= set(schema.names)
    RowCodec(operator.state_schema(schema))  # raises for what cannot be kept
    outputs = operator.output_schema(schema)
    assert len(set(outputs.names)) == len(outputs.names)
    assert "key" not in outputs.names
    assert sample.event_time is not None or not operator.needs_event_time


@on_all
@given(data=st.data())
@some
def test_any_cut_into_batches_gives_the_same(sample, data):
    rows = data.draw(sample.rows())
    cuts = sorted(data.draw(st.lists(st.integers(0, rows.num_rows), max_size=3)))
    edges = [0, *cuts, rows.num_rows]
    pieces = [rows.slice(a, b - a) for a, b in itertools.pairwise(edges)]
    whole, cut = play(sample, [rows]), play(sample, pieces)
    if sample.any_cut == "last":
        assert sample.same(whole.last(), cut.last())
        assert sample.same(whole.states, cut.states)
    if sample.any_cut == "all":
        assert whole.late == cut.late
        assert sample.same(sorted(whole.outputs, key=repr), sorted(cut.outputs, key=repr))


@on_all
@given(data=st.data())
@some
def test_keys_do_not_see_each_other(sample, data):
    batches = data.draw(st.lists(sample.rows(15), min_size=1, max_size=2))
    mine = [rows.filter(pa.compute.equal(rows["key"], "a").fill_null(False)) for rows in batches]
    every, one = play(sample, batches), play(sample, mine)
    assert sample.same(every.of("a"), one.of("a"))
    assert sample.same(every.states.get(("a",)), one.states.get(("a",)))


@on_all
@given(data=st.data())
@some
def test_it_leaves_its_input_alone_and_says_the_same_again(sample, data):
    operator, rows = sample.operator, data.draw(sample.rows())
    groups = groups_of(rows, event_time=sample.event_time)
    schema = operator.state_schema(sample.schema)
    states = pa.Table.from_pylist([{}] * len(groups), schema)
    known = np.zeros(len(groups), bool)
    given_arrays = [groups.hashes, groups.hashes2, groups.key_of, known]
    given_arrays += [groups.times] if groups.times is not None else []
    copies = [array.copy() for array in given_arrays]
    before = (rows.to_pylist(), states.to_pylist())
    first, second = (operator.update(groups, states, known) for _ in range(2))
    assert sample.same((rows.to_pylist(), states.to_pylist()), before)
    assert all(np.array_equal(array, copy) for array, copy in zip(given_arrays, copies, strict=True))
    assert sample.same(first.states.to_pylist(), second.states.to_pylist())
    assert sample.same(first.outputs.to_pylist(), second.outputs.to_pylist())


@on_all
@given(data=st.data())
@some
def test_states_survive_as_bytes(sample, data):
    operator = sample.operator
    groups = groups_of(data.draw(sample.rows()), event_time=sample.event_time)
    codec = RowCodec(operator.state_schema(sample.schema))
    nothing = pa.Table.from_pylist([{}] * len(groups), codec.schema)
    states = operator.update(groups, nothing, np.zeros(len(groups), bool)).states
    assert sample.same(codec.decode(codec.encode(states)).to_pylist(), states.to_pylist())


@on_all
def test_an_empty_batch_gives_nothing(sample):
    outcome = play(sample, [sample.schema.empty_table()] * 2)
    assert (outcome.states, outcome.outputs, outcome.late) == ({}, [], 0)


def parts_of(groups: Groups, part_of: np.ndarray, parts: int) -> list[Groups]:
    """Deal tuples out; every part knows all keys."""
    return [
        replace(
            groups,
            rows=groups.rows.filter(pa.array(part_of == part)),
            key_of=groups.key_of[part_of == part],
            times=None if groups.times is None else groups.times[part_of == part],
        )
        for part in range(parts)
    ]


@on_mergeable
@given(data=st.data())
@some
def test_partial_states_merge(sample, data):
    operator = sample.operator
    assert operator.merges
    groups = groups_of(data.draw(sample.rows()), event_time=sample.event_time)
    size = groups.rows.num_rows
    part_of = np.array(data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), np.int64)
    whole = operator.lift(groups)
    schema = operator.state_schema(sample.schema)
    assert whole.schema.equals(schema)
    x, y, z = (operator.lift(part) for part in parts_of(groups, part_of, 3))
    nothing = pa.Table.from_pylist([{}] * len(groups), schema)

    def same(left: pa.Table, right: pa.Table) -> bool:
        return sample.same(left.to_pylist(), right.to_pylist())

    together = operator.merge(operator.merge(x, y), z)
    assert together.schema.equals(schema)
    assert same(together, whole), "the lift of a whole is not the merge of the lifts of its parts"
    assert same(operator.merge(x, operator.merge(y, z)), together), "not associative"
    assert same(operator.merge(x, y), operator.merge(y, x)), "not commutative"
    assert same(operator.merge(x, nothing), x), "nulls on the right change a state"
    assert same(operator.merge(nothing, x), x), "nulls on the left change a state"
    folded = fold(operator, pa.concat_tables([x, y, z]), np.tile(np.arange(len(groups)), 3), len(groups))
    assert same(folded, together), "folding is not merging one after the other"
    results, key_of = operator.results(together)
    assert results.schema.equals(operator.output_schema(sample.schema))
    assert results.num_rows == (len(groups) if key_of is None else len(key_of))
