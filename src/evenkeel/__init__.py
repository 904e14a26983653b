"""Balanced, stateful, key-grouped streams on stock Apache Spark, from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel import operators
    from evenkeel.control import Controller, ControlOptions, Elasticity, ServiceLevels
    from evenkeel.errors import EvenkeelError
    from evenkeel.planning import PLANNERS
    from evenkeel.routing import ROUTERS
    from evenkeel.spark.api import stream
    from evenkeel.spark.join import join
    from evenkeel.spark.query import Query
    from evenkeel.spark.sinks import Files, Memory

__version__ = "0.1.0.dev0"

__all__ = [
    "PLANNERS",
    "ROUTERS",
    "ControlOptions",
    "Controller",
    "Elasticity",
    "EvenkeelError",
    "Files",
    "Memory",
    "Query",
    "ServiceLevels",
    "__version__",
    "join",
    "operators",
    "stream",
]

_LAZY = {
    "PLANNERS": "evenkeel.planning",
    "ROUTERS": "evenkeel.routing",
    "ControlOptions": "evenkeel.control",
    "Controller": "evenkeel.control",
    "Elasticity": "evenkeel.control",
    "EvenkeelError": "evenkeel.errors",
    "Files": "evenkeel.spark.sinks",
    "Memory": "evenkeel.spark.sinks",
    "Query": "evenkeel.spark.query",
    "ServiceLevels": "evenkeel.control",
    "join": "evenkeel.spark.join",
    "operators": "evenkeel.operators",
    "stream": "evenkeel.spark.api",
}


def __getattr__(name: str) -> Any:
    # On first use, so that `import evenkeel` loads neither Spark nor a compiler.
    if name not in _LAZY:
        raise AttributeError(f"module 'evenkeel' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_LAZY[name])
    return module if name == "operators" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
