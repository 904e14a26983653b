"""Routers in replay: loads and memory are those of routing tuple by tuple."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.metrics import average_imbalance, average_imbalance_fraction, routing_agreement
from evenkeel.routing import ROUTERS, RoutingTable, make_router
from evenkeel.routing.routers import PartialKeyGrouping
from evenkeel.sim import Planned, Routed, Sourced, Zipf, agreement, ordering, replay
from evenkeel.sim.runs import Pairs
from sim.literal import histograms, loads_tuple_by_tuple, streams

STREAM = Zipf(200, 1.1, tuples=900)


def in_order(workload, windows):
    """All tuples of the first windows, window by window: hashes and sources."""
    for window in islice(workload.windows(), windows):
        parts = list(window.tuples())
        hashes = np.concatenate([part.hashes for part in parts])
        yield hashes, None if parts[0].sources is None else np.concatenate([part.sources for part in parts])


@pytest.mark.parametrize("name", ROUTERS)
@pytest.mark.parametrize("piece", [100, 1 << 20], ids=["in pieces", "in one piece"])
def test_loads_are_those_of_routing_one_tuple_at_a_time(name, piece, monkeypatch):
    monkeypatch.setattr(ordering, "PIECE", piece)
    workload = Sourced(STREAM, 3, "turn")
    done = replay(workload, {name: Routed(name)}, channels=5, windows=3, keep_loads=True)
    router = make_router(name, 5, sources=3)
    if name == "off_greedy":
        router.fit(np.concatenate([hashes for hashes, _ in in_order(workload, 3)]))
    keys, running = set(), np.zeros(5)
    for number, (hashes, sources) in enumerate(in_order(workload, 3)):
        loads, _ = loads_tuple_by_tuple(router, hashes.tolist(), sources)
        assert done.loads[name][number].tolist() == loads
        running += loads
        keys |= set(hashes.tolist())
        row = done.table.slice(number, 1).to_pylist()[0]
        assert row["running_imbalance"] == pytest.approx(running.max() - running.mean())
        if router.keeps_keys_together:
            assert row["pairs"] == len(keys)


@given(streams)
@settings(max_examples=40)
def test_pairs_are_counted_exactly_with_and_without_handing_them_on(windows):
    workload = histograms(windows)
    strategies = {"pkg": Routed("pkg"), "flushed": Routed("pkg", flush_every=2), "hash": Routed("key_grouping"),
                  "hash flushed": Routed("key_grouping", flush_every=2)}  # fmt: skip
    done = replay(workload, strategies, channels=4)
    router, hashing = make_router("pkg", 4), make_router("key_grouping", 4)
    pairs, held, keys, keys_held = set(), set(), set(), set()
    for number, (window, tuples) in enumerate(zip(workload.windows(), windows, strict=True)):
        for part in window.tuples():
            routed = set(zip(part.hashes.tolist(), router.route(part.hashes).tolist(), strict=True))
            pairs |= routed
            held |= routed
        keys |= set(tuples)
        keys_held |= set(tuples)
        hashing.route(np.array(tuples, np.int64))
        row = {row["strategy"]: row for row in done.table.to_pylist() if row["window"] == number}
        assert row["pkg"]["pairs"] == len(pairs)
        assert row["flushed"]["pairs"] == len(held)
        assert row["hash"]["pairs"] == len(keys)
        assert row["hash flushed"]["pairs"] == len(keys_held)
        assert row["flushed"]["messages"] == (len(held) if number % 2 else 0)
        if number % 2:
            held, keys_held = set(), set()


def test_the_map_of_pairs_grows():
    pairs = Pairs()
    hashes = np.arange(20_000) % 7000
    channels = (np.arange(20_000) % 3).astype(np.int32)
    for part in np.array_split(np.arange(20_000), 7):
        pairs.observe(hashes[part], channels[part])
    assert len(pairs) == len(set(zip(hashes.tolist(), channels.tolist(), strict=True)))


@pytest.mark.parametrize("name", ["key_grouping", "universal_hash", "consistent_hash", "off_greedy"])
def test_key_by_key_is_the_same_as_tuple_by_tuple(name):
    strategies = {level: Routed(name, level=level) for level in ("histogram", "tuples")}
    done = replay(STREAM, strategies, channels=7, windows=3, keep_loads=True)
    assert np.array_equal(done.loads["histogram"], done.loads["tuples"])
    for column in ("tuples", "imbalance", "running_imbalance", "pairs"):
        assert done.column("histogram", column).tolist() == done.column("tuples", column).tolist()


def test_a_table_is_the_same_at_every_level():
    table = RoutingTable.even(6, slots=50).with_pins(next(STREAM.windows()).histogram().hashes[:20], [1] * 20)
    strategies = {"as it is": table, "by key": Routed(table), "by tuple": Routed(table, level="tuples"),
                  "planned": Planned("stay_put", table=table)}  # fmt: skip
    done = replay(STREAM, strategies, channels=6, windows=2, keep_loads=True)
    for name in strategies:
        assert np.array_equal(done.loads[name], done.loads["as it is"])


def test_what_a_strategy_sees_does_not_depend_on_the_others():
    strategies = {"pkg": "pkg", "potc": "potc", "hash": "key_grouping", "keel": "keel"}
    together = replay(STREAM, strategies, channels=5, windows=3, clock=lambda: 0.0)
    for name, strategy in strategies.items():
        alone = replay(STREAM, {name: strategy}, channels=5, windows=3, clock=lambda: 0.0)
        assert alone.table.equals(together.of(name))


def test_a_router_given_as_an_object_is_left_as_it_was_and_keeps_its_channels():
    router = PartialKeyGrouping(9, seed=4)
    first = replay(STREAM, {"pkg": router}, channels=2, windows=2)
    again = replay(STREAM, {"pkg": router}, channels=2, windows=2)
    assert first.table.equals(again.table)
    assert first.column("pkg", "channels").tolist() == [9, 9]
    assert router.loads.sum() == 0
    made = replay(STREAM, {"pkg": lambda channels: PartialKeyGrouping(channels, seed=4)}, channels=9, windows=2)
    assert made.table.equals(first.table)


def test_average_imbalance_is_that_of_the_metrics():
    done = replay(STREAM, {"hash": "key_grouping"}, channels=5, windows=4, keep_loads=True)
    cumulative = np.cumsum(done.loads["hash"], axis=0)
    (summary,) = done.summary().to_pylist()
    assert summary["average_imbalance"] == pytest.approx(average_imbalance(cumulative))
    assert summary["average_imbalance_fraction"] == pytest.approx(average_imbalance_fraction(cumulative))


def test_agreement_is_the_metric_over_the_whole_stream():
    workload = Sourced(STREAM, 5)
    options = [{"view": "global"}, {"view": "local"}]
    found = agreement(workload, *(Routed("pkg", option) for option in options), channels=10, windows=3)
    routers = [make_router("pkg", 10, sources=5, **option) for option in options]
    routed = [np.concatenate([router.route(*part) for part in in_order(workload, 3)]) for router in routers]
    assert found == pytest.approx(routing_agreement(*routed))
    assert 0.1 < found < 0.9
    assert agreement(workload, "pkg", "pkg", channels=10, windows=1) == 1


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("pkgg", "Did you mean 'pkg'"),
        ("consistent_hash", "both a router and a planner"),
        (Routed("pkg", level="histogram"), "splits keys or looks at the order"),
        (42, "A strategy is"),
    ],
    ids=["a misspelt name", "an ambiguous name", "a level that cannot be", "no strategy at all"],
)
def test_strategies_that_cannot_be_are_refused(strategy, words):
    with pytest.raises(InvalidArgumentError, match=words):
        replay(STREAM, {"x": strategy}, channels=3, windows=1)


def test_settings_that_cannot_be_are_refused():
    for options in (
        {"channels": 0},
        {"channels": []},
        {"channels": [2, 3]},
        {"channels": 2, "cost": "quadratic"},
        {"channels": 2, "labels": {"tuples": 1}},
    ):
        with pytest.raises(InvalidArgumentError):
            replay(STREAM, {"pkg": "pkg"}, windows=1, **options)
    with pytest.raises(InvalidArgumentError):
        replay(STREAM, {}, channels=2, windows=1)
    for endless in (STREAM, Sourced(STREAM)):
        with pytest.raises(InvalidArgumentError, match="no end"):
            replay(endless, {"pkg": "pkg"}, channels=2)
    with pytest.raises(InvalidArgumentError):
        agreement(STREAM, "pkg", "keel", channels=2, windows=1)
    done = replay(STREAM, {"pkg": "pkg"}, channels=2, windows=1, labels={"z": 1.1})
    assert done.table["z"].to_pylist() == [1.1]
    with pytest.raises(UnknownNameError):
        done.of("pgk")
    with pytest.raises(UnknownNameError):
        done.column("pkg", "skew")
