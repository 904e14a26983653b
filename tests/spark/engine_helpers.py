"""A stream of files, a balancer that moves things about in every batch, and a sink that remembers."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenkeel.control import Saved
from evenkeel.hashing import hash_keys
from evenkeel.routing import Ragged


def zipf_words(rows: int, keys: int, seed: int) -> pa.Table:
    """Words whose popularity drifts with the seed, numbers to add up, and a running position."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, keys + 1)
    ranks = np.searchsorted(np.cumsum(shares / shares.sum()), rng.random(rows))
    words = [None if rank == 3 else f"word{(rank + 7 * seed) % keys}" for rank in ranks.tolist()]
    position = seed * rows + np.arange(rows)
    return pa.table({"word": words, "value": rng.integers(-50, 100, rows), "position": position})


def write_batches(directory, tables: list[pa.Table], start: int = 0) -> None:
    """One file per micro-batch."""
    directory.mkdir(exist_ok=True)
    for number, table in enumerate(tables, start):
        hidden = directory / f".part-{number:05d}"  # a stream that is running must not see it half written
        pq.write_table(table, hidden)
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        hidden.rename(directory / f"part-{number:05d}.parquet")


def file_stream(spark, directory):
    """Read one file per micro-batch, in the order of their names."""
    schema = spark.read.parquet(str(directory)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))


def expected(tables: list[pa.Table]) -> tuple[dict, dict]:
    """Count the tuples of each word, and add up their values."""
    whole = pa.concat_tables(tables).group_by("word").aggregate([("value", "count"), ("value", "sum")])
    words = whole["word"].to_pylist()
    return (
        dict(zip(words, whole["value_count"].to_pylist(), strict=True)),
        dict(zip(words, whole["value_sum"].to_pylist(), strict=True)),
    )


def shaken(table, channels: int, rng, keys: int = 40):
    """Move a third of the slots and some keys to random channels, of which there are to be so many."""
    moved = (rng.random(table.slots) < 0.3) | (table.slot_channels >= channels)
    slots = np.where(moved, rng.integers(0, channels, table.slots), table.slot_channels)
    chosen = rng.choice(keys, 5, replace=False)
    pins = hash_keys(pa.array([f"word{key}" for key in chosen]))
    kept = rng.random(len(table.pin_hashes)) < 0.5
    lists = zip(slots.tolist(), table.backups_of_slots.tolist(), strict=True)
    backups = [[channel for channel in held if channel != home and channel < channels] for home, held in lists]
    plain = table.evolve(
        slot_channels=slots,
        slot_backups=Ragged.of(backups),
        channels=channels,
        pin_hashes=table.pin_hashes[kept],
        pin_channels=table.pin_channels[kept] % channels,
    )
    return plain.with_pins(pins, rng.integers(0, channels, 5))


class Forced:
    """Gives another table for every batch: random slots, random pins, and another number of channels."""

    def __init__(self, channels: list[int], seed: int = 0, keys: int = 40) -> None:
        self.channels = channels
        self.seed = seed
        self.keys = keys
        self.batch = -1
        self.decisions = []

    def observe(self, report) -> None:
        self.batch = report.batch

    def decide(self, table, now):  # noqa: ARG002
        following = self.batch + 1
        rng = np.random.default_rng([self.seed, following])
        channels = self.channels[min(following, len(self.channels) - 1)]
        return None, shaken(table, channels, rng, self.keys).evolve(epoch=table.epoch + 1)

    def record(self, decision):
        self.decisions.append(decision)

    def snapshot(self) -> Saved:
        return Saved({"batch": self.batch})

    def restore(self, saved: Saved) -> None:
        self.batch = saved.facts["batch"]


class Remember:
    """A sink that keeps each batch's results, the last time it came."""

    def __init__(self) -> None:
        self.batches: dict[int, list[dict]] = {}

    def __call__(self, results, batch: int) -> None:
        self.batches[batch] = results.toArrow().to_pylist()

    def latest(self, value: str) -> dict:
        """Each key's last result."""
        found = {}
        for batch in sorted(self.batches):
            rows = self.batches[batch]
            assert len({row["word"] for row in rows}) == len(rows), "a key came out of two channels"
            found |= {row["word"]: row[value] for row in rows}
        return found
