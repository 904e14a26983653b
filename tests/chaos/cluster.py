"""A Spark standalone cluster on loopback addresses: 127.0.0.2, 127.0.0.3 … are its hosts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
REPOSITORY = Path(__file__).parents[2]


def environment(**more: str) -> dict[str, str]:
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

    def add_host(self, number: int, cores: int = 1) -> subprocess.Popen:
        """Start a worker on 127.0.0.<number>."""
        host = f"127.0.0.{number}"
        where = ["--host", host, "--cores", str(cores), "--memory", "600m", "--webui-port", "0"]
        where += ["--work-dir", str(self.directory / host), self.address]
        return self._start("worker.Worker", *where, SPARK_LOCAL_HOSTNAME=host, SPARK_LOCAL_IP=host)

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


def start_job(directory: Path, script: str, *arguments: str) -> subprocess.Popen:
    """Run a script of this folder as a driver, in a process group of its own."""
    with (directory / "job.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, REPOSITORY / "tests" / "chaos" / script, *arguments],
            env=environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def commits(directory: Path) -> int:
    """Count the batches that are committed; old commits are removed, so the last one's number tells."""
    numbers = [int(path.name[1:13]) for path in directory.glob("checkpoint/commits/*.json")]
    return 1 + max(numbers, default=-1)
