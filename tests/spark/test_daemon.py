"""Workers that our daemon forks find all done that the first batch would wait for."""

from __future__ import annotations

import subprocess
import sys

_FIRST_BATCH = """
import sys
from evenkeel.spark.daemon import warm_up
warm_up()

import pyarrow as pa
from numba.core.dispatcher import Dispatcher
from evenkeel.hashing import hash_keys
from evenkeel.operators import Groups
from evenkeel.routing import RoutingTable
from evenkeel.state import second_hash

def loops():
    ours = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("evenkeel.")]
    return {(name, sign) for names in ours for name, loop in names.items() if isinstance(loop, Dispatcher)
            for sign in loop.signatures}

modules, importers, loaded = set(sys.modules), list(sys.path_importer_cache), loops()
rows = pa.table({"word": ["a", "b", "a"], "n": [1, 2, 3], "day": pa.array([1, 2, 3], pa.int32())})
for names in (["word"], ["n"], ["day"], ["word", "n"]):
    columns = [rows[name] for name in names]
    hashes = hash_keys(*columns)
    Groups.of(rows, names, hashes, second_hash(*columns))
    RoutingTable.even(3).home(hashes)
print(loops() - loaded, sorted(set(sys.modules) - modules), importers)
"""


def test_a_first_batch_imports_and_loads_nothing():
    done = subprocess.run([sys.executable, "-c", _FIRST_BATCH], capture_output=True, text=True, check=False)
    assert done.stdout == "set() [] []\n", done.stderr
