"""Workers do not wait for what is no work."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evenkeel.spark.worker import promptly

_TWO_TASKS = """
import gc
from evenkeel.spark.worker import promptly
for _ in range(3):
    print(list(promptly([1, 2])), gc.get_freeze_count() > 0)
"""


def _open_files() -> set[str]:
    return {path.name for path in Path("/dev/fd").iterdir()}


def test_from_the_second_task_on_no_garbage_is_looked_for_in_what_stays():
    done = subprocess.run([sys.executable, "-c", _TWO_TASKS], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[1, 2] False", "[1, 2] True", "[1, 2] True"], done.stderr


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
