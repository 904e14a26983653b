"""Aggregates beside plain Python, over every type they take."""

from __future__ import annotations

import datetime as dt
import math
import statistics
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators import Count, PerKey
from evenkeel.operators.aggregate import Aggregate
from evenkeel.operators.aggregates import ApproxDistinct, CountOf, First, Last, Max, Mean, Min, Sum, Variance
from evenkeel.operators.windows import Tumbling
from operators.harness import run, run_split
from operators.samples import near

LONG = 2**63
ORDERED = {
    pa.bool_(): st.booleans(),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int64(): st.integers(-LONG, LONG - 1),
    pa.uint64(): st.integers(0, 2 * LONG - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.timezone.utc)),
    pa.time64("us"): st.times(),
    pa.decimal128(20, 3): st.decimals(-(10**15), 10**15, places=3),
    pa.string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=3),
}


def place(value):
    """The order of Spark, −0.0 before 0.0."""
    if isinstance(value, float):
        return (math.isnan(value), 0 if math.isnan(value) else value, math.copysign(1, value))
    return value.encode() if isinstance(value, str) else value


@st.composite
def streams(draw, values, kind):
    """Batches of (key, value, time), and all their rows."""
    row = st.tuples(st.sampled_from("ab"), st.none() | values, st.none() | st.integers(0, 5))
    batches = draw(st.lists(st.lists(row, max_size=8), min_size=1, max_size=3))
    schema = pa.schema([("key", pa.string()), ("value", kind), ("time", pa.int64())])
    tables = [
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema) for rows in batches
    ]
    return tables, [row for rows in batches for row in rows]


def by_key(rows):
    return {key: [row for row in rows if row[0] == key] for key in {row[0] for row in rows}}


@pytest.mark.parametrize("kind", ORDERED, ids=str)
@settings(max_examples=20)
@given(data=st.data())
def test_the_least_greatest_earliest_and_latest_of_any_type(kind, data):
    tables, rows = data.draw(streams(ORDERED[kind], kind))
    several = Aggregate(low=Min("value"), high=Max("value"), early=First("value"), late=Last("value"))
    found = run(several, tables, event_time="time").last()
    assert {key for (key,) in found} == by_key(rows).keys()
    for key, mine in by_key(rows).items():
        values = sorted((value for _, value, _ in mine if value is not None), key=place)
        timed = sorted(
            ((t, v) for _, v, t in mine if v is not None and t is not None), key=lambda x: (x[0], place(x[1]))
        )
        wanted = {
            "low": values[0] if values else None,
            "high": values[-1] if values else None,
            "early": timed[0][1] if timed else None,
            "late": timed[-1][1] if timed else None,
        }
        got = found[key,]
        assert near(got, wanted, tolerance=0), f"{got} is not {wanted}"
        assert [math.copysign(1, v) for v in got.values() if v == 0 and isinstance(v, float)] == [
            math.copysign(1, v) for v in wanted.values() if v == 0 and isinstance(v, float)
        ]


@settings(max_examples=40)
@given(streams(st.integers(-LONG, LONG - 1), pa.int64()))
def test_long_sums_wrap_around_and_counts_leave_nulls_out(stream):
    tables, rows = stream
    found = run(Aggregate(total=Sum("value"), n=Count(), some=CountOf("value")), tables).last()
    for key, mine in by_key(rows).items():
        values = [value for _, value, _ in mine if value is not None]
        total = (sum(values) + LONG) % (2 * LONG) - LONG if values else None
        assert found[key,] == {"total": total, "n": len(mine), "some": len(values)}


@settings(max_examples=40)
@given(streams(st.floats(-1e6, 1e6), pa.float64()))
def test_sums_means_and_variances_of_floats(stream):
    tables, rows = stream
    found = run(Aggregate(total=Sum("value"), mean=Mean("value"), spread=Variance("value")), tables).last()
    for key, mine in by_key(rows).items():
        values = [value for _, value, _ in mine if value is not None]
        wanted = {
            "total": math.fsum(values) if values else None,
            "mean": math.fsum(values) / len(values) if values else None,
            "spread": statistics.variance(values) if len(values) > 1 else None,
        }
        assert all(
            (found[key,][name] is None) == (value is None)
            and (value is None or math.isclose(found[key,][name], value, rel_tol=1e-9, abs_tol=1e-6))
            for name, value in wanted.items()
        )


def test_variance_far_from_zero_keeps_its_digits():
    values = [1e9 + x for x in (4.0, 7.0, 13.0, 16.0)]
    tables = [pa.table({"key": ["a"] * 2, "value": values[i : i + 2]}) for i in (0, 2)]
    assert run(Variance("value"), tables).last()["a",]["variance"] == pytest.approx(30.0, rel=1e-12)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_floats_that_are_no_numbers_make_the_rest_so(value):
    tables = [pa.table({"key": ["a"] * 2, "value": [1.0, 2.0]}), pa.table({"key": ["a"], "value": [value]})]
    found = run(Aggregate(total=Sum("value"), mean=Mean("value"), spread=Variance("value")), tables).last()["a",]
    assert near([found["total"], found["mean"]], [value, value])
    assert math.isnan(found["spread"])


def test_few_different_values_are_counted_exactly():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 400, 20_000)
    table = pa.table({"key": np.zeros(len(values), np.int64), "value": values})
    found = run(ApproxDistinct("value"), [table.slice(0, 7_000), table.slice(7_000)])
    assert found.last()[0,]["approx_distinct"] == len(set(values.tolist()))


@pytest.mark.parametrize("error", [0.02, 0.05, 0.2])
def test_many_different_values_are_counted_within_the_error(error):
    keys, each = 100, 8_000
    table = pa.table({"key": np.repeat(np.arange(keys), each), "value": np.arange(keys * each).astype(str)})
    found = run_split(ApproxDistinct("value", error), [table], channels=3).last()
    misses = np.array([row["approx_distinct"] / each - 1 for row in found.values()])
    assert np.sqrt((misses**2).mean()) < 1.3 * error  # 100 keys: five standard deviations of it above
    assert abs(misses.mean()) < 5 * error / math.sqrt(keys)


def test_the_estimate_takes_8_bytes_per_value_up_to_a_bound():
    operator = ApproxDistinct("value", error=0.1)
    table = pa.table({"key": ["few"] * 3 + ["many"] * 5_000, "value": np.arange(5_003)})
    states = run(operator, [table]).states
    assert len(states["few",]["hashes"]) == 3
    assert len(states["many",]["hashes"]) == operator.kept == 102


@settings(max_examples=30)
@given(streams(st.integers(-9, 9), pa.int64()), st.integers(1, 3), st.integers(1, 3), st.integers(0, 9))
def test_split_keys_give_what_whole_ones_do(stream, channels, every, seed):
    operator = Aggregate(
        n=Count(), total=Sum("value"), low=Min("value"), end=Last("value"), many=ApproxDistinct("value")
    )
    whole = run(operator, stream[0], event_time="time")
    split = run_split(operator, stream[0], event_time="time", channels=channels, every=every, seed=seed)
    assert split.states == whole.states
    assert split.last() == whole.last()


SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64()), ("list", pa.list_(pa.int64()))])


@pytest.mark.parametrize("kind", [ApproxDistinct, CountOf, First, Last, Max, Mean, Min, Sum, Variance])
def test_a_column_that_is_not_there_is_named_with_a_hint(kind):
    with pytest.raises(UnknownNameError, match=r"'valeu'.*Did you mean 'value'.*key"):
        kind("valeu").state_schema(SCHEMA)


@pytest.mark.parametrize("operator", [Sum("key"), Mean("key"), Variance("key"), Min("list"), Last("list")], ids=repr)
def test_types_that_make_no_sense_are_refused(operator):
    with pytest.raises(UnsupportedTypeError, match=f"'{operator.column}'.*{type(operator).__name__} takes"):
        operator.state_schema(SCHEMA)


def test_decimals_are_said_to_need_a_cast():
    with pytest.raises(UnsupportedTypeError, match="Cast it"):
        Sum("price").state_schema(pa.table({"price": [Decimal("1.5")]}).schema)


@pytest.mark.parametrize("error", [0, 0.0001, 0.6, -1])
def test_errors_out_of_reach_are_refused(error):
    with pytest.raises(InvalidArgumentError, match=r"from 0\.001 to 0\.5"):
        ApproxDistinct("value", error)


def test_only_mergeable_operators_aggregate():
    with pytest.raises(InvalidArgumentError, match="nothing to compute"):
        Aggregate()
    with pytest.raises(InvalidArgumentError, match="'f' must be a mergeable operator"):
        Aggregate(f=PerKey(print, state=SCHEMA, output=SCHEMA))
    with pytest.raises(InvalidArgumentError, match="'w' must be a mergeable operator that waits for no clock"):
        Aggregate(w=Tumbling(Count(), "1 hour"))


def test_names_and_columns_are_those_asked_for():
    operator = Aggregate(n=Count(), total=Sum("value"), again=Aggregate(low=Min("value"), high=Max("key")))
    assert operator.columns(SCHEMA) == ["value", "key"]
    assert operator.output_schema(SCHEMA).names == ["n", "total", "again_low", "again_high"]
    assert not operator.needs_event_time
    assert Aggregate(end=Last("value")).needs_event_time
    table = pa.table({"key": ["a", "b"], "value": [1, 2], "list": [[], []]})
    assert run(operator, [table]).of("b") == [{"n": 1, "total": 2, "again_low": 2, "again_high": "b"}]
