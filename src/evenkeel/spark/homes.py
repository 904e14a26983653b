"""Homes: one cached row per channel, so that the channel's task comes back to where its state is."""

from __future__ import annotations

import itertools
import os
import socket
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from evenkeel.spark.placement import placement_values
from evenkeel.spark.seats import seat_channels
from evenkeel.spark.worker import promptly

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["HOME", "PLACE", "ROWS", "STATE", "WIDTH", "Homes", "executors", "host_name", "seat_of"]

HOME = "__evenkeel_home"
PLACE = "__evenkeel_place"
ROWS, WIDTH, STATE = "__evenkeel_rows", "__evenkeel_width", "__evenkeel_state"
"""The columns of parcels: with rows, with the bytes of a tuple among those that they were made of, and with state that
moves."""
_PARCELS = pa.schema({ROWS: pa.binary(), WIDTH: pa.int32(), STATE: pa.binary()})
_ATTEMPTS = 3


def host_name() -> str:
    """Name this host, as Spark was told to, or as it calls itself."""
    return os.environ.get("SPARK_LOCAL_HOSTNAME") or socket.gethostname()


def executors(spark: SparkSession) -> frozenset[str]:
    """Give the addresses of all executors that are up, and the driver's; nothing where Spark does not tell."""
    context = getattr(spark.sparkContext, "_jsc", None)
    if context is None:
        return frozenset()
    return frozenset(context.sc().getExecutorMemoryStatus().keys().mkString(" ").split())


def _hosts(spark: SparkSession) -> frozenset[str]:
    """Give the hosts of all executors, as Spark calls them; the driver is none, unless it is alone."""
    up = Counter(map(_host, executors(spark)))
    if up.total() > 1:
        up[spark.sparkContext.getConf().get("spark.driver.host") or ""] -= 1
    return frozenset(host for host, count in up.items() if count > 0)


def _difference(seats: Sequence[str], hosts: frozenset[str]) -> int:
    """Give by how many seats hosts differ; those with none count too, if Spark calls hosts as they call themselves.

    >>> _difference(["a", "a"], frozenset("ab")), _difference(["a", "a"], frozenset("xy"))
    (2, 0)
    """
    taken = Counter(seats)
    if hosts.issuperset(taken):
        taken.update(dict.fromkeys(hosts, 0))
    return max(taken.values()) - min(taken.values())


def _host(address: str) -> str:
    return address.rpartition(":")[0]


_formed = itertools.count()


def seat_of(home: int, seats: int) -> int:
    """Give the seat that a home row is about; the numbers go on where homes are formed again."""
    return home % seats


@dataclass(frozen=True, slots=True, eq=False)
class Homes:
    """The homes of N channels: N seats, and who sits where.

    A union of the home rows with rows that are hash-partitioned by the same column has N partitions, not 2N, and Spark
    runs each where its home row is cached. A task takes its identity from the home row it finds, never from a partition
    number. When an executor dies, Spark computes its home rows elsewhere: the channel has a new home.

    Spark chooses the hosts of the seats; which channel takes which seat is ours to choose.

    Parameters
    ----------
    rows
        The cached home rows: mark and number of each seat, see :func:`seat_of`, and no parcel.
    places, marks
        The placement value of each seat, for rows that go there, and for home rows, which is below 0.
    seats
        The host of each seat, when it was made.
    channels
        The channel in each seat.
    executors
        Who was up then.
    """

    rows: DataFrame
    places: tuple[int, ...]
    marks: tuple[int, ...]
    seats: tuple[str, ...]
    channels: tuple[int, ...]
    executors: frozenset[str]
    _made: dict[tuple[int, tuple[str, ...]], DataFrame] = field(default_factory=dict)

    @classmethod
    def form(cls, spark: SparkSession, loads: Sequence[float], before: Mapping[int, str]) -> Homes:
        """Make a seat for each channel, and seat the channels by their loads, most where they were before."""
        from pyspark import StorageLevel

        up = executors(spark)
        places, marks = zip(*placement_values(spark, len(loads)), strict=True)
        made: list[tuple[int, DataFrame, tuple[str, ...]]] = []
        while len(made) < _ATTEMPTS and (not made or made[-1][0] > 1):
            # Spark knows what is cached by its content: rows made again must differ, or they share a cache and its end.
            first = len(places) * next(_formed)
            seats_made = pa.array(range(first, first + len(places)), pa.int32())
            marked = pa.table({PLACE: pa.array(marks, pa.int32()), HOME: seats_made})
            table = pa.concat_tables([marked, _PARCELS.empty_table()], promote_options="default")
            rows = spark.createDataFrame(table).repartition(len(places), PLACE).persist(StorageLevel.MEMORY_AND_DISK)
            seats = _seats(rows)  # The first to read them caches them, where Spark finds room: evenly, as a rule.
            made.append((_difference(seats, _hosts(spark)), rows, seats))
        made.sort(key=lambda attempt: attempt[0])
        for _, rows, _ in made[1:]:
            rows.unpersist()
        _, rows, seats = made[0]
        return cls(rows, places, marks, seats, tuple(seat_channels(seats, before, loads)), up)

    def seated(self, loads: Sequence[float], before: Mapping[int, str], *, evens: bool = False) -> Homes:
        """Give the same seats with the channels seated anew, by these loads, most where they were before."""
        return replace(self, channels=tuple(seat_channels(self.seats, before, loads, evens=evens)))

    def without(self, gone: frozenset[str], loads: Sequence[float]) -> Homes:
        """Give the same seats when executors are gone: Spark has put those that they had elsewhere, and only those."""
        seats = _seats(self.rows)
        channels = tuple(seat_channels(seats, self.hosts, loads))
        return replace(self, seats=seats, channels=channels, executors=self.executors - gone)

    def lost(self, up: frozenset[str]) -> bool:
        """Say whether a host with seats has no executor left, if these are up; if hosts go by other names, any left."""
        if self.executors <= up:
            return False
        hosts, left = (set(map(_host, names)) for names in (self.executors, up))
        return not left.issuperset(self.seats) or not hosts.issuperset(self.seats)

    @property
    def votes(self) -> int:
        """How often a task finds its home row: twice where there may be more than one host.

        Spark asks all parents of a union where a task should run, and where they disagree the majority decides:
        shuffled rows have one vote for each host that sent many of them.
        """
        return 1 if len(set(map(_host, self.executors))) == 1 else 2

    def with_rows(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Unite the home rows with those of a stage, of which the columns are told; the home rows come first.

        Where all columns are those of parcels, which the home rows have, Spark has nothing to add to these.
        """
        parcels = set(columns) <= {PLACE, *_PARCELS.names}
        kept = tuple(columns) if parcels else (PLACE,)
        made = self.votes, kept  # Homes that came of these, with fewer hosts, share what was made.
        if made not in self._made:
            marks = self.rows.select(*kept)
            self._made[made] = marks if self.votes == 1 else marks.union(marks)
        homes = self._made[made]
        return homes.union(rows) if parcels else homes.unionByName(rows, allowMissingColumns=True)

    @property
    def hosts(self) -> dict[int, str]:
        """The host of each channel."""
        return dict(zip(self.channels, self.seats, strict=True))

    @property
    def by_host(self) -> dict[str, frozenset[int]]:
        """The channels of each host."""
        return {host: frozenset(c for c, of in self.hosts.items() if of == host) for host in set(self.seats)}

    @property
    def addresses(self) -> tuple[int, ...]:
        """The placement value of each channel."""
        place_of = dict(zip(self.channels, self.places, strict=True))
        return tuple(place_of[channel] for channel in range(len(self.places)))


def _seats(rows: DataFrame) -> tuple[str, ...]:
    """Ask for the host of each seat."""
    return tuple(row[1] for row in sorted(rows.mapInArrow(_tell_host, f"{HOME} int, host string").collect()))


def _tell_host(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in promptly(batches):
        names = pa.array([host_name()] * batch.num_rows)
        yield pa.RecordBatch.from_arrays([batch.column(HOME), names], names=[HOME, "host"])
