"""Workers do not wait for what is no work."""

from __future__ import annotations

import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evenkeel.spark.worker import promptly

_TASKS = """
import gc, importlib
from evenkeel.spark.worker import promptly
print(list(promptly([1, 2])))
before = gc.get_freeze_count()
for module in ("statistics", "statistics", "plistlib", "plistlib"):
    importlib.import_module(module)
    assert list(promptly([1, 2])) == [1, 2]
    print(gc.get_freeze_count() > before)
    before = gc.get_freeze_count()
gc.collect()
print(len(gc.get_objects()) < 2000)
"""

_COLUMNS = """
import resource, sys
import numpy as np
from evenkeel.spark.worker import promptly
if sys.argv[1] == "promptly":
    list(promptly([1]))
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def batch():
    before = faults()
    columns = [np.ones(1 << 20, np.uint8) for _ in range(8)]
    return faults() - before
batch()
print(sum(batch() for _ in range(10)))
"""


def _open_files() -> set[str]:
    return {path.name for path in Path("/dev/fd").iterdir()}


def test_no_garbage_is_looked_for_in_what_tasks_before_have_imported_whichever_they_were():
    """A worker's first task may import little: its second one does not stop looking for good."""
    done = subprocess.run([sys.executable, "-c", _TASKS], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[1, 2]", "True", "False", "True", "False", "True"], done.stderr


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep what is freed")
def test_memory_that_a_batch_has_freed_is_there_for_the_next():
    faults = [
        int(subprocess.run([sys.executable, "-c", _COLUMNS, how], capture_output=True, text=True, check=True).stdout)
        for how in ("promptly", "as it is")
    ]
    assert faults[0] < faults[1] / 10, "pages of 10 batches that the system had to give"


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux has TCP_QUICKACK")
def test_what_spark_sends_is_acknowledged_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as spark:
        worker, _ = server.accept()
        with worker:

            def delays() -> bool:
                return not worker.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)

            def delay() -> None:
                worker.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)

            delay()
            assert delays()
            seen = []
            for batch in promptly(iter([1, 2])):
                seen.append((batch, delays()))
                delay()
            assert seen == [(1, False), (2, False)]
            assert not delays()
            assert worker.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "results wait for nothing"
            spark.sendall(b"x")
            assert worker.recv(1) == b"x"


def test_no_handles_are_left_open(tmp_path):
    ours, theirs = socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)), ours, theirs, (tmp_path / "file").open("w"):
        before = _open_files()
        assert list(promptly([1])) == [1]
        broken_off = promptly([1, 2])
        next(broken_off)
        broken_off.close()
        assert _open_files() == before
