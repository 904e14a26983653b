"""Reading a checkpoint that is being written, cleaned, damaged or put up as a trap."""

from __future__ import annotations

import json
import os
import socket

import numpy as np
import pytest

from dashboard.checkpoints import Query
from evenkeel.dashboard import CheckpointReader, state_of
from evenkeel.dashboard.files import ReadOnlyFiles, open_files
from evenkeel.errors import CorruptDataError, EvenkeelError, InvalidArgumentError
from evenkeel.routing import RoutingTable
from evenkeel.routing.ragged import Ragged
from evenkeel.state import Manifest, ManifestRef, StoredFile, clean


@pytest.fixture
def reads(monkeypatch):
    """The paths that are read, in their order."""
    seen = []
    read = ReadOnlyFiles.read_unchecked

    def noted(self, path):
        seen.append(path)
        return read(self, path)

    monkeypatch.setattr(ReadOnlyFiles, "read_unchecked", noted)
    return seen


def looked(path):
    reader = CheckpointReader(str(path))
    reader.look()
    return reader


def tree(path):
    return {str(file.relative_to(path)): file.stat().st_mtime_ns for file in path.rglob("*")}


def test_it_tells_what_the_query_stored(tmp_path):
    query = Query(tmp_path).run(8)
    stage = looked(tmp_path).stages["stage0"]
    assert [summary.batch for summary in stage.summaries] == list(range(8))
    assert [summary.took_ms for summary in stage.summaries][:2] == [800.0, 810.0]
    assert stage.last.rows.sum() == 4000
    assert set(stage.last.hosts) == {"host-0", "host-1", "host-2"}
    assert stage.table == query.tables["stage0"]
    assert [decision.to_json() for decision in stage.decisions] == [
        decision.to_json() for decision in query.controllers["stage0"].decisions
    ]
    assert stage.totals["rows"] == 8 * 4000
    heaviest = stage.loaded.hot_keys[0]
    place = int(np.flatnonzero(query.hashes == heaviest.key_hash)[0])
    assert place < 8  # one of those that were made hot
    assert heaviest.channels == (int(stage.table.route(query.hashes[[place]])[0]),)


def test_the_decision_to_move_is_seen_as_a_movement_with_what_it_achieved(tmp_path):
    Query(tmp_path).run(8)
    stage = looked(tmp_path).stages["stage0"]
    moved = next(decision for decision in stage.decisions if decision.choice.value == "move")
    assert moved.before > 1.5
    assert moved.achieved == pytest.approx(moved.predicted, abs=0.2)
    movement = stage.movements[0]
    assert movement.batch == moved.batch + 1
    assert sum(flow.items for flow in movement.flows) == movement.items["move"] > 0
    skewness = {summary.batch: summary.skewness for summary in stage.summaries}
    assert skewness[movement.batch] < skewness[moved.batch] - 0.5


def test_flows_add_up_to_the_difference_of_the_tables(tmp_path):
    query = Query(tmp_path, window=100).run(1)
    before = query.tables["stage0"]
    after = before.evolve(slot_channels=np.where(np.arange(before.slots) < 10, 3, before.slot_channels))
    query.batch(tables={"stage0": after})
    stage = looked(tmp_path).stages["stage0"]
    assert state_of(looked(tmp_path), 0.0)["stages"][0]["planned"]["items"]["move"] == len(before.diff(after))
    query.run(1)
    stage = looked(tmp_path).stages["stage0"]
    found = {(flow.source, flow.target): (flow.slots, flow.keys) for flow in stage.movements[0].flows}
    wanted = {}
    for source in before.slot_channels[:10].tolist():
        if source != 3:
            wanted[source, 3] = (wanted.get((source, 3), (0, 0))[0] + 1, 0)
    assert found == wanted


def test_a_look_reads_only_what_is_new(tmp_path, reads):
    query = Query(tmp_path).run(3)
    reader = looked(tmp_path)
    reads.clear()
    assert not reader.look()
    assert reads == ["checkpoint.json"]
    query.run(1)
    reads.clear()
    assert reader.look()
    assert not [path for path in reads if path.startswith("stages/") and "/b000000000003-" not in path]
    assert sum(path.startswith("stages/") for path in reads) == 4
    assert sum(path.startswith("commits/") for path in reads) == 1


def test_a_commit_that_is_being_written_is_left_for_the_next_look(tmp_path):
    query = Query(tmp_path).run(3)
    commit = tmp_path / "commits" / "b000000000002.json"
    whole = commit.read_bytes()
    commit.write_bytes(whole[:100])
    reader = looked(tmp_path)
    assert reader.batch == 1
    assert not reader.damaged
    commit.write_bytes(whole)
    assert reader.look()
    assert reader.batch == 2
    assert query.checkpoint.last_commit().batch == 2


def test_batches_that_are_cleaned_away_meanwhile_are_passed_over(tmp_path, monkeypatch):
    query = Query(tmp_path).run(6)
    listed = ReadOnlyFiles.commit_times

    def then_cleaned(self):
        times = listed(self)
        clean(query.checkpoint, keep=2)
        return times

    monkeypatch.setattr(ReadOnlyFiles, "commit_times", then_cleaned)
    reader = looked(tmp_path)
    assert [summary.batch for summary in reader.stages["stage0"].summaries] == [4, 5]
    assert not reader.damaged


def test_a_table_that_is_gone_leaves_the_rest(tmp_path):
    Query(tmp_path, window=100).run(2)
    for table in (tmp_path / "tables").glob("*-table-*"):
        table.unlink()
    stage = state_of(looked(tmp_path), 0.0)["stages"][0]
    assert stage["table"] is None
    assert sum(channel["rows"] for channel in stage["channels"]) == 4000


def test_what_is_damaged_is_passed_over_and_said(tmp_path):
    Query(tmp_path).run(3)
    manifest = next((tmp_path / "stages" / "stage0").glob("b000000000001-c00002-*"))
    manifest.write_bytes(manifest.read_bytes().replace(b"host", b"hoax"))
    reader = looked(tmp_path)
    assert [summary.batch for summary in reader.stages["stage0"].summaries] == [0, 2]
    assert "checksum" in reader.damaged[0]


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"channel": 0},
        {"channel": 0, "rows": "many", "loads": {}},
        {"channel": 0, "rows": 1, "busy_ms": float("inf"), "loads": {}},
        {"channel": 0, "rows": 1, "loads": {"held_bytes": 7}},
    ],
    ids=["empty", "no rows", "rows in words", "endless", "a number for a list"],
)
def test_reports_that_are_not_reports_do_not_stop_it(tmp_path, report):
    query = Query(tmp_path).run(1)
    manifest = Manifest("stage0", 0, 1, "a", "", (), report)
    ref = manifest.write(query.checkpoint.files, "stages/stage0/b000000000001-c00000-a.manifest.json")
    query.checkpoint.commit(1, [ref])
    reader = looked(tmp_path)
    assert reader.batch == 1
    assert "batch 1" in reader.damaged[0]
    json.dumps(state_of(reader, 0.0), allow_nan=False)


@pytest.mark.parametrize("name", ["../secret", "stages/../../secret", "{absolute}", "stages/link", "stages//secret"])
def test_no_path_leads_out_of_the_checkpoint(tmp_path, name, reads):
    secret = tmp_path / "secret"
    query = Query(tmp_path / "checkpoint").run(1)
    manifest = Manifest("stage0", 0, 1, "a", "", (), {"channel": 0, "rows": 666})
    ref = manifest.write(query.checkpoint.files, "stages/real")
    (tmp_path / "checkpoint" / "stages" / "real").rename(secret)
    (tmp_path / "checkpoint" / "stages" / "link").symlink_to(secret)
    path = name.format(absolute=str(secret))
    file = StoredFile(path, ref.file.size_bytes, ref.file.checksum)
    query.checkpoint.commit(1, [ManifestRef("stage0", 0, 1, "", file)])
    reader = looked(tmp_path / "checkpoint")
    assert "not below it" in reader.damaged[0]
    assert len(reader.stages["stage0"].summaries) == 1


def test_it_writes_nothing(tmp_path):
    Query(tmp_path).run(3)
    before = tree(tmp_path)
    looked(tmp_path).look()
    assert tree(tmp_path) == before
    files = open_files(str(tmp_path))
    with pytest.raises(EvenkeelError, match="read only"):
        files.write("commits/b000000000099.json", b"")
    with pytest.raises(EvenkeelError, match="read only"):
        files.delete("checkpoint.json")


def test_another_checkpoint_in_its_place_is_read_anew(tmp_path):
    query = Query(tmp_path).run(5)
    reader = looked(tmp_path)
    for path in query.checkpoint.files.list("commits"):
        query.checkpoint.files.delete(path)
    (tmp_path / "checkpoint.json").unlink()
    Query(tmp_path, run="run-2").run(2)
    assert reader.look()
    assert reader.batch == 1
    assert len(reader.stages["stage0"].summaries) == 2


def test_a_checkpoint_that_is_gone_is_an_error_and_what_was_read_stays(tmp_path):
    Query(tmp_path).run(2)
    reader = looked(tmp_path)
    (tmp_path / "checkpoint.json").unlink()
    with pytest.raises(CorruptDataError):
        reader.look()
    assert reader.batch == 1


def test_no_checkpoint_is_one_clear_line_that_names_one_that_is_near(tmp_path):
    Query(tmp_path / "words").run(1)
    with pytest.raises(InvalidArgumentError, match=r"no checkpoint\.json.*Did you mean .*words\?"):
        CheckpointReader(str(tmp_path))
    with pytest.raises(InvalidArgumentError, match="Did you mean"):
        CheckpointReader(str(tmp_path / "words" / "spark"))
    with pytest.raises(InvalidArgumentError, match="cannot be opened"):
        CheckpointReader("gopher://somewhere/else")


def test_it_tells_a_running_query_from_one_that_is_silent_dead_or_ended(tmp_path):
    query = Query(tmp_path).run(1)

    def status(now):
        reader = looked(tmp_path)
        return state_of(reader, now)["query"]["status"]

    assert status(0.0) == "ended"
    lease = query.lease(1000.0)
    assert status(1010.0) == "running"
    assert status(1100.0) == "silent"
    lease.release()
    lease = query.lease(1000.0, host=socket.gethostname(), pid=os.getpid())
    assert status(1010.0) == "running"
    lease.release()
    query.lease(1000.0, host=socket.gethostname(), pid=2**22 + 12345)
    assert status(1010.0) == "died"


def test_backups_and_switches_of_roles_are_told(tmp_path):
    even = RoutingTable.even(4)
    beside = Ragged(np.arange(even.slots + 1), (even.slot_channels + 1) % 4)
    query = Query(tmp_path, table=even.evolve(slot_backups=beside), window=100).run(2)
    old = query.tables["stage0"]
    lost = old.slot_channels == 1
    roles = Ragged(np.arange(old.slots + 1), np.where(lost, 1, beside.channels))
    new = old.evolve(slot_channels=np.where(lost, 2, old.slot_channels), slot_backups=roles)
    query.batch(tables={"stage0": new})
    query.run(1)
    stage = state_of(looked(tmp_path), 0.0)["stages"][0]
    assert stage["table"]["slots_with_backups"] == even.slots
    assert sum(channel["backups"] for channel in stage["channels"]) == even.slots
    assert stage["movements"][0]["items"] == {"move": 0, "switch": int(lost.sum()), "copy": 0}


def test_the_load_of_an_empty_last_batch_is_that_of_the_one_before(tmp_path):
    Query(tmp_path, window=100).run(2).run(1, rows=0)
    stage = state_of(looked(tmp_path), 0.0)["stages"][0]
    assert stage["load_batch"] == 1
    assert sum(channel["rows"] for channel in stage["channels"]) == 4000
    assert stage["history"][-1]["rows"] == 0


def test_only_stages_of_the_present_strategy_are_shown(tmp_path):
    query = Query(tmp_path, stages=("stage0", "stage0-partial")).run(2)
    query.stages = ("stage0",)
    query.run(1)
    assert [stage["name"] for stage in state_of(looked(tmp_path), 0.0)["stages"]] == ["stage0"]


def test_the_state_of_a_thousand_channels_stays_small(tmp_path):
    Query(tmp_path, channels=1000, hot=0.01, window=100).run(1, rows=40_000)
    state = state_of(looked(tmp_path), 0.0)
    assert len(state["stages"][0]["channels"]) == 1000
    assert len(json.dumps(state)) < 500_000
