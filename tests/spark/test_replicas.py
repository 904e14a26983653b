"""Replicas: copies that stay equal, switches of roles instead of moves, and recovery from the loss of channels."""

from __future__ import annotations

import shutil
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.control import Choice, Controller, ControlOptions, ServiceLevels, WindowOptions
from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import hash_keys
from evenkeel.operators import Count, PerKey, Sum
from evenkeel.operators.sessions import Sessions
from evenkeel.planning import make_planner
from evenkeel.routing import RoutingTable
from evenkeel.spark.api import stream
from evenkeel.spark.homes import executors, host_name
from evenkeel.state import Selection, StateStore
from spark.engine_helpers import Forced, Remember, expected, file_stream, write_batches, zipf_words

pytestmark = pytest.mark.spark


@pytest.fixture
def place(tmp_path):
    return {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}


def log(key, rows, state):
    """Everything a key ever saw, in order."""
    seen = (state["seen"] if state else "") + "".join(f"{row['position']};" for row in rows)
    return {"seen": seen}, [{"seen": seen}]


def held(batches, until):
    """Hold rows until a file is there."""
    for batch in batches:
        while not Path(until).exists():
            time.sleep(0.1)
        yield batch


SEEN = pa.schema([("seen", pa.string())])


def run(spark, directory, place, operator, sink=None, **options):
    sink = sink or Remember()
    options = {"channels": 4, **options}
    query = stream(file_stream(spark, directory), key="word").apply(operator, **options).start(sink, **place)
    query.process_all_available()
    query.stop()
    return query, sink


def states(query, place, table):
    """What each channel holds after the last commit, by channel and key hash, and the table of that batch."""
    opened = query._checkpoint
    held = {}
    for ref in opened.last_commit().manifests:
        store = StateStore(opened, ref.stage, ref.channel, place["local_directory"] + "-look")
        with store.open(ref) as view:
            rows = [row for batch in view.export(Selection.of(np.arange(table.slots))) for row in batch.to_pylist()]
        held[ref.channel] = {(row["hash"], row["hash2"]): row["value"] for row in rows}
    return held


def check_copies(query, place):
    """Every key is on its active channel and its backups and nowhere else, byte for byte the same."""
    table = query._stages[0].before.table
    held = states(query, place, table)
    copies = {}
    for channel, keys in held.items():
        for key, value in keys.items():
            copies.setdefault(key, {})[channel] = value
    assert copies
    for (key_hash, _), found in copies.items():
        hashes = np.array([key_hash])
        wanted = {int(table.home(hashes)[0]), *table.backups(hashes).channels.tolist()}
        assert found.keys() == wanted
        assert len(set(found.values())) == 1
    return copies


@pytest.mark.parametrize(
    "operator",
    [Count(), Sum("value"), PerKey(log, state=SEEN, output=SEEN)],
    ids=lambda operator: operator.name,
)
def test_copies_are_equal_after_every_batch_while_keys_move_and_channels_come_and_go(spark, tmp_path, place, operator):
    tables = [zipf_words(600, 40, seed) for seed in range(6)]
    write_batches(tmp_path / "in", tables[:1])
    flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(
        operator, channels=4, strategy=Forced([4, 4, 6, 3, 5, 5]), replicas=1
    )
    seen = Remember()
    query = flow.start(seen, **place)
    for done in range(1, len(tables) + 1):
        query.process_all_available()
        assert len(query.history) == done
        check_copies(query, place)
        write_batches(tmp_path / "in", tables[done : done + 1], start=done)
    query.stop()
    assert sum(report["backup_rows"] for batch in query.history for report in batch["reports"][0]) > 0
    if operator.name == "count":
        assert seen.latest("count") == expected(tables)[0]
    elif operator.name == "sum":
        assert seen.latest("sum") == expected(tables)[1]
    else:
        whole = pa.concat_tables(tables).to_pylist()
        wanted = {}
        for row in whole:
            wanted[row["word"]] = wanted.get(row["word"], "") + f"{row['position']};"
        assert seen.latest("seen") == wanted


def test_a_result_is_given_once_though_copies_are_kept(spark, tmp_path, place):
    tables = [zipf_words(400, 30, seed) for seed in range(3)]
    write_batches(tmp_path / "in", tables)
    rows = []
    query, _ = run(
        spark, tmp_path / "in", place, Count(), lambda results, _: rows.append(results.toArrow()), replicas=2
    )
    for table, found in zip(tables, rows, strict=True):
        assert sorted(found["word"].to_pylist(), key=str) == sorted(set(table["word"].to_pylist()), key=str)
    assert query.table.backups_of_slots.lengths.tolist() == [2] * query.table.slots


def test_windows_with_a_clock_close_once(spark, tmp_path, place):
    from datetime import datetime, timedelta, timezone

    start = datetime(2024, 1, 1, tzinfo=timezone.utc)
    at = [start + timedelta(seconds=10 * number) for number in range(12)]
    tables = [
        pa.table(
            {"word": ["a", "b", "a"], "at": at[3 * n : 3 * n + 3]},
            pa.schema([("word", pa.string()), ("at", pa.timestamp("us", "UTC"))]),
        )
        for n in range(4)
    ]
    write_batches(tmp_path / "in", tables)
    rows = []
    flow = stream(file_stream(spark, tmp_path / "in"), key="word", event_time="at").apply(
        Sessions("15 seconds", Count()), channels=3, replicas=1
    )
    query = flow.start(lambda results, _: rows.extend(results.collect()), **place)
    query.process_all_available()
    query.stop()
    assert len(rows) == len({(row["word"], row["session_start"]) for row in rows}) > 0
    check_copies(query, place)


def test_the_loss_of_channels_is_answered_by_their_copies(spark, tmp_path, place):
    """No file of the lost channels is read: their keys are switched on where they are."""
    tables = [zipf_words(600, 40, seed) for seed in range(6)]
    write_batches(tmp_path / "in", tables)
    seen = Remember()

    def lose(results, batch):
        seen(results, batch)
        if batch == 2:
            for channel in (1, 3):
                for copy in (tmp_path / "local").rglob(f"c{channel:05d}"):
                    shutil.rmtree(copy)

    query, _ = run(spark, tmp_path / "in", place, Count(), lose, replicas=1, strategy="key_grouping")
    assert seen.latest("count") == expected(tables)[0]
    recovery = [decision for decision in query.decisions if decision.choice is Choice.RECOVER]
    assert len(recovery) == 1
    assert "1, 3" in recovery[0].reasons[0]
    opened = [{report["channel"]: report["opened"] for report in batch["reports"][0]} for batch in query.history]
    assert {opened[3][1], opened[3][3]} <= {"new", "warm", "caught up"}
    assert "rebuilt" not in {how for batch in opened for how in batch.values()}
    again = [decision for decision in query.decisions if decision.choice is Choice.REPLICATE]
    assert again
    assert (query.table.backups_of_slots.lengths == 1).all()
    check_copies(query, place)


def test_a_key_whose_copies_are_all_lost_comes_from_the_checkpoint(spark, tmp_path, place):
    tables = [zipf_words(600, 40, seed) for seed in range(5)]
    write_batches(tmp_path / "in", tables)
    seen = Remember()

    def lose(results, batch):
        seen(results, batch)
        if batch == 2:
            shutil.rmtree(tmp_path / "local")

    query, _ = run(spark, tmp_path / "in", place, Count(), lose, replicas=1)
    assert seen.latest("count") == expected(tables)[0]
    assert {report["opened"] for report in query.history[3]["reports"][0]} == {"rebuilt"}
    check_copies(query, place)


def test_copies_that_lag_behind_catch_up_before_they_take_over(spark, tmp_path, place):
    """Working copies of three batches ago, as on a host that was away, and one of them lost."""
    tables = [zipf_words(600, 40, seed) for seed in range(7)]
    write_batches(tmp_path / "in", tables[:3])
    run(spark, tmp_path / "in", place, Count(), replicas=1, strategy="key_grouping")
    shutil.copytree(tmp_path / "local", tmp_path / "old")
    write_batches(tmp_path / "in", tables[3:6], start=3)
    query, _ = run(spark, tmp_path / "in", place, Count(), replicas=1, strategy="key_grouping")
    shutil.copytree(tmp_path / "old", tmp_path / "look")
    for ref in query._checkpoint.last_commit().manifests:
        store = StateStore(query._checkpoint, ref.stage, ref.channel, tmp_path / "look" / host_name())
        with store.open_if_near(ref) as view:
            assert view.opening.how == "caught up"
            assert view.opening.deltas >= 3
    for copy in (tmp_path / "old").rglob("c00001"):
        shutil.rmtree(copy)
    write_batches(tmp_path / "in", tables[6:], start=6)
    behind = {**place, "local_directory": str(tmp_path / "old")}
    query, seen = run(spark, tmp_path / "in", behind, Count(), replicas=1, strategy="key_grouping")
    wanted = expected(tables)[0]
    assert seen.latest("count") == {word: wanted[word] for word in set(tables[6]["word"].to_pylist())}
    opened = {report["channel"]: report["opened"] for report in query.history[-1]["reports"][0]}
    assert opened == {0: "warm", 1: "new", 2: "warm", 3: "warm"}  # since the channels were asked
    assert [decision.batch for decision in query.decisions if decision.choice is Choice.RECOVER] == [6]
    check_copies(query, behind)


def test_keys_whose_backups_are_not_made_yet_come_from_the_checkpoint(spark, tmp_path, place):
    """A loss while backups are being made, within a budget: some keys have one, others have none."""
    tables = [zipf_words(600, 200, seed) for seed in range(8)]
    write_batches(tmp_path / "in", tables[:4])
    run(spark, tmp_path / "in", place, Count())
    write_batches(tmp_path / "in", tables[4:], start=4)
    seen, levels = Remember(), ServiceLevels(default=1, bytes_per_batch=2000)

    def lose(results, batch):
        seen(results, batch)
        for copy in (tmp_path / "local").rglob("c00001") if batch == 5 else ():
            shutil.rmtree(copy)

    query, _ = run(spark, tmp_path / "in", place, Count(), lose, replicas=levels, strategy="key_grouping")
    made = {decision.batch: decision for decision in query.decisions if decision.choice is Choice.REPLICATE}
    assert any("left for later" in reason for reason in made[5].reasons)
    (lost,) = (decision for decision in query.decisions if decision.choice is Choice.RECOVER)
    assert lost.batch == 6
    opened = {batch["batch"]: {r["channel"]: r["opened"] for r in batch["reports"][0]} for batch in query.history}
    assert opened[6][1] == "rebuilt"
    wanted = expected(tables)[0]
    later = {word for table in tables[4:] for word in table["word"].to_pylist()}
    assert seen.latest("count") == {word: wanted[word] for word in later}
    check_copies(query, place)


def test_channels_that_are_lost_again_and_again(spark, tmp_path, place):
    tables = [zipf_words(300, 40, seed) for seed in range(10)]
    write_batches(tmp_path / "in", tables)
    seen = Remember()

    def lose(results, batch):
        seen(results, batch)
        for copy in (tmp_path / "local").rglob(f"c{batch % 4:05d}"):
            shutil.rmtree(copy)

    query, _ = run(spark, tmp_path / "in", place, Sum("value"), lose, replicas=2, strategy=Forced([4]))
    assert seen.latest("sum") == expected(tables)[1]
    check_copies(query, place)


@pytest.mark.parametrize("overwrites", [True, False])
def test_only_a_sink_that_overwrites_sees_a_part_of_the_results_first(spark, tmp_path, place, overwrites):
    tables = [zipf_words(300, 40, seed) for seed in range(4)]
    write_batches(tmp_path / "in", tables)
    seen, rows = Remember(), []

    def sink(results, batch):
        seen(results, batch)
        rows.append((batch, len(seen.batches[batch])))
        for copy in (tmp_path / "local").rglob("c00001") if batch == 1 else ():
            shutil.rmtree(copy)

    sink.overwrites = overwrites
    query, _ = run(spark, tmp_path / "in", place, Count(), sink, replicas=1, strategy="key_grouping")
    assert seen.latest("count") == expected(tables)[0]
    whole = [(batch, len(set(table["word"].to_pylist()))) for batch, table in enumerate(tables)]
    if overwrites:
        part = rows.pop(2)
        assert part[0] == 2
        assert part[1] < whole[2][1]
    assert rows == whole
    assert [decision.batch for decision in query.decisions if decision.choice is Choice.RECOVER] == [2]
    check_copies(query, place)


def test_a_batch_that_lost_a_host_is_broken_off(spark, tmp_path, place, monkeypatch, caplog):
    """It does not wait for Spark to find that out, which would be for ever here; nor if it could not be asked once."""
    tables = [zipf_words(300, 40, seed) for seed in range(4)]
    write_batches(tmp_path / "in", tables)
    seen, calls = Remember(), []
    up = executors(spark)
    asked = threading.Event()

    def look(_):
        if calls[-1:] == [1] and not asked.is_set():
            asked.set()
            raise ConnectionError("Spark does not answer.")
        return up if calls.count(2) != 1 else frozenset()

    monkeypatch.setattr("evenkeel.spark.vigil.executors", look)

    def sink(results, batch):
        calls.append(batch)
        if batch == 1:
            assert asked.wait(60)
        if calls.count(2) == 1 and batch == 2:
            broken_off = tmp_path / "broken_off"
            try:
                results.mapInArrow(partial(held, until=str(broken_off)), results.schema).collect()
            finally:
                # Spark does not kill a Python worker that served the same task before: it would hold its core for ever.
                broken_off.touch()
        seen(results, batch)

    query, _ = run(spark, tmp_path / "in", place, Count(), sink, replicas=1, strategy="key_grouping")
    assert calls == [0, 1, 2, 2, 3]
    assert seen.latest("count") == expected(tables)[0]
    assert not [decision for decision in query.decisions if decision.choice is Choice.RECOVER]  # all state is there
    told = [record.reason for record in caplog.records if getattr(record, "event", "") == "unwatched"]
    assert told == ["ConnectionError: Spark does not answer."]
    check_copies(query, place)


def test_roles_are_switched_where_that_evens_the_load(spark, tmp_path, place):
    rng = np.random.default_rng(0)
    table = RoutingTable.even(4)
    words = np.array([f"w{n}" for n in range(4000)])
    crowded = words[table.home(hash_keys(pa.array(words))) == 0][:400]  # all on one channel at first
    tables = [pa.table({"word": rng.choice(crowded, 2000), "value": np.ones(2000, np.int64)}) for _ in range(5)]
    write_batches(tmp_path / "in", tables)
    controller = Controller(make_planner("ftlb"), ControlOptions(windows=WindowOptions(batches=1)))
    query, sink = run(spark, tmp_path / "in", place, Count(), strategy=controller, replicas=1, combine=False)
    assert sink.latest("count") == expected(tables)[0]
    moved = [decision for decision in query.decisions if decision.choice is Choice.MOVE]
    assert moved
    assert any("by a switch of roles" in reason for decision in moved for reason in decision.reasons)
    first = query.history[moved[0].batch + 1]["reports"][0]
    switched = max(report["rows"] for report in first) < 2000
    assert switched
    check_copies(query, place)


def test_service_levels_say_which_keys_have_copies(spark, tmp_path, place):
    tables = [zipf_words(600, 40, seed) for seed in range(4)]
    tables = [
        table.append_column(
            "tier", pa.array(["gold" if word == "word5" else None for word in table["word"].to_pylist()])
        )
        for table in tables
    ]
    write_batches(tmp_path / "in", tables)
    levels = ServiceLevels(keys={"word7": 2}, where={"tier": {"gold": 1}}, hottest=3)
    query, sink = run(spark, tmp_path / "in", place, Count(), replicas=levels)
    assert sink.latest("count") == expected(tables)[0]
    copies = dict(zip(query.table.pin_hashes.tolist(), query.table.backups_of_pins.lengths.tolist(), strict=True))
    by_name = {word: copies.get(int(hash_keys(pa.array([word]))[0]), 0) for word in ("word5", "word7")}
    assert by_name == {"word5": 1, "word7": 2}
    assert sum(count > 0 for count in copies.values()) >= 4
    assert query.table.backups_of_slots.lengths.sum() == 0
    check_copies(query, place)


def test_new_backups_are_made_within_a_budget(spark, tmp_path, place):
    tables = [zipf_words(600, 200, seed) for seed in range(6)]
    write_batches(tmp_path / "in", tables)
    run(spark, tmp_path / "in", place, Count())
    write_batches(tmp_path / "in", [zipf_words(100, 200, seed) for seed in range(6, 10)], start=6)
    budget = 4000
    levels = ServiceLevels(default=1, bytes_per_batch=budget)
    query, _ = run(spark, tmp_path / "in", place, Count(), replicas=levels)
    made = [decision for decision in query.decisions if decision.choice is Choice.REPLICATE]
    assert len(made) > 1
    assert all(0 < decision.step_bytes <= budget for decision in made)
    assert any("left for later" in reason for reason in made[0].reasons)
    assert any("share a host" in reason for reason in made[0].reasons)
    imported = [sum(report["imported_bytes"] for report in batch["reports"][0]) for batch in query.history]
    assert imported[1] == made[0].step_bytes
    check_copies(query, place)


def test_mistakes_are_told_at_once(spark):
    rows = spark.createDataFrame(pa.table({"word": ["a"]}))
    with pytest.raises(InvalidArgumentError, match="has no place for backups"):
        stream(rows, key="word").apply(Count(), strategy="pkg", channels=4, replicas=1)
    with pytest.raises(InvalidArgumentError, match="at least 2 channels"):
        stream(rows, key="word").apply(Count(), channels=1, replicas=1)
    with pytest.raises(InvalidArgumentError, match="no service level column 'tier'"):
        stream(rows, key="word").apply(Count(), replicas={"where": {"tier": {"gold": 1}}}).start(
            "memory", checkpoint="x"
        )
