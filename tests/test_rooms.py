"""The rooms: who may know whom, and what a fresh interpreter loads."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import evenkeel
from evenkeel import errors

KNOWS_SPARK = {"spark", "cli"}
ROOMS = [f"evenkeel.{room.name}" for room in pkgutil.iter_modules(evenkeel.__path__)]
PURE = [room for room in ROOMS if room.split(".")[1] not in KNOWS_SPARK]


def modules_of(room: str) -> list[str]:
    package = importlib.import_module(room)
    inner = getattr(package, "__path__", None)
    return [room, *(m.name for m in pkgutil.walk_packages(inner, f"{room}."))] if inner else [room]


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_loads_no_spark(room):
    code = "\n".join(
        ["import sys", *(f"import {module}" for module in modules_of(room)), "print('pyspark' in sys.modules)"]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_importing_evenkeel_loads_neither_spark_nor_a_compiler():
    code = "import sys, evenkeel, evenkeel.cli; print({'pyspark', 'numba', 'scipy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("module", [m for room in ROOMS for m in modules_of(room)])
def test_all_is_exact(module):
    loaded = importlib.import_module(module)
    for name in getattr(loaded, "__all__", []):
        assert hasattr(loaded, name)
    if module == "evenkeel.errors":
        raised = {n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, errors.EvenkeelError)}
        assert set(errors.__all__) == raised


def test_the_exception_tree_is_drawn_as_it_is():
    for name in errors.__all__:
        assert name in (errors.__doc__ or "")
        assert issubclass(getattr(errors, name), errors.EvenkeelError)
