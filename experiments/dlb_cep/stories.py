"""First stories: real tweets, or generated ones, keyed by their likeness; whole keys, and keys split by PKG."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenkeel.hashing import hash_keys
from evenkeel.operators import Groups
from evenkeel.operators.first_story import first_story, lsh_keys
from evenkeel.routing import make_router
from experiments.data import real

__all__ = ["events", "texts"]

TOPICS, TERMS, IN_TEXT, NOISE = 1500, 14, 9, 2


def texts(generated: int) -> pa.Array:
    """Real tweets where there are some, else texts about topics that come and go."""
    path = real("stocknet_tweets")
    if path is not None:
        return pq.read_table(path, columns=["text"])["text"].combine_chunks()
    rng = np.random.default_rng(5)
    topics = np.minimum(rng.zipf(1.3, generated) + np.arange(generated) * TOPICS // (2 * generated), TOPICS)
    terms = rng.permuted(np.tile(np.arange(TERMS), (generated, 1)), axis=1)[:, :IN_TEXT]
    noise = rng.integers(0, 5000, (generated, NOISE))
    return pa.array(
        [
            " ".join([*(f"t{topic}x{term}" for term in own), *(f"n{word}" for word in other)])
            for topic, own, other in zip(topics.tolist(), terms.tolist(), noise.tolist(), strict=True)
        ]
    )


def events(all_texts: pa.Array, keys: int, engines: int) -> dict[str, int]:
    """Count first stories where keys are whole, as under KG, LPTF and DLB, and where PKG splits them."""
    key = lsh_keys(all_texts, keys)
    places = make_router("pkg", engines).route(hash_keys(key))
    rows = pa.table({"key": key, "engine": places, "text": all_texts})
    return {"whole keys": _count(rows, ["key"]), "split keys": _count(rows, ["key", "engine"])}


def _count(rows: pa.Table, by: list[str]) -> int:
    operator = first_story()
    columns = [rows[name] for name in by]
    groups = Groups.of(rows, by, hash_keys(*columns), hash_keys(*columns, seed=1))
    known = len(groups.keys)
    states = pa.Table.from_pylist([{}] * known, operator.state_schema(rows.schema))
    return int(operator.update(groups, states, np.zeros(known, bool)).outputs.num_rows)
