from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import evenkeel.metrics


def test_all_names_exactly_what_the_room_offers():
    offered = {
        name
        for name, value in vars(evenkeel.metrics).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(evenkeel.metrics.__all__) == offered


def test_the_room_needs_neither_spark_nor_numba():
    code = "import sys, evenkeel.metrics; assert not {'pyspark', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
