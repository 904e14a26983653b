"""Service levels: how many backup copies which keys get."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.hashing import hash_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping

__all__ = ["ServiceLevels"]

_LEEWAY = 1.25
"""How much further down than others a key may be that has its backups already: else keys would take turns."""


@dataclass(frozen=True)
class ServiceLevels:
    """How many backups which keys have; the largest number that anything asks for counts.

    Parameters
    ----------
    default
        Backups of every key.
    keys
        Backups of single keys; a key of several columns is a tuple.
    where
        Backups of the keys that had a tuple with some value in a column: ``{"tier": {"gold": 2}}``.
    hottest, hottest_replicas
        So many of the most frequent keys, and how many backups they get. A key that has them keeps them until it is
        not even among 1.25 times as many.
    share, share_replicas
        Keys with at least this share of all tuples, and how many backups they get. A key that has them keeps them until
        it has less than 0.8 of that share.
    max_pins
        How many entries of their own keys may have in the routing table; the most important keys come first.
    bytes_per_batch
        How much state may be copied in a batch to make new backups, the hottest first; ``None``: any amount.

    Examples
    --------
    >>> ServiceLevels.of({"default": 0, "keys": {"ann": 2}, "hottest": 10}).levels_of([], [])
    {7160020621161744715: 2}
    """

    default: int = 0
    keys: Mapping[Hashable, int] = field(default_factory=dict)
    where: Mapping[str, Mapping[Hashable, int]] = field(default_factory=dict)
    hottest: int = 0
    hottest_replicas: int = 1
    share: float | None = None
    share_replicas: int = 1
    max_pins: int = 1000
    bytes_per_batch: int | None = 64 << 20

    def __post_init__(self) -> None:
        numbers = {
            "default": self.default,
            "hottest": self.hottest,
            "hottest_replicas": self.hottest_replicas,
            "share_replicas": self.share_replicas,
            "max_pins": self.max_pins,
            **{f"keys[{key!r}]": wanted for key, wanted in self.keys.items()},
            **{f"where[{column!r}]": wanted for column, by in self.where.items() for wanted in by.values()},
        }
        for name, number in numbers.items():
            if type(number) is not int or number < 0:
                raise InvalidArgumentError(f"{name} must be a number of copies or keys, 0 or more; got {number!r}.")
        if self.share is not None and not 0 < self.share <= 1:
            raise InvalidArgumentError(f"share must be above 0 and at most 1; got {self.share!r}.")
        if self.bytes_per_batch is not None and self.bytes_per_batch < 1:
            raise InvalidArgumentError(f"bytes_per_batch must be at least 1; got {self.bytes_per_batch!r}.")

    @classmethod
    def of(cls, levels: int | Mapping[str, Any] | ServiceLevels) -> ServiceLevels:
        """Give the levels that are meant: a number of backups for all, a table as read from TOML, or the levels."""
        if isinstance(levels, ServiceLevels):
            return levels
        if isinstance(levels, int):
            return cls(default=levels)
        names = [item.name for item in fields(cls)]
        for name in levels:
            if name not in names:
                raise UnknownNameError("service level", name, names)
        return cls(**levels)

    @property
    def highest(self) -> int:
        """The most backups that any key may get."""
        found = [self.default, *self.keys.values(), *(wanted for by in self.where.values() for wanted in by.values())]
        found += [self.hottest_replicas] if self.hottest else []
        found += [self.share_replicas] if self.share is not None else []
        return max(found)

    def levels_of(
        self,
        hashes: Any,
        counts: Any,
        noted: Mapping[int, int] | None = None,
        key_types: list[pa.DataType] | None = None,
        held: Collection[int] = (),
    ) -> dict[int, int]:
        """Give the backups of single keys, the most important first.

        Parameters
        ----------
        hashes, counts
            The heaviest keys and their tuples.
        noted
            Keys that had a tuple with a value of ``where``, and their backups.
        key_types
            The types of the key columns, by which keys are hashed.
        held
            Keys that have backups of their own.
        """
        found: dict[int, int] = {}

        def ask(key: int, wanted: int) -> None:
            found[key] = max(wanted, found.get(key, self.default))

        for key, wanted in self.keys.items():
            ask(self._hash(key, key_types), wanted)
        for key, wanted in (noted or {}).items():
            ask(key, wanted)
        total = float(np.sum(counts))
        order = np.argsort(-np.asarray(counts, np.float64), kind="stable")
        for rank, place in enumerate(order.tolist()):
            key = int(hashes[place])
            leeway = _LEEWAY if key in held else 1.0
            hot = rank < leeway * self.hottest
            heavy = self.share is not None and leeway * counts[place] >= self.share * total
            if hot or heavy:
                ask(key, max(self.hottest_replicas * hot, self.share_replicas * heavy))
        return found

    @staticmethod
    def _hash(key: Hashable, kinds: list[pa.DataType] | None) -> int:
        parts = key if isinstance(key, tuple) else (key,)
        if kinds is not None and len(kinds) != len(parts):
            raise InvalidArgumentError(f"A key has {len(kinds)} columns; the service levels name {key!r}.")
        columns = [pa.array([part], kind) for part, kind in zip(parts, kinds or [None] * len(parts), strict=True)]
        return int(hash_keys(*columns)[0])
