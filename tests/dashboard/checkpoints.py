"""Checkpoints as a query leaves them, written without Spark: real manifests, tables, commits and decisions."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from pyarrow import fs

from evenkeel.control import (
    BatchReport,
    ChannelReport,
    Controller,
    ControlOptions,
    Tally,
    WindowOptions,
)
from evenkeel.hashing import hash_keys
from evenkeel.planning import make_planner
from evenkeel.routing import RoutingTable
from evenkeel.state import Checkpoint, Lease
from evenkeel.state.checkpoint import file_path
from evenkeel.state.manifest import EMPTY_TIP, Manifest

KEYS = 400


class Query:
    """A query of one or more stages that counts Zipf-distributed keys, run batch by batch.

    A part ``hot`` of all tuples falls on few keys that the first table puts on one channel, so that the real controller
    has something to do.
    """

    def __init__(self, path, channels=4, *, stages=("stage0",), names=None, table=None, window=2, hot=0.5, run="run-1"):
        self.checkpoint = Checkpoint.open(fs.LocalFileSystem(), str(path), job="words", run=run)
        self.rng = np.random.default_rng(0)
        self.table = table or RoutingTable.even(channels)
        self.stages = stages
        options = ControlOptions(windows=WindowOptions(batches=window))
        self.controllers = {stage: Controller(make_planner("keel"), options) for stage in stages}
        self.tables = dict.fromkeys(stages, self.table)
        self.number = itertools.count()
        self.files = itertools.count()
        self.stored = {}
        words = [f"word{i}" for i in range(40 * channels * 4)]
        hashes = hash_keys(pa.array(words))
        first = self.table.route(words) == 0
        few, many = np.flatnonzero(first)[:8], np.flatnonzero(~first)[: max(KEYS, 20 * channels)]
        self.hashes = np.concatenate([hashes[few], hashes[many]])
        cold = 1 / np.arange(20, 20 + len(many)) ** 0.5
        self.weights = np.concatenate([np.full(len(few), hot / len(few)), (1 - hot) * cold / cold.sum()])
        called = [words[i] for i in [*few, *many]]
        self.names = None if names is None else [*names, *called][: len(called)]
        self.held = np.zeros(len(self.hashes), np.int64)

    def run(self, batches, **options):
        """Commit some more batches."""
        for _ in range(batches):
            self.batch(**options)
        return self

    def batch(self, *, rows=4000, took=True, opened="caught up", tables=None):
        """Commit one batch; ``tables`` gives the next table of each stage instead of its controller."""
        number = next(self.number)
        counts = self.rng.multinomial(rows, self.weights)
        self.held += counts
        refs, facts = [], {}
        for stage in self.stages:
            table, controller = self.tables[stage], self.controllers[stage]
            reports = self._reports(table, counts, number, opened)
            refs += [self._manifest(stage, report, number) for report in reports]
            controller.observe(batch_report(reports, number))
            _, chosen = controller.decide(table, 1_700_000_000.0 + 5 * number)
            following = (tables or {}).get(stage) or chosen or table
            facts[stage] = {
                "files": {
                    "table": self._store(stage, "table", table.epoch, table.to_arrow()),
                    "next": self._store(stage, "table", following.epoch, following.to_arrow()),
                    "controller": self._store(stage, "controller", next(self.files), controller.snapshot().to_arrow()),
                },
                "router": None,
                "splits": False,
                "channels": table.channels,
                "watermark": 1_700_000_000_000_000 + 5_000_000 * number,
                "hosts": {str(channel): f"host-{channel % 3}" for channel in range(table.channels)},
            }
            self.tables[stage] = following
        metadata = {"stages": facts, **({"took_ms": 800.0 + 10 * number} if took else {})}
        return self.checkpoint.commit(number, refs, epoch=0, metadata=metadata)

    def lease(self, now, host="driver", pid=1):
        """Hold the checkpoint."""
        return Lease(self.checkpoint.files, "words-1", host, pid).acquire(now)

    def _store(self, stage, kind, number, data):
        if (stage, kind, number) not in self.stored:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, data.schema) as writer:
                writer.write_table(data)
            name = f"tables/{stage}-{kind}-{number}"
            self.stored[stage, kind, number] = self.checkpoint.files.write(name, sink.getvalue()).to_json()
        return self.stored[stage, kind, number]

    def _manifest(self, stage, report, number):
        manifest = Manifest(stage, report["channel"], number, "a", EMPTY_TIP, (), report)
        return manifest.write(self.checkpoint.files, file_path(stage, number, report["channel"], "a", "manifest.json"))

    def _reports(self, table, counts, number, opened):
        where = table.route(self.hashes)
        slots = self.hashes % table.slots
        reports = []
        for channel in range(table.channels):
            mine = np.flatnonzero((where == channel) & (self.held > 0))
            touched = mine[counts[mine] > 0]
            heavy = touched[np.argsort(-counts[touched], kind="stable")][:100]
            loads = {
                "slots": slots[touched],
                "slot_counts": counts[touched].astype(float),
                "keys": self.hashes[heavy],
                "key_counts": counts[heavy],
                "key_bytes": 40 + counts[heavy] // 10,
                "held_slots": slots[mine],
                "held_bytes": 40 + self.held[mine] // 10,
                "held_keys": np.ones(len(mine), int),
            }
            loads = {name: values.tolist() for name, values in loads.items()}
            if self.names is not None:
                loads["key_names"] = [self.names[key] for key in heavy]
            rows = int(counts[touched].sum())
            reports.append(
                {
                    "channel": channel,
                    "host": f"host-{channel % 3}",
                    "rows": rows,
                    "tuples": rows,
                    "keys": len(touched),
                    "late": 1 if channel == 0 else 0,
                    "results": len(touched),
                    "newest": None,
                    "imported_bytes": 100 * (channel % 2) if number and number % 3 == 0 else 0,
                    "import_ms": 0.1,
                    "opened": opened,
                    "opened_ms": 0.3,
                    "busy_ms": 2.0 + rows / 50,
                    "loads": loads,
                }
            )
        return reports


def batch_report(reports, number):
    channels = []
    for report in reports:
        loads = report["loads"]
        zeros = np.zeros(len(loads["held_slots"]))
        slots = Tally(
            [*loads["slots"], *loads["held_slots"]],
            [*loads["slot_counts"], *zeros],
            [*loads["slot_counts"], *zeros],
            [*np.zeros(len(loads["slots"]), int), *loads["held_bytes"]],
        )
        keys = Tally(loads["keys"], loads["key_counts"], loads["key_counts"], loads["key_bytes"])
        channels.append(ChannelReport(report["channel"], report["busy_ms"], slots, keys, len(loads["held_keys"])))
    return BatchReport(number, 5.0 * number, tuple(channels))
