"""Spark's Python daemon, with all that our tasks import already imported: workers that it forks start at once.

For a session made with ``spark.python.daemon.module`` set to this module's name; all else is as with Spark's own.
"""

from __future__ import annotations

from importlib import import_module

from pyspark.daemon import manager

_NEEDED = (
    "pyspark.worker",
    "evenkeel.operators",
    "evenkeel.spark.probe",
    "evenkeel.spark.routes",
    "evenkeel.spark.task",
)

if __name__ == "__main__":
    for _module in _NEEDED:
        import_module(_module)
    manager()
