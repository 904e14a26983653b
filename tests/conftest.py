"""Shared by all tests: one lazy Spark session, and Hypothesis settings that print what failed."""

from __future__ import annotations

import math
import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Tests end before code would have become fast that Java compiles a second time, on a core that they wait for.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
settings.register_profile("evenkeel", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("evenkeel")


def pytest_configure(config: pytest.Config) -> None:
    """Drop compiled loops that are older than any of their sources; know what older versions of Spark leave open.

    Numba's cache looks only at the file of the loop itself, not at the files of the helpers inlined into it.
    """
    if version("pyspark") < "4.3":
        # They leave the sockets that results come through to the garbage collector.
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
        config.addinivalue_line(
            "filterwarnings", "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
        )
    package = Path(__file__).parents[1] / "src" / "evenkeel"
    cached = [file for kind in ("*.nbi", "*.nbc") for file in package.rglob(kind)]
    sources = [*package.rglob("_kernels*.py"), *(package / "_kernels").glob("*.py")]
    if min(map(_changed, cached), default=math.inf) < max(map(_changed, sources)):
        for file in cached:
            file.unlink(missing_ok=True)


def _changed(file: Path) -> float:
    """When a file was last changed; never, if another run of the tests has just removed it."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return math.inf


@pytest.fixture(scope="session")
def spark():
    """One local session for all Spark tests; it starts when the first of them asks."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    tests = Path(__file__).parent  # Spark's workers import functions of tests by their modules' names.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(tests.parent), str(tests), os.environ.get("PYTHONPATH", "")])
    from pyspark.sql import SparkSession

    from evenkeel.spark.jobs import WITHOUT_PROCESSES

    session = (
        SparkSession.builder.master("local[2]")
        .appName("evenkeel-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.streaming.checkpointFileManagerClass", WITHOUT_PROCESSES)  # a tenth of a second a batch
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
