"""Operators, strategies and sinks by their names, or of the user's own as ``module:Name``."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any

from evenkeel import operators
from evenkeel.control import Controller
from evenkeel.jobs.document import unknown
from evenkeel.jobs.values import INVALID
from evenkeel.operators import Operator, PerKey, first_story
from evenkeel.planning import PLANNERS, Planner
from evenkeel.routing import ROUTERS, Router

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evenkeel.jobs.lines import Path
    from evenkeel.jobs.values import Reader

__all__ = ["OPERATORS", "STRATEGIES", "read_operator", "read_sink", "read_strategy"]

_CLASSES = [one for one in vars(operators).values() if inspect.isclass(one) and issubclass(one, Operator)]

OPERATORS: dict[str, Callable[..., Operator]] = {
    one.name: one for one in _CLASSES if not inspect.isabstract(one) and one is not PerKey
} | {"first_story": first_story}
"""Every operator that can be said in plain values, by its name."""

STRATEGIES: dict[str, Callable[..., Planner | Router]] = {
    **ROUTERS,
    **PLANNERS,
    "key_grouping": PLANNERS["stay_put"],  # the table that stays as it is routes just so
}
"""Every strategy by its name; where a planner and a router share one, the planner."""

_REFERENCE = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def read_operator(reader: Reader, found: Any, path: Path) -> Any:
    """Read an operator: its name, or a table of its name and parameters."""
    return _make_named(reader, found, path, "operator", OPERATORS, (Operator,))


def read_strategy(reader: Reader, found: Any, path: Path, channels: int) -> Any:
    """Read a strategy: its name, or a table of its name and options; routers are made for so many channels."""
    kinds = (Planner, Router, Controller)
    return _make_named(reader, found, path, "strategy", STRATEGIES, kinds, channels=channels, sources=1)


def read_sink(reader: Reader, found: Any, path: Path) -> Any:
    """Read a sink: a path, ``console``, or a function of the results and the batch as ``module:function``."""
    if not isinstance(found, str):
        return reader.mistake(path, f"sink must be a path, 'console' or 'module:function'; got {found!r}.")
    if found == "memory":
        return reader.mistake(path, "the sink 'memory' keeps results for the Python that reads them; take a path.")
    if not _REFERENCE.fullmatch(found):
        return found
    made = _load(reader, found, path)
    return made if made is INVALID or callable(made) else reader.mistake(path, f"{found!r} is not a function.")


def _make_named(
    reader: Reader,
    found: Any,
    path: Path,
    what: str,
    known: Mapping[str, Callable[..., Any]],
    kinds: tuple[type, ...],
    **given: Any,
) -> Any:
    name, options, at = found, {}, path
    if isinstance(found, dict) and "name" in found:
        name, at = found["name"], (*path, "name")
        options = {option: value for option, value in found.items() if option != "name"}
    if not isinstance(name, str):
        return reader.mistake(at, f"{what} must be a name, or a table with a 'name' and parameters; got {found!r}.")
    make = _load(reader, name, at) if _REFERENCE.fullmatch(name) else known.get(name)
    if make is None:
        return reader.mistake(at, unknown(what, name, known))
    if isinstance(make, kinds) and not options:
        return make
    if not callable(make):
        return make if make is INVALID else reader.mistake(at, f"{name!r} is no {what}, but {make!r}.")
    asked = {name: value for name, value in given.items() if name in inspect.signature(make).parameters}
    made = reader.call(make, options, path, what=f"{what} {name!r}", **asked)
    if made is INVALID or isinstance(made, kinds):
        return made
    return reader.mistake(at, f"{name!r} makes {made!r}, which is no {what}.")


def _load(reader: Reader, reference: str, path: Path) -> Any:
    """Import what a reference names."""
    module, _, name = reference.partition(":")
    try:
        loaded = importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - a user's module may fail in any way
        return reader.mistake(path, f"importing {module!r} failed: {error}")
    if not hasattr(loaded, name):
        return reader.mistake(path, unknown("name", name, dir(loaded), f" in {module!r}"))
    return getattr(loaded, name)
