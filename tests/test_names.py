"""The names that ``import evenkeel as ek`` gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import evenkeel as ek

API = (Path(__file__).parents[1] / "docs" / "api.md").read_text()


@pytest.mark.parametrize("name", sorted({*ek.__all__} - {"__version__"}))
def test_a_name_is_there_completes_and_is_in_the_reference(name):
    given = getattr(ek, name)
    assert name in dir(ek)
    assert f"`ek.{name}`" in API
    if isinstance(given, type):
        assert given.__module__.startswith("evenkeel.")
        assert given.__doc__


def test_what_is_not_there_says_so():
    with pytest.raises(AttributeError, match="module 'evenkeel' has no attribute 'steam'"):
        ek.steam  # noqa: B018


def test_the_reference_names_nothing_else():
    assert set(re.findall(r"`ek\.(\w+)`", API)) == {*ek.__all__} - {"__version__"}


def test_names_that_need_no_spark_load_none():
    code = (
        "import sys, evenkeel as ek; ek.Controller, ek.ServiceLevels, ek.EvenkeelError, ek.PLANNERS, ek.ROUTERS\n"
        "ek.operators; print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
