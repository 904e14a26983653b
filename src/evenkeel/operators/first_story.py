"""First story detection: texts unlike all recent ones, by locality-sensitive hashing and a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnsupportedTypeError
from evenkeel.operators.cep import Detector, Frame, WindowFunction, WindowRule
from evenkeel.operators.ragged import one_chunk, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MaxSimilarity", "first_story", "lsh_keys"]

_VECTOR = pa.list_(pa.struct([("term", pa.uint32()), ("weight", pa.float32())]))
_MOST_PLANES = 32


def lsh_keys(texts: pa.Array | pa.ChunkedArray, keys: int = 4096, seed: int = 0) -> pa.Int64Array:
    """Give each text a key from 0 to ``keys - 1``, such that similar texts often have the same.

    Each of log₂ ``keys`` random hyperplanes gives one bit: two texts whose vectors are at an angle θ get the same key
    with probability (1 − θ/π) to the power of log₂ ``keys``.

    Parameters
    ----------
    texts
        A null gives a null.
    keys
        A power of two.
    seed
        Which hyperplanes.

    Notes
    -----
    O(characters + terms · log₂ keys), compiled.

    Examples
    --------
    >>> lsh_keys(pa.array(["Rain in Rome today", "rain in Rome, today!", None])).to_pylist()
    [3360, 3360, None]
    """
    planes = keys.bit_length() - 1
    if keys != 1 << max(planes, 0) or planes > _MOST_PLANES:
        raise InvalidArgumentError(
            f"The number of keys is a power of two up to 2^{_MOST_PLANES}; got {keys}.", keys=keys
        )
    if seed < 0:
        raise InvalidArgumentError(f"A seed is 0 or more; got {seed}.", seed=seed)
    from evenkeel.operators import _kernels_text

    texts = one_chunk(texts)
    found = _kernels_text.hyperplane_keys(*_hashed(texts), planes, seed)
    return pa.array(found, mask=np.asarray(texts.is_null()))


@dataclass(frozen=True)
class MaxSimilarity(WindowFunction):
    """``max_similarity(text) OVER window``: the greatest cosine of a text's terms with those of a text in the window.

    Null if the text is null or no text is in the window. Terms are runs of letters, digits and ``_ # @ $``, whatever
    their case, and weigh as often as they occur. Of each text its hashed terms and their weights are kept: 8 bytes a
    term. Two terms share a hash with probability 2⁻³².

    Notes
    -----
    For each text one pass over the terms of the window's texts, a few nanoseconds each.
    """

    name = "max_similarity"

    def keep(self, values: pa.Array) -> pa.Array:
        """Hash and weigh the terms."""
        offsets, terms, weights = _hashed(values)
        items = pa.StructArray.from_arrays(
            [pa.array(terms), pa.array(weights)], fields=[_VECTOR.value_type.field(i) for i in range(2)]
        )
        nulls = values.is_null()
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, mask=nulls if values.null_count else None)

    def over(self, kept: pa.Array, at: NDArray[np.int64], bounds: NDArray[np.int64]) -> pa.Array:
        """Compare each text with those of its window."""
        from evenkeel.operators import _kernels_text

        lengths = np.asarray(pc.fill_null(pc.list_value_length(kept), 0)).astype(np.int64)
        terms, weights = (np.asarray(part) for part in kept.flatten().flatten())
        found = _kernels_text.best_cosines(starts_of(lengths), terms, weights, at, bounds)
        valid = np.asarray(kept.is_valid())
        running = np.concatenate([[0], np.cumsum(valid)])
        return pa.array(found, mask=~valid[at] | (running[bounds[1]] == running[bounds[0]]))


def first_story(text: str = "text", last: int = 500, threshold: float = 0.2) -> Detector:
    """Build a detector that alerts for each text whose similarity to all of the key's last texts is below a threshold.

    Key the stream by :func:`lsh_keys`. A key's first text is a first story, too. Alerts have the text and the
    similarity to its nearest neighbour, null for a key's first.

    Parameters
    ----------
    text
        The column of texts.
    last
        How many texts to keep for each key (H).
    threshold
        The similarity below which a text is new (τ).

    Notes
    -----
    The rule of DLB's §4 (Listing 1.1), with two slips mended: the last text is not compared with itself, and "less than
    τ" (text and caption) is taken over the listing's ``<=``.
    """
    rule = WindowRule(
        "first story",
        {text: f"`{text}`", "similarity": f"max_similarity(`{text}`) OVER before"},
        when=f"`{text}` IS NOT NULL AND coalesce(max_similarity(`{text}`) OVER before, 0) < {threshold}",
        windows={"before": Frame.previous(last)},
    )
    return Detector([rule], [MaxSimilarity()])


def _hashed(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]:
    """Give the terms of all texts, ascending for each: where each text's start, the terms, and weights of length 1."""
    from evenkeel.operators import _kernels_text

    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise UnsupportedTypeError(f"Only text has terms to compare; this has type {texts.type}.")
    lower = pc.utf8_lower(texts.cast(pa.large_string()).fill_null(""))
    _, offsets, data = lower.buffers()
    if data is None or not data.size:
        return np.zeros(len(lower) + 1, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32)
    ends = np.frombuffer(offsets, np.int64)[lower.offset : lower.offset + len(lower) + 1]
    found = np.sort(_kernels_text.hash_terms(np.frombuffer(data, np.uint8), ends[:-1], np.diff(ends)))
    begins = np.flatnonzero(np.diff(found, prepend=found[:1] + 1))
    counts, text_of = np.diff(begins, append=len(found)), (found[begins] >> 32).astype(np.int64)
    lengths = np.sqrt(np.bincount(text_of, counts * counts, len(lower)))
    weights = (counts / lengths[text_of]).astype(np.float32)
    terms_of = np.bincount(text_of, minlength=len(lower))
    return starts_of(terms_of), found[begins].astype(np.uint32), weights
