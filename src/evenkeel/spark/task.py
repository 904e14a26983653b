"""What runs in a task of a keyed stage, in Spark's Python workers."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import EvenkeelError, KeyFailedError, MisplacedTaskError, StageFailedError
from evenkeel.hashing import hash_keys
from evenkeel.operators import Groups, RowCodec
from evenkeel.routing.ragged import contains
from evenkeel.spark.homes import HOME, PLACE
from evenkeel.state import KEY_BYTES, Checkpoint, Delta, ManifestRef, Selection, StateStore, second_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from evenkeel.operators import Operator
    from evenkeel.routing import RoutingTable
    from evenkeel.state import SlotTotals

__all__ = ["REPORT", "STATE_COLUMNS", "StageTask"]

REPORT = "__evenkeel_report"
STATE_COLUMNS = {
    "slot": "__evenkeel_slot",
    "hash": "__evenkeel_hash",
    "hash2": "__evenkeel_hash2",
    "value": "__evenkeel_value",
}
_HEAVY_KEYS = 100  # of each channel and batch, reported one by one


@dataclass(frozen=True)
class StageTask:
    """One batch of a keyed stage, as its tasks see it.

    Parameters
    ----------
    checkpoint, stage, directory
        Where the truth is, whose state, and where hosts keep working copies.
    operator, key_names, row_schema
        What to compute over which columns.
    batch
        The micro-batch.
    table
        The routing table of this batch.
    places
        The placement value of each of its channels.
    versions
        What each channel held after the batch before.
    leaving
        What each channel gives away in this batch.
    refuses_null_keys
        Whether a null in a key is an error.
    """

    checkpoint: Checkpoint
    stage: str
    directory: str
    operator: Operator
    key_names: tuple[str, ...]
    row_schema: pa.Schema
    batch: int
    table: RoutingTable
    places: tuple[int, ...]
    versions: Mapping[int, ManifestRef]
    leaving: Mapping[int, Selection] = field(default_factory=dict)
    refuses_null_keys: bool = False

    def export(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send the state that leaves the channels whose home rows are in ``batches``."""
        for batch in batches:
            for channel in batch.column(HOME).to_pylist():
                if channel not in self.leaving or channel not in self.versions:
                    continue
                with self._store(channel).open(self.versions[channel]) as view:
                    for rows in view.export(self.leaving[channel]):
                        yield self._addressed(rows)

    def _addressed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        targets = self.table.home(rows.column("hash").to_numpy())
        columns = [pa.array(np.array(self.places, np.int32)[targets])]
        columns += [rows.column(name) for name in STATE_COLUMNS]
        return pa.RecordBatch.from_arrays(columns, names=[PLACE, *STATE_COLUMNS.values()])

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Import, update, emit and commit one channel; the last row out is its report."""
        started = time.perf_counter()
        channel, rows, imported = self._sort_out(batches)
        try:
            yield from self._process(channel, rows, imported, started)
        except KeyFailedError as error:
            raise self._failed(channel, f"at key {error.key!r}: {error}", key=error.key) from error
        except EvenkeelError:
            raise
        except Exception as error:
            raise self._failed(channel, f"{type(error).__name__}: {error}") from error

    def _failed(self, channel: int, what: str, **fields: Any) -> StageFailedError:
        return StageFailedError(
            f"Operator {self.operator.name!r} of stage {self.stage!r} failed on channel {channel} in batch "
            f"{self.batch}, {what} Nothing of this batch is committed.",
            operator=self.operator.name,
            channel=channel,
            batch=self.batch,
            **fields,
        )

    def _sort_out(self, batches: Iterable[pa.RecordBatch]) -> tuple[int, pa.Table, list[pa.RecordBatch]]:
        """Tell home rows, moved state and tuples apart."""
        homes: list[int] = []
        tuples: list[pa.RecordBatch] = []
        imported: list[pa.RecordBatch] = []
        for batch in batches:
            others = batch.column(HOME).is_valid()
            homes += batch.column(HOME).drop_null().to_pylist()
            if STATE_COLUMNS["slot"] in batch.schema.names:  # only where the table changed
                is_state = batch.column(STATE_COLUMNS["slot"]).is_valid()
                moved = batch.filter(is_state)
                columns = [moved.column(name) for name in STATE_COLUMNS.values()]
                imported.append(pa.RecordBatch.from_arrays(columns, names=list(STATE_COLUMNS)))
                others = pc.or_(others, is_state)
            if others.true_count:
                batch = batch.filter(pc.invert(others))  # noqa: PLW2901
            tuples.append(batch.select(self.row_schema.names))
        if len(homes) != 1:
            raise MisplacedTaskError(
                f"A task of stage {self.stage!r} found {len(homes)} home rows instead of one. This version or these "
                "settings of Spark do not keep a union partition-aware; nothing of this batch is committed.",
                homes=homes,
            )
        rows = pa.Table.from_batches(tuples).cast(self.row_schema) if tuples else self.row_schema.empty_table()
        return homes[0], rows, imported

    def _process(
        self, channel: int, rows: pa.Table, imported: list[pa.RecordBatch], started: float
    ) -> Iterator[pa.RecordBatch]:
        store = self._store(channel)
        attempt = uuid.uuid4().hex
        key_columns = [rows[name] for name in self.key_names]
        if self.refuses_null_keys and any(column.null_count for column in key_columns):
            raise ValueError("a row has a null in its key, and null_keys is 'error'.")
        groups = Groups.of(rows, self.key_names, hash_keys(*key_columns), second_hash(*key_columns))
        slots = groups.hashes % self.table.slots
        schema = self.operator.state_schema(self.row_schema)
        codec = RowCodec(pa.schema([*groups.keys.schema, *schema]))
        with store.open(self.versions.get(channel)) as view:
            delta = Delta()
            delta.drop(self.leaving.get(channel, Selection()))
            moved = delta.import_(imported)
            before = view.get(slots, groups.hashes, groups.hashes2, delta)
            known = before.is_valid().to_numpy(zero_copy_only=False)
            update = self.operator.update(groups, codec.decode(before).select(schema.names), known)
            if update.states.num_rows != len(groups):
                raise ValueError(f"it gave {update.states.num_rows} states for {len(groups)} keys.")
            encoded = codec.encode(pa.table([*groups.keys.columns, *update.states.columns], schema=codec.schema))
            delta.put(slots, groups.hashes, groups.hashes2, encoded, None if moved else before)
            written = store.write_delta(view, delta, batch=self.batch, attempt=attempt)
            outputs = self._outputs(groups, update)
            report = {
                "channel": channel,
                "rows": rows.num_rows,
                "imported_bytes": moved,
                "opened": view.opening.how,
                "opened_ms": view.opening.took_ms,
                "busy_ms": 1000 * (time.perf_counter() - started),
                "loads": self._loads(groups, slots, encoded, written.totals),
            }
            ref = store.write_manifest(view, written, batch=self.batch, attempt=attempt, report=report)
        yield from outputs.to_batches()
        last = [pa.nulls(1, kind) for kind in outputs.schema.types[:-1]]
        line = json.dumps({"manifest": ref.to_json(), **report})
        yield pa.RecordBatch.from_arrays([*last, pa.array([line])], schema=outputs.schema)

    def _outputs(self, groups: Groups, update: Any) -> pa.Table:
        keys = groups.keys if update.key_of_outputs is None else groups.keys.take(pa.array(update.key_of_outputs))
        columns = [*keys.columns, *update.outputs.columns, pa.nulls(update.outputs.num_rows, pa.string())]
        schema = [*keys.schema, *self.operator.output_schema(self.row_schema), pa.field(REPORT, pa.string())]
        return pa.table(columns, schema=pa.schema(schema))

    def _loads(self, groups: Groups, slots: NDArray[np.int64], states: pa.Array, totals: SlotTotals) -> dict[str, Any]:
        """Tuples per slot and of the heaviest keys, and what the slots hold now."""
        counts = groups.counts
        by_slot = np.bincount(slots, weights=counts, minlength=self.table.slots)
        touched = np.flatnonzero(by_slot)
        pinned, split = self.table.pin_hashes, self.table.split_hashes
        listed = contains(pinned, groups.hashes) | contains(split, groups.hashes)
        heavy = np.zeros(len(groups), bool)
        heavy[np.argsort(-counts, kind="stable")[:_HEAVY_KEYS]] = True
        chosen = np.flatnonzero(heavy | listed)
        return {
            "slots": touched.tolist(),
            "slot_counts": by_slot[touched].tolist(),
            "keys": groups.hashes[chosen].tolist(),
            "key_counts": counts[chosen].tolist(),
            "key_bytes": (KEY_BYTES + pc.binary_length(states).to_numpy()[chosen]).tolist(),
            "held_slots": totals.slots.tolist(),
            "held_bytes": totals.state_bytes.tolist(),
            "held_keys": totals.keys.tolist(),
        }

    def _store(self, channel: int) -> StateStore:
        return StateStore(self.checkpoint, self.stage, channel, self.directory)
