"""A planner that was warmed up compiles nothing more when it first plans."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own, since others have compiled much in this one.
SCRIPT = """
import gc
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from evenkeel.planning import LoadSnapshot, make_planner, warm_up
from evenkeel.routing import RoutingTable

def compiled():
    return sum(len(found.signatures) for found in gc.get_objects() if isinstance(found, Dispatcher))

table = RoutingTable.even(8)
keys = np.random.default_rng(1).integers(-(2**62), 2**62, 5000)
loads = LoadSnapshot.of_keys(keys, 1000 / np.arange(1, 5001), slots=table.slots)
planner = make_planner(sys.argv[1])
warm_up(planner, table)
before = compiled()
following = planner.plan(loads, table).table
for channels in (8, 10, 5):
    planner.plan(loads, following, channels)
print(before, compiled(), following != table)
"""


@pytest.mark.parametrize("name", ["keel", "elb", "readj", "ftlb"])
def test_a_planner_that_was_warmed_up_compiles_nothing_more(name):
    done = subprocess.run([sys.executable, "-c", SCRIPT, name], capture_output=True, text=True, check=True)
    before, after, moved = done.stdout.split()
    assert int(before) > 0
    assert after == before
    assert moved == "True"
