"""Versioned state against a dictionary per version, under retries, crashes, damage, cleaning and changes of host."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pyarrow import fs

from evenkeel.errors import CorruptDataError
from evenkeel.state import Delta, Selection, clean, held_copies, working_copy
from evenkeel.state import store as store_module
from state.state_world import SLOTS, Stage, as_dict, get, keys_of, name_of, put, rows_of, totals_of

NUMBERS = st.integers(0, 60)
VALUES = st.binary(max_size=12) | st.just(b"x" * 5000)
PUTS = st.dictionaries(NUMBERS, st.none() | VALUES, max_size=12)
HOSTS = st.sampled_from(["host-a", "host-b", "host-c"])
ENDS = st.sampled_from(["committed"] * 6 + ["before delta", "after delta", "after manifest", "within commit"])


def listed(numbers):
    slots, hashes, _ = keys_of(sorted(numbers))
    return slots, hashes


SELECTIONS = st.builds(
    lambda slots, spare, keys: Selection.of(sorted(slots), listed(spare), listed(keys)),
    st.sets(st.integers(0, SLOTS - 1), max_size=2),
    st.sets(NUMBERS, max_size=3),
    st.sets(NUMBERS, max_size=3),
)


def selected(state, selection):
    slots, spared, keys = selection.slots, selection.spared, selection.keys
    return {
        name: value
        for name, value in state.items()
        if name[:2] in keys or (name[0] in slots and name[:2] not in spared)
    }


class VersionedState(RuleBasedStateMachine):
    limits: ClassVar = {"_FOLD_AT": 2}  # so that few keys are enough to stay in `recent`

    def __init__(self):
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.stage = Stage(
            fs.LocalFileSystem(), self.place / "checkpoint", self.place / "work", snapshot_every=3, map_bytes=1 << 20
        )
        self.neighbour = Stage(fs.LocalFileSystem(), self.place / "beside", self.place / "work-beside")
        self.usual = {name: getattr(working_copy, name) for name in self.limits}
        vars(working_copy).update(self.limits)
        self.patience, store_module._PATIENCE = store_module._PATIENCE, 3
        self.versions = {-1: {}}
        self.kept = []
        self.views = []
        self.asking = []

    def teardown(self):
        for view, _ in self.views:
            view.close()
        vars(working_copy).update(self.usual)
        store_module._PATIENCE = self.patience
        shutil.rmtree(self.place)

    @property
    def last(self):
        return max(self.versions)

    @rule(values=PUTS)
    def another_channel_writes(self, values):
        self.neighbour.batch(values)

    @rule(
        first=PUTS,
        then=PUTS,
        imported=st.dictionaries(NUMBERS, VALUES, max_size=6),
        dropped=st.none() | SELECTIONS,
        adopted=st.none() | SELECTIONS,
        host=HOSTS,
        end=ENDS,
        snapshot=st.sampled_from([None, True, False]),
        later=st.booleans(),
        knows_previous=st.booleans(),
    )
    def run_the_next_batch(self, first, then, imported, dropped, adopted, host, end, snapshot, later, knows_previous):
        batch, model = self.last + 1, dict(self.versions[self.last])
        store, attempt = self.stage.store(host), f"a{next(self.stage.attempts)}"
        with self.stage.open(host) as view, self.neighbour.open() as beside:
            delta = Delta()
            if dropped:
                gone = selected(model, dropped)
                assert rows_of(view.export(dropped)) == gone
                delta.drop(dropped)
                model = {name: value for name, value in model.items() if name not in gone}
            if adopted:
                if held := selected(model, adopted):
                    delta.drop(adopted)  # what it is to adopt, a channel holds no more
                model = {name: value for name, value in model.items() if name not in held}
                found = selected(rows_of(beside.scan()), adopted)
                assert delta.adopt(beside, adopted) == sum(20 + len(value) for value in found.values())
                model |= found
            if imported:
                columns = [*keys_of(list(imported)), pa.array(list(imported.values()), pa.binary())]
                batches = [pa.RecordBatch.from_arrays(columns, names=["slot", "hash", "hash2", "value"])]
                assert delta.import_(batches) == sum(20 + len(value) for value in imported.values())
                model |= {name_of(number): value for number, value in imported.items()}
            for values in (first, then):
                seen = get(view, list(values), delta)
                assert seen == {number: model.get(name_of(number)) for number in values}
                previous = pa.array(list(seen.values()), pa.binary()) if knows_previous else None
                put(delta, values, previous)
                for number, value in values.items():
                    model.pop(name_of(number), None)
                    if value is not None:
                        model[name_of(number)] = value
            if end == "before delta":
                return
            file = store.write_delta(view, delta, batch=batch, attempt=attempt)
            assert as_dict(file.totals) == totals_of(model)
            if end == "after delta":
                return
            ref = store.write_manifest(view, file, batch=batch, attempt=attempt, snapshot=snapshot, later=later)
            if end == "after manifest":
                return
        checkpoint = self.stage.checkpoint
        commit = checkpoint.commit(batch, [ref], epoch=batch, metadata={"host": host})
        if end == "within commit":
            path = self.place / "checkpoint" / f"commits/b{batch:012d}.json"
            path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])
            return
        assert checkpoint.commit(batch, [ref], epoch=batch, metadata={"host": host}) == commit
        self.versions[batch] = model
        self.kept.append(batch)
        if store.asked:
            self.asking.append((store, ref))

    @precondition(lambda self: self.asking)
    @rule(data=st.data())
    def write_a_snapshot_that_was_asked_for(self, data):
        store, ref = self.asking.pop(data.draw(st.integers(0, len(self.asking) - 1)))
        if ref.batch in self.kept:
            with store.open(ref) as view:
                store.write_asked(view)

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), host=HOSTS)
    def open_any_kept_version_on_any_host(self, data, host):
        batch = data.draw(st.sampled_from(self.kept))
        with self.stage.open(host, batch) as view:
            self.check(view, batch)

    @precondition(lambda self: len(self.views) < 3)
    @rule(host=HOSTS)
    def keep_a_view_open(self, host):
        self.views.append((self.stage.open(host), self.last))

    @precondition(lambda self: self.views)
    @rule()
    def close_a_view(self):
        view, version = self.views.pop(0)
        self.check(view, version)
        view.close()

    @rule(keep=st.integers(1, 4))
    def clean_up(self, keep):
        cleaned = clean(self.stage.checkpoint, keep=keep)
        assert not cleaned.unreadable
        self.kept = self.kept[-keep:]
        assert not clean(self.stage.checkpoint, keep=keep).removed

    @rule(host=HOSTS)
    def lose_a_host(self, host):
        self.stage.store(host).forget()
        assert not held_copies(self.place / "work" / host)

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), how=st.sampled_from(["truncated", "altered", "removed"]))
    def damage_a_file(self, data, how):
        root = self.place / "checkpoint"
        files = sorted(path for path in root.rglob("*") if path.is_file() and path.name != "checkpoint.json")
        path = data.draw(st.sampled_from(files))
        whole = path.read_bytes()
        where = data.draw(st.integers(0, len(whole) - 1))
        if how == "removed":
            path.unlink()
        elif how == "truncated":
            path.write_bytes(whole[:where])
        else:
            path.write_bytes(
                whole[:where] + bytes([whole[where] ^ 1 << data.draw(st.integers(0, 7))]) + whole[where + 1 :]
            )
        for batch in self.kept:
            self.recovers_exactly_or_names("a new host", batch, path)
            self.recovers_exactly_or_names("host-a", batch, path)
            self.stage.store("a new host").forget()
        path.write_bytes(whole)

    def recovers_exactly_or_names(self, host, batch, damaged):
        try:
            with self.stage.open(host, batch) as view:
                self.check(view, batch)
        except CorruptDataError as error:
            assert damaged.name in str(error)  # noqa: PT017 - either outcome is right

    def check(self, view, version):
        model = self.versions[version]
        assert rows_of(view.scan()) == model
        assert as_dict(view.totals()) == totals_of(model)
        assert get(view, range(30)) == {number: model.get(name_of(number)) for number in range(30)}

    @invariant()
    def the_last_commit_is_the_last_version(self):
        last = self.stage.checkpoint.last_commit()
        assert (last.batch if last else -1) == self.last


class LargeVersionedState(VersionedState):
    limits: ClassVar = {"_FOLD_AT": 2, "_LARGE_PAGES": 1, "_PARTS": 3}  # `base` is folded into part by part


VersionedState.TestCase.settings = LargeVersionedState.TestCase.settings = settings(
    max_examples=80, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
test_versioned_state_equals_a_dictionary_per_version = VersionedState.TestCase
test_so_does_large_state = LargeVersionedState.TestCase
