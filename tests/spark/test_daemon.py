"""Workers that our daemon forks find all done that the first batch would wait for."""

from __future__ import annotations

import subprocess
import sys

_FIRST_BATCH = """
import sys
import tempfile
from pathlib import Path
from evenkeel.spark.daemon import warm_up
warm_up()

import pyarrow as pa
from numba.core.dispatcher import Dispatcher
from evenkeel.hashing import hash_keys
from evenkeel.operators import Groups
from evenkeel.routing import RoutingTable
from evenkeel.state import both_hashes
from evenkeel.state.environment import SharedEnvironment
from evenkeel.state.identity import pack
from evenkeel.state.reader import Reader

def loops():
    ours = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("evenkeel.")]
    return {(name, sign) for names in ours for name, loop in names.items() if isinstance(loop, Dispatcher)
            for sign in loop.signatures}

importers = list(sys.path_importer_cache)
shared = SharedEnvironment.open(Path(tempfile.mkdtemp()), 1 << 20)
modules, loaded = set(sys.modules), loops()
rows = pa.table({"word": ["a", "b", "a"], "n": [1, 2, 3], "day": pa.array([1, 2, 3], pa.int32())})
for names in (["word"], ["n"], ["day"], ["word", "n"]):
    columns = [rows[name] for name in names]
    hashes = hash_keys(*columns)
    Groups.of(rows, names, *both_hashes(*columns))
    RoutingTable.even(3).home(hashes)
keys = pack([1, 2], [3, 4], [5, 6])
with shared.env.begin(write=True) as txn:
    for database in (shared.base, shared.recent):
        txn.put(keys[0], b"state", db=database)
with shared.env.begin() as txn:
    reader = Reader(txn, shared)
    assert reader.lookup(keys).to_pylist() == [b"state", None]
    assert [values.to_pylist() for _, values in reader.ranges(keys, keys)] == [[b"state"]]
print(loops() - loaded, sorted(set(sys.modules) - modules), importers)
"""


def test_a_first_batch_imports_and_loads_nothing():
    done = subprocess.run([sys.executable, "-c", _FIRST_BATCH], capture_output=True, text=True, check=False)
    assert done.stdout == "set() [] []\n", done.stderr
