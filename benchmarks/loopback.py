"""A Spark standalone cluster on loopback addresses: 127.0.0.2, 127.0.0.3 … are its hosts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
REPOSITORY = Path(__file__).parents[1]


def environment(**more: str) -> dict[str, str]:
    """Variables for a process that is part of a cluster."""
    path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH", "")])
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": path,
        "SPARK_DAEMON_MEMORY": "256m",
        **more,
    }


def until(condition, what: str, seconds: float = 120) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)


class Cluster:
    """A master, and workers that can be added and killed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.processes: list[subprocess.Popen] = []

    @property
    def address(self) -> str:
        """Where its master is."""
        return f"spark://127.0.0.1:{self.port}"

    def __enter__(self):
        self._start("master.Master", "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0")
        until(self._listens, "the master starts")
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(30)

    def add_host(self, number: int, cores: int = 1, memory: str = "600m") -> subprocess.Popen:
        """Start a worker on 127.0.0.<number>; what its executors put on disk is in the host's folder."""
        host = f"127.0.0.{number}"
        place = self.directory / host
        where = ["--host", host, "--cores", str(cores), "--memory", memory, "--webui-port", "0"]
        where += ["--work-dir", str(place), self.address]
        disks = {"SPARK_LOCAL_DIRS": str(place / "disk")}
        return self._start("worker.Worker", *where, SPARK_LOCAL_HOSTNAME=host, SPARK_LOCAL_IP=host, **disks)

    @property
    def workers(self) -> int:
        """How many workers have come to the master so far."""
        return (self.directory / "log").read_text().count("Registering worker")

    def executors(self, number: int) -> list[int]:
        """Give the process ids of the executors of a host; only of this cluster."""
        found = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    command = (process / "cmdline").read_bytes().decode().split("\0")
                except OSError:
                    continue
                mine = any(str(self.directory) in part or f":{self.port}" in part for part in command)
                is_executor = "org.apache.spark.executor.CoarseGrainedExecutorBackend" in command
                if is_executor and f"127.0.0.{number}" in command and (mine or self._below_directory(process)):
                    found.append(int(process.name))
        return found

    def joined(self, number: int) -> bool:
        """Whether an executor of a host has told the driver that it is there."""
        logs = (self.directory / f"127.0.0.{number}").glob("app-*/*/stderr")
        return any("Registered BlockManager" in log.read_text() for log in logs)

    def _below_directory(self, process: Path) -> bool:
        try:
            return (process / "cwd").readlink().is_relative_to(self.directory)
        except OSError:
            return False

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _start(self, what: str, *arguments: str, **variables: str) -> subprocess.Popen:
        command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{what}", *arguments]
        with (self.directory / "log").open("ab") as log:
            process = subprocess.Popen(
                command, env=environment(**variables), stdout=log, stderr=log, start_new_session=True
            )
        self.processes.append(process)
        return process


def kill_with_children(process: subprocess.Popen) -> None:
    """Kill a process and all that it has started, and those in turn, at one moment."""
    parents = {}
    for found in Path("/proc").iterdir():
        if found.name.isdigit():
            with suppress(OSError):
                parents[int(found.name)] = int((found / "stat").read_text().rpartition(")")[2].split()[1])
    doomed = [process.pid]
    for parent in doomed:
        doomed += [child for child, its_parent in parents.items() if its_parent == parent]
    for each in doomed:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait()


def start_driver(script: Path, log: Path, *arguments: str) -> subprocess.Popen:
    """Run a script as a driver, in a process group of its own."""
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, script, *arguments], env=environment(), stdout=out, stderr=out, start_new_session=True
        )
