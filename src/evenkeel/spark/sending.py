"""What Python workers do with tuples before the shuffle: combine them, if asked to, and pack them by where they go."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import EvenkeelError, StageFailedError
from evenkeel.hashing import hash_keys
from evenkeel.operators import Moment
from evenkeel.routing import RoutingTable
from evenkeel.spark.columns import ORDER
from evenkeel.spark.homes import ROWS, WIDTH
from evenkeel.spark.parcels import packed, parcel_type, together
from evenkeel.spark.worker import promptly
from evenkeel.state import StoredFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from evenkeel.spark.combine import Lift
    from evenkeel.state import Checkpoint

__all__ = ["ORDER_SETTING", "SENT", "Order", "Sending", "SendingAhead"]

SENT = f"{parcel_type(ROWS)}, {WIDTH} int"
"""The columns of what is sent."""
_AT_ONCE = 16 << 20
"""How many bytes of tuples are combined together, about; more save shuffling and take memory."""
ORDER_SETTING = "spark.evenkeel.order"
"""The setting of a stream's own session that says what is to be done with a batch's tuples."""
_tables: dict[str, RoutingTable] = {}
"""The table that a worker read last, by its path, which no other table ever has."""


@dataclass(frozen=True, slots=True)
class Sending:
    """Sends the tuples of a batch.

    Parameters
    ----------
    lift
        What makes states of them.
    combines
        Whether it does; else they are sent as they are.
    table, addresses
        Where keys are, and the placement value of each channel.
    ordered
        Whether to add the order in which tuples, or states, are sent.
    """

    lift: Lift
    combines: bool
    table: RoutingTable
    addresses: tuple[int, ...]
    ordered: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give parcels, each for a channel that holds a copy of the keys in it."""
        from pyspark import TaskContext

        context, sent = TaskContext.get(), 0
        assert context is not None
        for tuples in together(promptly(batches), _AT_ONCE):
            rows, hashes = self._rows(tuples.cast(self.lift.rows))
            if self.ordered:
                turns = np.arange(len(hashes)) + sent + (context.partitionId() << 40)
                rows = rows.append_column(ORDER, pa.array(turns))
            channels = self.table.route(hashes, turn=sent)
            sent += len(hashes)
            if self.table.has_backups:
                backups = self.table.backups(hashes)
                rows = rows.take(np.concatenate([np.arange(len(hashes)), backups.rows]))
                channels = np.concatenate([channels, backups.channels])
            parcels = packed(rows, np.array(self.addresses, np.int32)[channels], ROWS)
            width = min(tuples.nbytes // max(1, tuples.num_rows) + 1, np.iinfo(np.int32).max)
            yield parcels.append_column(WIDTH, pa.array(np.full(parcels.num_rows, width, np.int32)))

    def _rows(self, tuples: pa.Table) -> tuple[pa.Table, Any]:
        """Give what is sent, and the hash of each row's key."""
        if not self.combines:
            return tuples, hash_keys(*(tuples[name] for name in self.lift.key_names))
        try:
            return self.lift(tuples)
        except EvenkeelError:
            raise
        except Exception as error:
            name, batch = self.lift.whole.name, self.lift.now.batch
            raise StageFailedError(
                f"Operator {name!r} failed on tuples that were to be combined before the shuffle in batch {batch}, "
                f"{type(error).__name__}: {error} Nothing of this batch is committed.",
                operator=name,
                batch=batch,
            ) from error


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with the tuples of one batch, as it is told to a plan that was made before.

    Parameters
    ----------
    table
        Where the table is in the checkpoint.
    addresses, combines, ordered
        As for :class:`Sending`.
    now
        When the batch is processed.
    """

    table: StoredFile
    addresses: tuple[int, ...]
    combines: bool
    ordered: bool
    now: Moment

    def give(self, session: SparkSession) -> None:
        """Have all tasks find it that are begun in a session, or in this thread, from now on.

        Spark gives the settings of a session to the tasks of its queries, whichever thread begins them; to those of its
        RDDs, which a sink may ask for, it gives what was set in the thread.
        """
        said = json.dumps(asdict(self))
        session.conf.set(ORDER_SETTING, said)
        session.sparkContext.setLocalProperty(ORDER_SETTING, said)

    @classmethod
    def given(cls) -> Order:
        """Give the order of the batch that this task is of."""
        from pyspark import TaskContext

        context = TaskContext.get()
        text = None if context is None else context.getLocalProperty(ORDER_SETTING)
        if text is None:
            raise StageFailedError(
                "A task was not told where tuples go: a sink has read the results through an RDD in a thread of its "
                "own. Have it read the DataFrame, or give the thread what the batch's thread was told: "
                "pyspark.InheritableThread does."
            )
        said = json.loads(text)
        table, now = StoredFile(**said.pop("table")), Moment(**said.pop("now"))
        return cls(table, tuple(said.pop("addresses")), now=now, **said)


@dataclass(frozen=True, slots=True)
class SendingAhead:
    """Sends the tuples of every batch, as part of a stream's own plan: what is to be done, the batch's order says.

    Parameters
    ----------
    lift
        What makes states, of whichever batch.
    checkpoint
        Where the tables are.
    """

    lift: Lift
    checkpoint: Checkpoint

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give parcels, as the order says."""
        order = Order.given()
        if order.table.path not in _tables:
            _tables.clear()
            read = pa.ipc.open_stream(self.checkpoint.files.read(order.table)).read_all()
            _tables[order.table.path] = RoutingTable.from_arrow(read)
        lift = replace(self.lift, now=order.now)
        return Sending(lift, order.combines, _tables[order.table.path], order.addresses, order.ordered)(batches)
