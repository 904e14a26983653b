"""Balanced, stateful, key-grouped streams on stock Apache Spark, from Python."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0.dev0"

__all__ = ["__version__", "operators", "stream"]


def __getattr__(name: str) -> Any:
    # On first use, so that `import evenkeel` loads neither Spark nor a compiler.
    if name == "stream":
        from evenkeel.spark.api import stream

        return stream
    if name == "operators":
        import importlib

        return importlib.import_module("evenkeel.operators")
    raise AttributeError(f"module 'evenkeel' has no attribute {name!r}")
