"""Balanced, stateful, key-grouped streams on stock Apache Spark, from Python."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0.dev0"

__all__ = ["__version__", "join", "operators", "stream"]

_LAZY = {"join": "evenkeel.spark.join", "operators": "evenkeel.operators", "stream": "evenkeel.spark.api"}


def __getattr__(name: str) -> Any:
    # On first use, so that `import evenkeel` loads neither Spark nor a compiler.
    if name not in _LAZY:
        raise AttributeError(f"module 'evenkeel' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_LAZY[name])
    return module if name == "operators" else getattr(module, name)
