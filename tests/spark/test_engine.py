"""The engine: exactly what a correct key-grouped computation gives, whatever moves meanwhile."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.control import Budget, Choice, Controller, ControlOptions, Elasticity, WindowOptions
from evenkeel.errors import CheckpointInUseError, IncompatibleCheckpointError, InvalidArgumentError
from evenkeel.hashing import hash_keys
from evenkeel.operators import Count, PerKey, Sum
from evenkeel.planning import make_planner
from evenkeel.spark.api import stream
from evenkeel.spark.homes import Homes, host_name
from evenkeel.state import held_copies
from spark.engine_helpers import Forced, Remember, expected, file_stream, write_batches, zipf_words

pytestmark = pytest.mark.spark

SCHEDULE = [4, 7, 3, 5]


@pytest.fixture
def place(tmp_path):
    return {"checkpoint": str(tmp_path / "checkpoint"), "local_directory": str(tmp_path / "local")}


def test_counts_and_totals_survive_moves_and_resizes_in_every_batch(spark, tmp_path, place):
    tables = [zipf_words(2000, 200, seed) for seed in range(5)]
    write_batches(tmp_path / "in", tables)
    counts, totals = expected(tables)
    for operator, column, wanted in ((Count(), "count", counts), (Sum("value"), "sum", totals)):
        sink = Remember()
        where = {key: f"{value}-{column}" for key, value in place.items()}
        query = (
            stream(file_stream(spark, tmp_path / "in"), key="word")
            .apply(operator, strategy=Forced(SCHEDULE), channels=4)
            .start(sink, **where)
        )
        query.process_all_available()
        query.stop()
        assert sink.latest(column) == wanted
        assert query.table.channels == SCHEDULE[-1]
        moved = [sum(report["imported_bytes"] for report in batch["reports"][0]) for batch in query.history]
        assert moved[0] == 0
        assert min(moved[1:]) > 0
        assert [len(batch["reports"][0]) for batch in query.history] == [4, 7, 3, 5, 5]


class Resized(Forced):
    """Changes the number of channels as told, and moves nothing else."""

    def decide(self, table, now):
        channels = self.channels[min(self.batch + 1, len(self.channels) - 1)]
        return super().decide(table, now) if channels != table.channels else (None, None)


def test_state_that_stays_on_a_host_is_read_there_and_given_up_a_batch_later(spark, tmp_path, place):
    tables = [zipf_words(2000, 200, seed) for seed in range(6)]
    write_batches(tmp_path / "in", tables)
    held, plans, made = [], [], []

    class Watch(Remember):
        """Looks at what is on the host before each batch runs; before the fourth, takes it away."""

        def __call__(self, results, batch):
            held.append({copy.channel for copy in held_copies(Path(place["local_directory"]) / host_name())})
            plans.append(results._jdf.queryExecution().logical().toString())
            made.append({path.parent for path in Path(place["local_directory"]).rglob("data.mdb")})
            if batch == 3:
                shutil.rmtree(place["local_directory"])
            super().__call__(results, batch)

    sink = Watch()
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(Count(), strategy=Resized([2, 4, 4, 2, 2, 2]), channels=2)
        .start(sink, **place)
    )
    query.process_all_available()
    query.stop()
    assert sink.latest("count") == expected(tables)[0]
    reports = [batch["reports"][0] for batch in query.history]
    assert [len(found) for found in reports] == [2, 4, 4, 2, 2, 2]
    assert [sum(report["imported_bytes"] for report in found) > 0 for found in reports] == [0, 1, 0, 1, 0, 0]
    opened = {report["opened"] for report in reports[3]}
    assert "rebuilt" in opened
    assert opened <= {"rebuilt", "warm"}  # warm is one that was made again by another task before
    assert len({copy.parent for copy in made[4]}) == 4
    assert not made[4] & made[3]  # every channel's copy was made again, whoever opened it first
    assert held == [set(), {0, 1}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1}]
    assert not any("export(" in plan for plan in plans)


def test_homes_are_used_again_where_there_are_as_many_channels_as_before_and_given_up_at_the_end(
    spark, tmp_path, place, monkeypatch
):
    tables = [zipf_words(500, 100, seed) for seed in range(7)]
    write_batches(tmp_path / "in", tables)
    cached, formed, form = spark.sparkContext._jsc.getPersistentRDDs().size(), [], Homes.form

    def count(session, loads, before):
        formed.append(len(loads))
        return form(session, loads, before)

    monkeypatch.setattr(Homes, "form", count)
    sink = Remember()
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(Count(), strategy=Forced([4, 7, 4, 4, 7, 3, 4]), channels=4)
        .start(sink, **place)
    )
    query.process_all_available()
    query.stop()
    assert sink.latest("count") == expected(tables)[0]
    assert [len(batch["reports"][0]) for batch in query.history] == [4, 7, 4, 4, 7, 3, 4]
    assert formed == [4, 7, 3]
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == cached


def test_the_controller_evens_a_skewed_stream_and_says_why(spark, tmp_path, place):
    """Half of all tuples fall into few slots of one channel; the real controller with the real planner sees to it."""
    hot = [f"word{i}" for i in range(4000) if int(hash_keys([f"word{i}"])[0]) % 4 == 0][:40]
    rng = np.random.default_rng(0)
    cold = [f"word{i}" for i in range(400)]
    tables = [pa.table({"word": [*rng.choice(hot, 2000), *rng.choice(cold, 2000)]}) for _ in range(6)]
    write_batches(tmp_path / "in", tables)
    sink = Remember()
    controller = Controller(make_planner("keel"), ControlOptions(windows=WindowOptions(batches=2)))
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(Count(), strategy=controller, channels=4, combine=False)
        .start(sink, **place)
    )
    query.process_all_available()
    query.stop()
    rows = [[report["rows"] for report in batch["reports"][0]] for batch in query.history]
    skewness = [max(loads) / (sum(loads) / len(loads)) for loads in rows]
    assert min(skewness[:2]) > 1.5
    assert max(skewness[-2:]) < 1.15
    moved = [decision for decision in query.decisions if decision.choice is Choice.MOVE]
    assert moved
    assert all(decision.reasons for decision in query.decisions)
    assert query.table.epoch > 0
    assert sink.latest("count") == Counter(word for table in tables for word in table["word"].to_pylist())


def test_the_number_of_channels_follows_the_load(spark, tmp_path, place):
    tables = [zipf_words(rows, 400, seed) for seed, rows in enumerate([1000, 1000, 8000, 8000, 8000, 8000])]
    write_batches(tmp_path / "in", tables)
    sink = Remember()
    options = ControlOptions(windows=WindowOptions(batches=2), elasticity=Elasticity.around(1000, max_channels=6))
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(Count(), strategy=Controller(make_planner("keel"), options), channels=1, combine=False)
        .start(sink, **place)
    )
    query.process_all_available()
    query.stop()
    assert len(query.history[0]["reports"][0]) == 1
    assert query.table.channels == 6
    assert any(decision.choice is Choice.RESIZE for decision in query.decisions)
    assert sink.latest("count") == expected(tables)[0]


def test_a_large_plan_is_carried_out_over_several_batches(spark, tmp_path, place):
    tables = [zipf_words(3000, 1000, 0) for _ in range(7)]
    write_batches(tmp_path / "in", tables)
    sink = Remember()
    budget = 8000
    options = ControlOptions(windows=WindowOptions(batches=1), budget=Budget(state_bytes=budget))
    controller = Controller(make_planner("lptf"), options)
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word").apply(
            Count(), strategy=controller, channels=4, combine=False
        )
    ).start(sink, **place)
    query.process_all_available()
    query.stop()
    moved = [sum(report["imported_bytes"] for report in batch["reports"][0]) for batch in query.history]
    assert sum(size > 0 for size in moved) >= 2
    assert max(moved) <= budget  # the keys are all known after the first batch, so their state does not grow
    assert any(decision.choice is Choice.CONTINUE for decision in query.decisions)
    assert sink.latest("count") == expected(tables)[0]


def append(key, rows, state):
    """Keep the positions of a key's tuples, in order."""
    seen = (state or {"log": ""})["log"] + "".join(f"{row['position']}," for row in sorted(rows, key=_position))
    return {"log": seen}, [{"log": seen}]


def _position(row):
    return row["position"]


def test_an_ordered_log_per_key_is_whole_and_in_order(spark, tmp_path, place):
    tables = [zipf_words(500, 50, seed) for seed in range(4)]
    write_batches(tmp_path / "in", tables)
    log = pa.schema([("log", pa.string())])
    sink = Remember()
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(PerKey(append, state=log, output=log), strategy=Forced(SCHEDULE, seed=3), channels=4)
        .start(sink, **place)
    )
    query.process_all_available()
    query.stop()
    wanted: dict = {}
    for row in pa.concat_tables(tables).to_pylist():
        wanted[row["word"]] = wanted.get(row["word"], "") + f"{row['position']},"
    assert sink.latest("log") == wanted


def test_a_query_that_is_started_again_goes_on_where_it_was(spark, tmp_path, place):
    tables = [zipf_words(1000, 100, seed) for seed in range(6)]
    write_batches(tmp_path / "in", tables[:3])
    sink = Remember()
    for upto in (3, 6):
        write_batches(tmp_path / "in", tables[upto - 3 : upto], upto - 3)
        query = (
            stream(file_stream(spark, tmp_path / "in"), key="word")
            .apply(Count(), strategy=Forced([4, 7, 3, 5, 2, 6], seed=1), channels=4)
            .start(sink, **place)
        )
        query.process_all_available()
        query.stop()
    assert sorted(sink.batches) == list(range(6))
    assert sink.latest("count") == expected(tables)[0]
    # Another host, or a lost disk: the working copies are gone, the checkpoint has all.
    place["local_directory"] = str(tmp_path / "elsewhere")
    write_batches(tmp_path / "in", [zipf_words(1000, 100, 6)], 6)
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(Count(), strategy=Forced([4, 7, 3, 5, 2, 6], seed=1), channels=4)
        .start(sink, **place)
    )
    query.process_all_available()
    query.stop()
    assert sink.latest("count") == expected([*tables, zipf_words(1000, 100, 6)])[0]
    assert any((tmp_path / "elsewhere").iterdir())


def test_old_versions_and_tables_are_cleaned_away(spark, tmp_path, place, monkeypatch):
    monkeypatch.setattr("evenkeel.spark.query._KEPT_COMMITS", 3)
    tables = [zipf_words(200, 50, seed) for seed in range(7)]
    write_batches(tmp_path / "in", tables)
    sink = Remember()
    flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(
        Count(), strategy=Forced([3, 2, 3, 2]), channels=3
    )
    query = flow.start(sink, **place)
    query.process_all_available()
    query.stop()
    assert sink.latest("count") == expected(tables)[0]
    kept = sorted(path.name for path in (tmp_path / "checkpoint" / "commits").iterdir())
    assert [int(name[1:13]) for name in kept] == [3, 4, 5, 6]  # cleaned after batch 5, then one more
    # Of every batch with a commit: its table, the next one, and the controller; of those before, nothing.
    assert len(list((tmp_path / "checkpoint" / "tables").iterdir())) <= 3 * len(kept) + 1


def test_a_batch_that_fails_is_not_committed_and_comes_again(spark, tmp_path, place):
    tables = [zipf_words(300, 30, seed) for seed in range(3)]
    write_batches(tmp_path / "in", tables)
    sink = Remember()
    failures = []

    def failing(results, batch):
        if batch == 1 and not failures:
            failures.append(batch)
            message = "the sink is full"
            raise RuntimeError(message)
        sink(results, batch)

    def start():
        flow = stream(file_stream(spark, tmp_path / "in"), key="word").apply(
            Count(), strategy=Forced(SCHEDULE), channels=4
        )
        return flow.start(failing, **place)

    with pytest.raises(Exception, match="the sink is full"):
        start().process_all_available()
    query = start()
    query.process_all_available()
    query.stop()
    assert sink.latest("count") == expected(tables)[0]


def test_an_operator_that_raises_is_named_with_its_channel_batch_and_key(spark, tmp_path, place):
    write_batches(tmp_path / "in", [zipf_words(100, 10, 0)])

    def fail(key, rows, state):
        if key == ("word5",):
            message = "no word5 please"
            raise ValueError(message)
        return {"n": 1}, []

    numbers = pa.schema([("n", pa.int64())])
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(PerKey(fail, state=numbers, output=numbers), channels=2)
        .start(Remember(), **place)
    )
    with pytest.raises(Exception, match=r"per_key.*channel \d in batch 0.*word5.*no word5 please"):
        query.process_all_available()
    query.stop()


def test_static_rows_run_as_one_batch_and_stages_chain(spark, place):
    rows = zipf_words(2000, 100, 0)
    sink = Remember()
    every_batch = ControlOptions(windows=WindowOptions(batches=1))
    first, second = (Controller(make_planner("keel"), every_batch) for _ in range(2))
    query = (
        stream(spark.createDataFrame(rows), key="word")
        .apply(Count(), strategy=first, channels=4)
        .key_by("count")
        .apply(Count("words"), strategy=second, channels=3)
        .start(lambda results, batch: sink.batches.update({batch: results.toArrow().to_pylist()}), **place)
    )
    assert query.await_termination()
    found = {row["count"]: row["words"] for row in sink.batches[0]}
    assert found == Counter(expected([rows])[0].values())
    stages = list(query.stages.values())
    assert [stage.table.channels for stage in stages] == [4, 3]
    assert [stage.decisions for stage in stages] == [list(first.decisions), list(second.decisions)]
    assert [[decision.batch for decision in stage.decisions] for stage in stages] == [[0], [0]]
    assert query.decisions == stages[0].decisions


@pytest.mark.parametrize(
    ("strategy", "combine", "packs"), [("keel", None, True), ("keel", False, False), ("pkg", None, True)]
)
def test_a_stream_reads_the_columns_that_are_needed_and_who_packs_tuples_does_so_before_they_are_copied(
    spark, tmp_path, place, strategy, combine, packs
):
    tables = [zipf_words(200, 20, seed) for seed in range(2)]
    write_batches(tmp_path / "in", tables)
    sink = Remember()
    how = {"strategy": strategy, "combine": combine, "channels": 2}
    query = stream(file_stream(spark, tmp_path / "in"), key="word").apply(Count(), **how).start(sink, **place)
    query.process_all_available()
    source = query.spark_query._jsq.explainInternal(False)
    query.stop()
    assert sink.latest("count") == expected(tables)[0]
    assert "ReadSchema: struct<word:string>" in source
    assert ("MapInArrow" in source) == packs


def test_an_empty_batch_and_one_huge_key_are_fine(spark, tmp_path, place):
    huge = "x" * 10_000_000
    tables = [
        pa.table({"word": pa.array([], pa.string()), "value": pa.array([], pa.int64())}),
        pa.table({"word": [huge, huge, None], "value": [1, 2, 3]}),
        pa.table({"word": pa.array([], pa.string()), "value": pa.array([], pa.int64())}),
        pa.table({"word": [huge], "value": [4]}),
    ]
    write_batches(tmp_path / "in", tables)
    sink = Remember()
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word")
        .apply(Count(), strategy=Forced([2, 3, 2, 1]), channels=2)
        .start(sink, **place)
    )
    query.process_all_available()
    query.stop()
    assert sink.latest("count") == {huge: 3, None: 1}


def test_null_keys_are_kept_dropped_or_refused(spark, place):
    rows = spark.createDataFrame(pa.table({"word": ["a", None, "a", None], "value": [1, 2, 3, 4]}))

    def run(policy):
        sink = Remember()
        where = {key: f"{value}-{policy}" for key, value in place.items()}
        stream(rows, key="word", null_keys=policy).apply(Count(), channels=2).start(sink, **where)
        return sink.latest("count")

    assert run("keep") == {"a": 2, None: 2}
    assert run("drop") == {"a": 2}
    with pytest.raises(Exception, match="null in its key"):
        run("error")
    with pytest.raises(InvalidArgumentError, match="'keep', 'drop' or 'error'"):
        stream(rows, key="word", null_keys="ignore")


def test_mistakes_are_told_at_once(spark, tmp_path, place):
    rows = spark.createDataFrame(zipf_words(10, 5, 0))
    with pytest.raises(InvalidArgumentError, match="no key column 'wrod'"):
        stream(rows, key="wrod").apply(Count()).start("console", **place)
    with pytest.raises(InvalidArgumentError, match="call apply"):
        stream(rows, key="word").flow.start("console", **place)
    with pytest.raises(InvalidArgumentError, match="at least 1; got 0"):
        stream(rows, key="word").apply(Count(), channels=0)
    with pytest.raises(InvalidArgumentError, match="at least one column"):
        stream(rows, key=[])


def test_a_checkpoint_belongs_to_one_query(spark, tmp_path, place):
    write_batches(tmp_path / "in", [zipf_words(100, 10, 0)])
    rows = file_stream(spark, tmp_path / "in")
    query = stream(rows, key="word").apply(Count(), channels=2).start(Remember(), **place)
    try:
        with pytest.raises(CheckpointInUseError):
            stream(rows, key="word").apply(Count(), channels=2).start(Remember(), **place)
        with pytest.raises(IncompatibleCheckpointError):
            stream(rows, key="word").apply(Sum("value"), channels=2).start(Remember(), **place)
    finally:
        query.stop()


@pytest.mark.parametrize("by_the_sink", [False, True])
def test_a_query_stops_after_the_batch_in_progress(spark, tmp_path, place, by_the_sink):
    tables = [zipf_words(100, 10, seed) for seed in range(4)]
    write_batches(tmp_path / "in", tables)
    rows = stream(file_stream(spark, tmp_path / "in"), key="word").apply(Count(), channels=2)
    remembered, at_work, may_end = Remember(), threading.Event(), threading.Event()

    def sink(results, batch) -> None:
        if batch == 1:
            if by_the_sink:
                query.stop()
            at_work.set()
            assert may_end.wait(60)
        remembered(results, batch)

    query = rows.start(sink, **place)
    assert at_work.wait(60)
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    may_end.set()
    stopping.join(60)
    assert not query.spark_query.isActive
    query.await_termination()  # raises nothing
    assert sorted(remembered.batches) == [0, 1]

    again = rows.start(remembered, **place)
    again.process_all_available()
    again.stop()
    assert [batch["batch"] for batch in again.history] == [2, 3]
    assert remembered.latest("count") == expected(tables)[0]


def test_the_users_session_is_left_as_it_was(spark, tmp_path, place):
    before = dict(spark.sparkContext.getConf().getAll()), spark.conf.getAll
    write_batches(tmp_path / "in", [zipf_words(100, 10, 0)])
    query = (
        stream(file_stream(spark, tmp_path / "in"), key="word").apply(Count(), channels=2).start(Remember(), **place)
    )
    query.process_all_available()
    query.stop()
    assert (dict(spark.sparkContext.getConf().getAll()), spark.conf.getAll) == before
    assert np.all([not table.isTemporary for table in spark.catalog.listTables()])


def test_a_relative_local_directory_is_one_of_the_driver(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = spark.createDataFrame(pa.table({"word": ["a", "b"]}))
    stream(rows, key="word").apply(Count()).start("memory", checkpoint="checkpoint", local_directory="local")
    assert any((tmp_path / "local").iterdir())
