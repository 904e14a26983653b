"""Count and sum per word in Bytewax; run with the Python of its own environment, prints one line of JSON.

``python peer_bytewax.py FOLDER RECOVERY rows|combined``. One worker, recovery on with its default interval. Rows are
handed on as Bytewax's documentation shows it, a batch of pairs at a time (``rows``), or each file is first combined
per word by Arrow, and Bytewax keeps the totals (``combined``).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import bytewax.operators as op
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import run_main


class Files(FixedPartitionedSource, StatefulSourcePartition):
    """The files of a folder, one per batch; notes when each is asked for."""

    def __init__(self, folder: Path, as_items) -> None:
        self.paths, self.as_items = sorted(folder.glob("*.parquet")), as_items
        self.next, self.asked = 0, []

    def list_parts(self) -> list[str]:
        """There is one part."""
        return ["files"]

    def build_part(self, step_id, for_part, resume_state):  # noqa: ARG002
        """Begin with the first file, or go on where a snapshot was taken."""
        self.next = resume_state or 0
        return self

    def next_batch(self) -> list:
        """Give the next file."""
        self.asked.append(time.perf_counter())
        if self.next == len(self.paths):
            raise StopIteration
        table = pq.read_table(self.paths[self.next])
        self.next += 1
        return self.as_items(table)

    def snapshot(self) -> int:
        """Say how many files were given."""
        return self.next


def as_rows(table) -> list[tuple[str, int]]:
    """Every row as a pair."""
    return list(zip(table["word"].to_pylist(), table["value"].to_pylist(), strict=True))


def as_partial_states(table) -> list[tuple[str, tuple[int, int]]]:
    """Every word of the file with its count and sum."""
    combined = table.group_by("word").aggregate([("value", "count"), ("value", "sum")])
    counts, sums = combined["value_count"].to_pylist(), combined["value_sum"].to_pylist()
    return list(zip(combined["word"].to_pylist(), zip(counts, sums, strict=True), strict=True))


class Totals(op.StatefulBatchLogic):
    """Count and sum of one word."""

    def __init__(self, state: tuple[int, int] | None) -> None:
        self.n, self.total = state or (0, 0)

    def snapshot(self) -> tuple[int, int]:
        """Give the state."""
        return self.n, self.total


class RowTotals(Totals):
    """Adds rows."""

    def on_batch(self, batch: list[int]):
        """Add a batch, and give the result once."""
        self.n += len(batch)
        self.total += sum(batch)
        return [(self.n, self.total)], False


class CombinedTotals(Totals):
    """Adds partial states."""

    def on_batch(self, batch: list[tuple[int, int]]):
        """Add a batch, and give the result once."""
        for n, total in batch:
            self.n += n
            self.total += total
        return [(self.n, self.total)], False


class Last(DynamicSink, StatelessSinkPartition):
    """Keeps the last result of every word, to check it by."""

    def __init__(self) -> None:
        self.results: dict[str, tuple[int, int]] = {}

    def build(self, step_id, worker_index, worker_count):  # noqa: ARG002
        """There is one worker."""
        return self

    def write_batch(self, items: list) -> None:
        """Take results."""
        self.results.update(items)


def main(folder: Path, recovery: Path, way: str) -> None:
    """Run the job over all files of a folder."""
    as_items, logic = {"rows": (as_rows, RowTotals), "combined": (as_partial_states, CombinedTotals)}[way]
    source, sink = Files(folder, as_items), Last()
    flow = Dataflow("totals")
    keyed = op.input("files", flow, source)
    op.output("out", op.stateful_batch("totals", keyed, logic), sink)
    recovery.mkdir()
    init_db_dir(recovery, 1)
    run_main(flow, recovery_config=RecoveryConfig(recovery))
    ended = time.perf_counter()
    print(
        json.dumps(
            {
                "seconds": ended - source.asked[1],  # from the second file on: the first one warms up
                "files": len(source.paths) - 1,
                "keys": len(sink.results),
                "n": sum(n for n, _ in sink.results.values()),
                "total": sum(total for _, total in sink.results.values()),
                "asked": [at - source.asked[0] for at in source.asked],
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
