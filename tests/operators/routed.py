"""A keyed stage on simulated channels: a router deals out the tuples, each channel keeps states as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenkeel.hashing import hash_keys
from operators.harness import Stage, groups_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenkeel.operators import Operator
    from evenkeel.routing import Router


class RoutedStage:
    """Each channel on its own; ``probe`` names a column of tuples that go to every channel that may hold their key."""

    def __init__(
        self, operator: Operator, rows: pa.Schema, key: Sequence[str], router: Router, probe: str | None = None
    ) -> None:
        self.operator, self.key, self.router, self.probe = operator, list(key), router, probe
        self.channels = [Stage(operator, rows, key) for _ in range(router.channels)]

    def feed(self, rows: pa.Table) -> pa.Table:
        """Play one batch; give all channels' results behind their keys."""
        hashes = hash_keys(*(rows[name] for name in self.key))
        asks = rows[self.probe].to_numpy() if self.probe else np.zeros(len(rows), bool)
        route = np.full(len(rows), -1, np.int32)
        route[~asks] = self.router.route(hashes[~asks])
        reached = np.zeros((len(rows), self.router.channels), bool)
        reached[np.flatnonzero(asks)[:, None], self.router.reachable(hashes[asks])] = True
        results = []
        for number, stage in enumerate(self.channels):
            mine = rows.filter(pa.array((route == number) | reached[:, number]))
            if not len(mine):
                continue
            groups = groups_of(mine, self.key)
            keys, states = stage.states(groups)
            update = self.operator.update(groups, states, np.array([key in stage.bytes for key in keys], bool))
            encoded = stage.codec.encode(update.states).to_pylist()
            keep = np.ones(len(keys), bool) if update.keep is None else update.keep
            for key, state, kept in zip(keys, encoded, keep, strict=True):
                stage.bytes.pop(key, None)
                if kept:
                    stage.bytes[key] = state
            key_of = np.arange(len(keys)) if update.key_of_outputs is None else update.key_of_outputs
            columns = [*groups.keys.take(pa.array(key_of)).columns, *update.outputs.columns]
            results.append(pa.table(columns, names=[*self.key, *stage.output_schema.names]))
        return pa.concat_tables(results)

    def keys_held(self) -> int:
        """How many keys all channels hold together: the paper's memory."""
        return sum(len(stage.bytes) for stage in self.channels)

    def parts(self) -> pa.Table:
        """All channels' keys and partial states."""
        tables = []
        for stage in self.channels:
            names = stage.key_schema.names
            keys = pa.Table.from_pylist([dict(zip(names, key, strict=True)) for key in stage.bytes], stage.key_schema)
            states = stage.codec.decode(pa.array(list(stage.bytes.values()), pa.large_binary()))
            tables.append(pa.table([*keys.columns, *states.columns], names=[*names, *stage.schema.names]))
        return pa.concat_tables(tables)
