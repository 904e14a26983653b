"""Documents as one row per feature, for naive Bayes: pure Arrow, to be called on batches before the shuffle.

Each document also has one row with a null feature, which stands for the document itself. Its counters are the documents
and the features of each class, so the totals reach every prediction the same way as any other count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import UnknownNameError, UnsupportedTypeError
from evenkeel.operators.checks import number_type
from evenkeel.operators.ragged import one_chunk

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["category_rows", "count_rows", "word_rows"]


def word_rows(documents: pa.Table, words: str) -> pa.Table:
    """Explode a column of lists of words: one row per document and different word, with its ``count``.

    Parameters
    ----------
    documents
        One row per document. All columns but the words are repeated on every row.
    words
        The column of lists; null words are left out.

    Examples
    --------
    >>> texts = pa.table({"document": [1], "words": [["to", "be", "or", "not", "to", "be"]]})
    >>> word_rows(texts, "words").select(["feature", "count"]).to_pydict()
    {'feature': ['to', 'be', 'or', 'not', None], 'count': [2, 2, 1, 1, 6]}
    """
    _check_columns(documents, [words])
    lists = one_chunk(documents[words])
    if not pa.types.is_list(lists.type) and not pa.types.is_large_list(lists.type):
        raise UnsupportedTypeError(f"Column {words!r} has type {lists.type}; it must hold lists of words.")
    single = pa.table({"row": pc.list_parent_indices(lists), "feature": pc.list_flatten(lists)})
    single = single.filter(single["feature"].is_valid())
    counted = single.group_by(["row", "feature"], use_threads=False).aggregate([([], "count_all")])
    row_of = counted["row"].to_numpy()
    counts = counted["count_all"].to_numpy()
    lengths = np.bincount(row_of, weights=counts, minlength=len(documents)).astype(np.int64)
    columns = {"feature": counted["feature"], "count": pa.array(counts)}
    return _with_documents(documents.drop_columns(words), row_of, columns, lengths)


def count_rows(documents: pa.Table, features: Sequence[str]) -> pa.Table:
    """Explode columns of counts: one row per document and column that is not 0 or null, with its ``count``.

    >>> texts = pa.table({"document": [1, 2], "keel": [2, 0], "sail": [1, 3]})
    >>> count_rows(texts, ["keel", "sail"]).to_pydict()
    {'document': [1, 1, 2, 1, 2], 'feature': ['keel', 'sail', 'sail', None, None], 'count': [2, 1, 3, 3, 3]}
    """
    _check_columns(documents, features)
    whole = all(number_type(documents.schema, name) == pa.int64() for name in features)
    kind = pa.int64() if whole else pa.float64()
    counts = np.column_stack([pc.fill_null(pc.cast(documents[name], kind), 0).to_numpy() for name in features])
    row_of, column_of = np.nonzero(counts)
    columns = {"feature": _names(features, column_of), "count": pa.array(counts[row_of, column_of])}
    return _with_documents(documents.drop_columns(list(features)), row_of, columns, counts.sum(axis=1))


def category_rows(documents: pa.Table, features: Sequence[str]) -> pa.Table:
    """Explode columns of categories: one row per document and column that is not null, with its ``value`` as text.

    >>> boats = pa.table({"document": [1], "rig": ["sloop"], "masts": [1]})
    >>> category_rows(boats, ["rig", "masts"]).to_pydict()
    {'document': [1, 1, 1], 'feature': ['rig', 'masts', None], 'value': ['sloop', '1', None], 'count': [1, 1, 2]}
    """
    _check_columns(documents, features)
    present = np.column_stack([documents[name].is_valid().to_numpy() for name in features])
    row_of, column_of = np.nonzero(present)
    texts = pa.concat_arrays([one_chunk(pc.cast(documents[name], pa.string())) for name in features])
    columns = {
        "feature": _names(features, column_of),
        "value": texts.take(pa.array(column_of * len(documents) + row_of)),
        "count": pa.array(np.ones(len(row_of), np.int64)),
    }
    return _with_documents(documents.drop_columns(list(features)), row_of, columns, present.sum(axis=1))


def _names(features: Sequence[str], column_of: np.ndarray) -> pa.Array:
    return pa.array(list(features), pa.string()).take(pa.array(column_of))


def _with_documents(
    others: pa.Table, row_of: np.ndarray, columns: dict[str, pa.Array], counts_of_documents: np.ndarray
) -> pa.Table:
    """Put the documents' other columns beside their features, and a row for each document itself at the end."""
    rows = others.take(pa.array(row_of))
    for name, column in columns.items():
        rows = rows.append_column(name, column)
        kind = column.type
        itself = pa.array(counts_of_documents, kind) if name == "count" else pa.nulls(len(counts_of_documents), kind)
        others = others.append_column(name, itself)
    return pa.concat_tables([rows, others])


def _check_columns(documents: pa.Table, names: Sequence[str]) -> None:
    for name in names:
        if name not in documents.column_names:
            raise UnknownNameError("column", name, documents.column_names)
