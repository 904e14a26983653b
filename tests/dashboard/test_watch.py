"""The watch: looks by itself, and survives whatever a look runs into."""

from __future__ import annotations

import json

import pytest

from dashboard.checkpoints import Query
from evenkeel.dashboard import CheckpointReader
from evenkeel.dashboard.watch import Watch
from evenkeel.errors import StorageError


@pytest.mark.parametrize(
    ("error", "told"),
    [(StorageError("The disk is gone."), "The disk is gone."), (RuntimeError("surprise"), "RuntimeError('surprise')")],
    ids=["an error of ours", "anything else"],
)
def test_a_look_that_fails_is_told_and_the_last_state_stays(tmp_path, monkeypatch, error, told):
    query = Query(tmp_path).run(2)
    reader = CheckpointReader(str(tmp_path))
    watch = Watch(reader)
    watch.look()
    with monkeypatch.context() as broken:

        def fail(_progress):
            raise error

        broken.setattr(reader, "look", fail)
        watch.look()
    assert watch.seen.state["trouble"] == told
    assert watch.seen.state["batch"] == 1
    query.run(1)
    watch.look()
    assert watch.seen.state["trouble"] == ""
    assert watch.seen.state["batch"] == 2


def test_the_tag_changes_with_the_state_and_only_then(tmp_path):
    query = Query(tmp_path).run(1)
    watch = Watch(CheckpointReader(str(tmp_path)))
    watch.look()
    first = watch.seen
    watch.look()
    assert watch.seen.tag == first.tag
    query.run(1)
    watch.look()
    assert watch.seen.tag != first.tag
    assert json.loads(watch.seen.text) == json.loads(json.dumps(watch.seen.state))


def test_a_first_look_shows_batches_as_they_are_read(tmp_path):
    Query(tmp_path, window=100).run(7)
    watch = Watch(CheckpointReader(str(tmp_path)))
    shown = []
    look = watch._show_progress

    def noted(done, of):
        look(done, of)
        shown.append(watch.seen.state["batch"])

    watch._show_progress = noted
    watch.look()
    assert shown[:6] == [None, None, None, None, 4, 4]
    assert watch.seen.state["batch"] == 6
