from __future__ import annotations

import os
import subprocess
import sys

import pytest
from pyarrow import fs

from evenkeel.errors import CheckpointInUseError
from evenkeel.state import Files, Lease


@pytest.fixture
def files(tmp_path):
    return Files(fs.LocalFileSystem(), str(tmp_path))


def lease(files, owner, host="here", pid=None):
    return Lease(files, owner, host, pid or os.getpid(), timeout_seconds=60)


def dead_process():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_a_second_query_is_refused_and_told_who_holds_the_checkpoint(files):
    lease(files, "first").acquire(now=100)
    with pytest.raises(CheckpointInUseError, match=r"in use by first on here, process .* seen 30 s ago") as caught:
        lease(files, "second").acquire(now=130)
    assert (caught.value.owner, caught.value.host, caught.value.pid) == ("first", "here", os.getpid())
    assert list(files.list("lease")) == ["lease/first-000000001.json"]


def test_a_lease_that_was_given_up_can_be_taken(files):
    lease(files, "first").acquire(now=100).release()
    lease(files, "second").acquire(now=101)


def test_a_holder_whose_process_is_gone_is_replaced_at_once(files):
    lease(files, "first", pid=dead_process()).acquire(now=100)
    lease(files, "second").acquire(now=101)


def test_a_holder_on_another_host_is_replaced_after_the_timeout_only(files):
    lease(files, "first", host="there", pid=dead_process()).acquire(now=100)
    with pytest.raises(CheckpointInUseError):
        lease(files, "second").acquire(now=160)
    lease(files, "second").acquire(now=161)


def test_a_holder_that_was_replaced_is_told_so_when_it_renews(files):
    first = lease(files, "first", host="there").acquire(now=100)
    lease(files, "second").acquire(now=200)
    with pytest.raises(CheckpointInUseError, match="took over"):
        first.renew(now=201)


def test_renewing_keeps_a_lease_alive(files):
    first = lease(files, "first").acquire(now=0)
    for now in range(50, 500, 50):
        first.renew(now=now)
    with pytest.raises(CheckpointInUseError):
        lease(files, "second").acquire(now=500)
    assert len(files.list("lease")) == 1


def test_the_same_owner_may_start_again(files):
    lease(files, "first").acquire(now=0)
    lease(files, "first").acquire(now=1).renew(now=31)


def test_a_lease_is_written_six_times_within_its_timeout_at_most(files):
    first = lease(files, "first").acquire(now=0)
    written = []
    for now in range(121):
        first.renew(now)
        written += [path for path in files.list("lease") if path not in written]
    assert len(written) == 1 + 12


def test_a_lease_that_was_given_up_is_not_renewed(files):
    first = lease(files, "first").acquire(now=0)
    first.release()
    with pytest.raises(CheckpointInUseError):
        first.renew(now=1)


def test_a_lease_that_was_cut_short_while_written_is_not_one(files):
    stored = files.write_document("lease/torn-000000001.json", "lease", {"owner": "torn"})
    files.write(stored.path, files.read(stored).to_pybytes()[:10])
    lease(files, "second").acquire(now=0)


def test_of_two_that_come_at_once_at_most_one_gets_in(files, monkeypatch):
    first, second = lease(files, "first"), lease(files, "second")
    write = Lease._write

    def both_write_before_either_looks(self, now):
        write(self, now)
        if self is first:
            write(second, now)

    monkeypatch.setattr(Lease, "_write", both_write_before_either_looks)
    with pytest.raises(CheckpointInUseError):
        first.acquire(now=0)
    monkeypatch.undo()
    second.acquire(now=0)
