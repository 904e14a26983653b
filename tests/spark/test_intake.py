"""Tuples that are lifted as they come give what all of them give at once."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.operators import Count, Moment, Tumbling
from evenkeel.operators.split import Partial
from evenkeel.spark import intake
from evenkeel.spark.columns import ORDER
from evenkeel.spark.combine import TUPLES, Lift
from evenkeel.spark.intake import Intake
from evenkeel.spark.times import LATE, TIME
from operators.harness import groups_of

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])
CUTS = st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=6), max_size=6)


def batches(cuts: list[list[str | None]]) -> list[pa.RecordBatch]:
    return [pa.record_batch([keys, list(range(len(keys)))], schema=SCHEMA) for keys in cuts]


@pytest.mark.parametrize("operator", [Count(), Partial(Count())], ids=["whole", "first half"])
@given(cuts=CUTS, at_once=st.integers(1, 8))
def test_states_lifted_on_the_way_merge_to_those_of_all_tuples(operator, cuts, at_once):
    lift = Lift(operator, ("key",), SCHEMA, None, Moment())
    taken = Intake(SCHEMA, lift)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "_AT_ONCE", at_once)
        for batch in batches(cuts):
            taken.add(batch)
        found = taken.rows()
    assert found.schema == lift.form.rows
    groups = groups_of(found)
    none = lift.form.operator.state_schema(found.schema).empty_table().take(pa.nulls(len(groups), pa.int64()))
    update = lift.form.operator.update(groups, none, none)
    wanted = groups_of(pa.Table.from_batches(batches(cuts), SCHEMA))
    assert groups.keys.to_pylist() == wanted.keys.to_pylist()
    assert update.states["count"].to_pylist() == wanted.counts.tolist()
    assert sum(found[TUPLES].to_pylist()) == sum(map(len, cuts))


def test_no_more_states_wait_than_twice_as_many_as_there_are_keys(monkeypatch):
    monkeypatch.setattr(intake, "_AT_ONCE", 1)
    taken = Intake(SCHEMA, Lift(Count(), ("key",), SCHEMA, None, Moment()))
    for batch in batches([["a", "b"], ["b", "c"], ["c", "a"]] * 50):
        taken.add(batch)
    found = taken.rows()
    assert found.num_rows <= 2 * 3
    assert sum(found[TUPLES].to_pylist()) == 300


def test_newest_times_and_late_tuples_are_gathered_with_the_states():
    """Of a window that is over, tuples come late; the newest time of a key is that of all its tuples."""
    schema = pa.schema([("key", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
    lift = Lift(Tumbling(Count(), "10 seconds"), ("key",), schema, "ts", Moment(watermark=15_000_000))
    seconds = [[3, 12], [21, 18], [2, 14], [30, 17]]
    parts = [
        lift(pa.table([["a", "b"], pa.array([1_000_000 * second for second in two], schema.types[1])], schema=schema))[
            0
        ]
        for two in seconds
    ]
    gathered = lift.gather(pa.concat_tables(parts))
    assert dict(zip(gathered["key"].to_pylist(), gathered[TIME].to_pylist(), strict=True)) == {
        "a": 30_000_000,
        "b": 18_000_000,
    }
    assert sum(gathered[LATE].to_pylist()) == 2
    assert gathered[TUPLES].to_pylist() == [4, 4]


def test_tuples_come_in_the_order_of_their_arrival():
    taken = Intake(SCHEMA, ordered=True)
    for turns, values in (([5, 1], [50, 10]), ([0, 3], [0, 30])):
        taken.add(pa.record_batch([["a", "a"], values, turns], schema=SCHEMA.append(pa.field(ORDER, pa.int64()))))
    assert taken.rows()["value"].to_pylist() == [0, 10, 30, 50]
    assert taken.rows().schema == SCHEMA


@dataclass(frozen=True)
class Picky(Count):
    """Does not like a key."""

    def lift(self, groups):
        if "b" in groups.keys["key"].to_pylist():
            raise ValueError("not b")
        return super().lift(groups)


def test_a_failure_on_the_way_is_told_at_the_end_and_nothing_is_lifted_after_it(monkeypatch):
    monkeypatch.setattr(intake, "_AT_ONCE", 1)
    taken = Intake(SCHEMA, Lift(Picky(), ("key",), SCHEMA, None, Moment()))
    for batch in batches([["a"], ["b"], ["c"]]):
        taken.add(batch)
    with pytest.raises(ValueError, match="not b"):
        taken.rows()


def test_nothing_came():
    assert Intake(SCHEMA).rows() == SCHEMA.empty_table()
    lift = Lift(Count(), ("key",), SCHEMA, None, Moment())
    assert Intake(SCHEMA, lift).rows() == lift.form.rows.empty_table()
