"""A routing table on Spark: rows land in exactly the partition that the table names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from evenkeel.hashing import hash_keys
from evenkeel.routing import Ragged, RoutingTable
from evenkeel.spark.columns import at_addresses, channel_of, with_channel
from evenkeel.spark.homes import PLACE, Homes
from evenkeel.spark.placement import placement_values

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("channels", [1, 2, 7, 64])
def test_placement_values_are_those_nearest_to_0_that_spark_hashes_to_their_channel(spark, channels):
    values = placement_values(spark, channels)
    most = max(max(above, -below) for above, below in values)
    everything = spark.range(-most, most + 1).select(
        F.col("id").cast("int").alias("v"), F.pmod(F.hash(F.col("id").cast("int")), F.lit(channels)).alias("c")
    )
    hashed = [[row["v"] for row in everything.where(f"c = {channel}").collect()] for channel in range(channels)]
    assert values == [(min(v for v in all_ if v >= 0), max(v for v in all_ if v < 0)) for all_ in hashed]


def words(spark) -> tuple[list[str | None], object]:
    rng = np.random.default_rng(0)
    values = [None if n == 0 else f"w{n}" for n in rng.zipf(1.5, 3000) % 200]
    return values, spark.createDataFrame(pa.table({"word": values}))


def some_table() -> RoutingTable:
    slots = np.random.default_rng(1).integers(0, 5, 100).astype(np.int32)
    return RoutingTable(
        slots,
        5,
        pin_hashes=hash_keys(["w1", "w3", None]),
        pin_channels=[4, 0, 2],
        split_hashes=hash_keys(["w2"]),
        split_channels=Ragged.of([[3, 1]]),
    )


def test_spark_routes_as_the_table_does(spark):
    _, frame = words(spark)
    table = some_table()
    routed = with_channel(frame, ["word"], table).toArrow()
    assert routed.column_names == ["word", "channel"]
    home = table.home(routed["word"])
    channel = routed["channel"].to_numpy()
    split = np.array(routed["word"].to_pylist(), object) == "w2"
    np.testing.assert_array_equal(channel[~split], home[~split])
    assert set(channel[split].tolist()) == {1, 3}


def test_where_a_key_goes_can_be_said_of_its_group(spark):
    _, frame = words(spark)
    table = some_table().evolve(split_hashes=[], split_channels=Ragged.empty(0))
    place = channel_of(("word",), table)
    grouped = frame.groupBy("word").agg(F.count("*").alias("n"), F.expr(f"{place} AS channel")).toArrow()
    np.testing.assert_array_equal(grouped["channel"].to_numpy(), table.route(grouped["word"]))
    assert sum(grouped["n"].to_pylist()) == 3000


def test_a_table_without_listed_keys_needs_no_join(spark):
    values, frame = words(spark)
    table = RoutingTable.even(7)
    routed = with_channel(frame, ["word"], table)
    assert "Join" not in routed._jdf.queryExecution().toString()
    np.testing.assert_array_equal(routed.toArrow()["channel"].to_numpy(), table.route(values))


def test_a_channel_is_told_its_address(spark):
    frame = spark.createDataFrame(pa.table({"channel": pa.array([2, 0, 1, 2], pa.int32())}))
    found = frame.selectExpr(f"{at_addresses('channel', (7, 5, -3))} AS address").toArrow()
    assert found["address"].to_pylist() == [-3, 7, 5, -3]


@pytest.mark.parametrize("pins", [1, 200, 2048, 2049])
def test_pins_are_found_whether_few_or_many(spark, pins):
    values = pa.array([f"w{number}" for number in range(2500)] + [None])
    frame = spark.createDataFrame(pa.table({"word": values}))
    chosen = hash_keys(values)[:pins]
    table = RoutingTable.even(5).with_pins(chosen, np.arange(pins) % 5)
    routed = with_channel(frame, ["word"], table, "channel", [10, 11, 12, 13, 14])
    assert ("Join" in routed._jdf.queryExecution().toString()) == (pins > 2048)
    np.testing.assert_array_equal(routed.toArrow()["channel"].to_numpy(), 10 + table.route(values))


def test_composite_keys_are_hashed_in_the_order_given(spark):
    frame = spark.createDataFrame(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}))
    table = RoutingTable.even(9)
    routed = with_channel(frame, ["b", "a"], table).toArrow()
    expected = table.route(hash_keys(["x", "y", "z"], [1, 2, 3]))
    assert routed["channel"].to_pylist() == expected.tolist()


def test_rows_land_in_the_partition_of_their_channel(spark):
    values, frame = words(spark)
    table = some_table()
    addresses = [above for above, _ in placement_values(spark, 5)]
    placed = with_channel(frame, ["word"], table, "place", addresses).repartition(5, "place")
    rows = placed.select("place", F.spark_partition_id().alias("partition")).toArrow()
    assert rows.num_rows == len(values)
    assert rows["place"].to_pylist() == [addresses[partition] for partition in rows["partition"].to_pylist()]


def test_a_task_finds_its_home_row_as_often_as_it_expects_also_when_one_host_is_left(spark):
    alone = Homes.form(spark, [1.0, 1.0], {})
    spread = replace(alone, executors=frozenset({"here:1", "there:2"}))
    left = spread.without(frozenset({"there:2"}), [1.0, 1.0])
    for homes, votes in ((alone, 1), (spread, 2), (left, 1)):
        assert homes.votes == votes
        tuples = spark.range(4).selectExpr(f"CAST(id AS INT) AS {PLACE}").repartition(2, PLACE)
        assert homes.with_rows(tuples, [PLACE]).where(f"{PLACE} < 0").count() == 2 * votes
