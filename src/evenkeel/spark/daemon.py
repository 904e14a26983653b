"""Spark's Python daemon, with all that our tasks need already imported and loaded: workers it forks start at once.

For a session made with ``spark.python.daemon.module`` set to this module's name; all else is as with Spark's own.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

import numpy as np
import pyarrow as pa
from pyspark.daemon import manager

_NEEDED = (
    "pyspark.worker",
    "evenkeel.spark.probe",
    "evenkeel.spark.routes",
    "evenkeel.spark.task",
)


def warm_up() -> None:
    """Do what every worker does first: import, load compiled loops, and group, hash, route and encode some keys."""
    for module in _NEEDED:
        import_module(module)
    from evenkeel.hashing import hash_keys
    from evenkeel.operators import Groups, RowCodec
    from evenkeel.routing import RoutingTable
    from evenkeel.state import both_hashes
    from evenkeel.state.pages import load_loops

    rows = pa.table({"text": ["a"], "long": [1], "int": pa.array([1], pa.int32())})
    hash_keys(*rows.columns)
    hashes, hashes2 = both_hashes(*rows.columns)
    Groups.of(rows.filter(pa.array([True])), rows.column_names, hashes, hashes2)
    RoutingTable.even(2).evolve(pin_hashes=hashes, pin_channels=np.ones(1, np.int64)).home(hashes)
    codec = RowCodec(rows.schema)
    codec.decode(codec.encode(rows))
    load_loops()
    # A worker whose path changes has all of these read again, which takes long where Spark's own modules are in a zip;
    # those that it needs after all are made again.
    sys.path_importer_cache.clear()
    gc.collect()
    gc.freeze()  # No worker is to look for garbage in this, after each of its tasks.


if __name__ == "__main__":
    warm_up()
    manager()
