"""Naive Bayes: counters of features and classes that may be split, and predictions from what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators.base import Operator, Update
from evenkeel.operators.checks import at_least, flat_field, number_type
from evenkeel.operators.mergeable import Mergeable
from evenkeel.operators.ragged import ROW, codes_of, entries_of, nest_entries, one_chunk, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evenkeel.operators.groups import Groups

__all__ = ["FeatureClassCounts", "NaiveBayesPredict"]


@dataclass(frozen=True)
class FeatureClassCounts(Mergeable):
    """Count how often each feature comes with each class, and answer documents that ask.

    The key is the feature. A tuple with a class is learned from. A tuple marked in the ``probe`` column asks for its
    feature's counters on behalf of its document; it is answered after all tuples of its batch are learned, so that all
    features of a document are answered from the same past. Tuples with neither are left out.

    An answer is one row per document and class, the class null if nothing was counted for this feature. If the question
    goes to every channel that may hold a part of the counter, each answers for its own part, and
    :class:`NaiveBayesPredict` adds the parts up. If instead the parts are merged first, the question travels with them.

    Parameters
    ----------
    class_column
        What is to be predicted.
    document
        What tells documents apart.
    probe
        A column that is true for tuples that ask.
    weight
        How often the feature is in the document; 1 without it.

    Notes
    -----
    O(n log n) for n tuples, plus the answers: probes × classes. A state has one entry per class.

    References
    ----------
    M. A. U. Nasir et al., The Power of Both Choices, §VI-A.
    """

    name = "feature_class_counts"
    class_column: str = "class"
    document: str = "document"
    probe: str = "probe"
    weight: str | None = "count"

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """Class, document, probe and weight."""
        return list(dict.fromkeys([self.class_column, self.document, self.probe, self.weight or self.probe]))

    def _number(self, rows: pa.Schema) -> pa.DataType:
        return pa.int64() if self.weight is None else number_type(rows, self.weight)

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """For each class, the tuples and their weight; and which documents ask."""
        if not pa.types.is_boolean(flat_field(rows, self.probe).type):
            raise UnsupportedTypeError(f"Column {self.probe!r} must be true for tuples that ask, and else false.")
        kind = flat_field(rows, self.class_column).type
        counter = pa.struct([("class", kind), ("rows", pa.int64()), ("count", self._number(rows))])
        question = pa.struct([("document", flat_field(rows, self.document).type), ("times", self._number(rows))])
        return pa.schema([("classes", pa.list_(counter)), ("asked", pa.list_(question))])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """For each document that asked and each class, the feature's weight in the document and its counters here."""
        counter = self.state_schema(rows).field("classes").type.value_type
        asked = [pa.field(self.document, rows.field(self.document).type), pa.field("times", self._number(rows))]
        return pa.schema([*asked, *counter])

    def lift(self, groups: Groups) -> pa.Table:
        """Count the tuples of each key that have a class and do not ask, and note those that ask."""
        rows = groups.rows
        asks = pc.fill_null(rows[self.probe], False)
        weights = self._weights(rows)
        learned = pa.table({ROW: groups.key_of, "class": rows[self.class_column], "count": weights})
        learned = learned.append_column("rows", pa.repeat(np.int64(1), len(rows)))
        learned = learned.filter(pc.and_(learned["class"].is_valid(), pc.invert(asks)))
        asked = pa.table({ROW: groups.key_of, "document": rows[self.document], "times": weights}).filter(asks)
        return _states(learned, asked, len(groups))

    def merge(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Add up."""
        learned, asked = (
            pa.concat_tables([entries_of(side[name]) for side in (left, right)]) for name in ("classes", "asked")
        )
        return _states(learned, asked, len(left))

    def results(self, states: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
        """Answer those that ask."""
        counters, asked = entries_of(states["classes"]), entries_of(states["asked"])
        row_of = asked[ROW].to_numpy()
        starts = starts_of(np.bincount(counters[ROW].to_numpy(), minlength=len(states)))
        held = np.diff(starts)[row_of]
        answers = np.maximum(held, 1)
        question_of = np.repeat(np.arange(len(row_of)), answers)
        within = np.arange(len(question_of)) - np.repeat(np.cumsum(answers) - answers, answers)
        places = pa.array(starts[row_of][question_of] + within, mask=held[question_of] == 0)
        answered = counters.drop_columns(ROW).take(places)
        questions = asked.select(["document", "times"]).take(pa.array(question_of))
        numbers = [pc.fill_null(answered[name], 0) for name in ("rows", "count")]
        names = [self.document, "times", "class", "rows", "count"]
        return pa.table([*questions.columns, answered["class"], *numbers], names=names), row_of[question_of]

    def settle(self, groups: Groups, states: pa.Table) -> Update:  # noqa: ARG002
        """Answer, and forget the questions; a feature that nothing was learned of leaves no state behind."""
        outputs, key_of = self.results(states)
        nothing = entries_of(states["asked"]).slice(0, 0)
        after = states.set_column(1, "asked", nest_entries(nothing, len(states)))
        return Update(after, outputs, key_of, keep=pc.list_value_length(states["classes"]).to_numpy() > 0)

    def _weights(self, rows: pa.Table) -> Any:
        if self.weight is None:
            return pa.repeat(np.int64(1), len(rows))
        return pc.fill_null(pc.cast(rows[self.weight], self._number(rows.schema)), 0)


def _states(learned: pa.Table, asked: pa.Table, rows: int) -> pa.Table:
    """Add up counters and questions of the same row."""
    counters = learned.group_by([ROW, "class"], use_threads=False).aggregate([("rows", "sum"), ("count", "sum")])
    counters = counters.rename_columns([ROW, "class", "rows", "count"])
    questions = asked.group_by([ROW, "document"], use_threads=False).aggregate([("times", "sum")])
    questions = questions.rename_columns([ROW, "document", "times"])
    columns = {
        "classes": nest_entries(counters.sort_by([(ROW, "ascending"), ("class", "ascending")]), rows),
        "asked": nest_entries(questions.sort_by([(ROW, "ascending"), ("document", "ascending")]), rows),
    }
    return pa.table(columns)


@dataclass(frozen=True)
class NaiveBayesPredict(Operator):
    r"""Predict the class of each document from the counters that its features' channels answered.

    The key is the document. The tuples are the results of :class:`FeatureClassCounts`; the parts of a feature's counter
    are added up first, however many channels they come from. With :math:`N_{fc}` the count of a feature in a class,
    :math:`N_c` the total of the class, :math:`x_f` how often the document has the feature and :math:`V` how many values
    there are to smooth over, a class has the log-likelihood
    :math:`\log P(c) + \sum_f x_f \log \frac{N_{fc} + \alpha}{N_c + \alpha V}`.

    A document is predicted in the batch in which it asks, and no state is kept. Before anything was learned, class and
    probability are null. Of equally likely classes the first in order wins.

    Parameters
    ----------
    vocabulary
        For counts of features (multinomial): how many different features there are, seen or not (V).
    categories
        For features with one of several values (categorical): how many values each feature has, one number for all, or
        a number for each feature's name. Either this or ``vocabulary``.
    alpha
        Smoothing (α), above 0.
    feature, value
        The key columns of the stage before; ``value`` only with ``categories``. A null feature is the document itself.

    Notes
    -----
    O(n) for n answers, and documents × classes memory.
    """

    name = "naive_bayes_predict"
    vocabulary: int | None = None
    categories: int | Mapping[str, int] | None = None
    alpha: float = 1.0
    feature: str = "feature"
    value: str = "value"

    def __post_init__(self) -> None:
        if (self.vocabulary is None) == (self.categories is None):
            raise InvalidArgumentError("Give either vocabulary (counts) or categories (values), and not both.")
        sizes = self.categories.values() if isinstance(self.categories, Mapping) else [self.categories]
        for what, size in [("vocabulary", self.vocabulary), *(("categories", size) for size in sizes)]:
            if size is not None:
                at_least(what, size, 1)
        if not self.alpha > 0:
            raise InvalidArgumentError(f"alpha must be above 0; got {self.alpha}.")

    @property
    def _key(self) -> list[str]:
        return [self.feature] if self.categories is None else [self.feature, self.value]

    def columns(self, rows: pa.Schema) -> list[str]:  # noqa: ARG002
        """The feature, and the answers."""
        return [*self._key, "times", "class", "rows", "count"]

    def state_schema(self, rows: pa.Schema) -> pa.Schema:
        """The class, though none is kept."""
        for name in self.columns(rows):
            flat_field(rows, name)
        return pa.schema([rows.field("class")])

    def output_schema(self, rows: pa.Schema) -> pa.Schema:
        """The likeliest class, and the logarithm of its probability."""
        return pa.schema([rows.field("class"), ("log_probability", pa.float64())])

    def update(self, groups: Groups, states: pa.Table, known: NDArray[np.bool_]) -> Update:  # noqa: ARG002
        """Predict every document of the batch."""
        rows = groups.rows
        is_document = rows[self.feature].is_null().to_numpy()
        if len(np.unique(groups.key_of[is_document])) < len(groups):
            raise InvalidArgumentError(
                f"A document has no row with a null {self.feature!r}, which stands for the document itself. Make the "
                "rows with word_rows, count_rows or category_rows, and keep null keys."
            )
        classes, _ = codes_of(rows["class"].filter(pa.array(is_document)).drop_null())
        if len(classes) == 0:
            return _predicted(groups, pa.nulls(len(groups), classes.type), pa.nulls(len(groups), pa.float64()))
        class_of = pc.fill_null(pc.index_in(rows["class"], classes), -1).to_numpy()
        documents, totals = np.zeros((2, len(groups), len(classes)))
        counted = is_document & (class_of >= 0)
        cells = groups.key_of[counted], class_of[counted]
        np.add.at(documents, cells, rows["rows"].to_numpy()[counted])
        np.add.at(totals, cells, rows["count" if self.categories is None else "rows"].to_numpy()[counted])
        with np.errstate(divide="ignore", invalid="ignore"):  # a document that no class was learned for has no prior
            scores = np.log(documents) - np.log(documents.sum(axis=1, keepdims=True))
            features = rows.filter(pa.array(~is_document))
            scores += self._likelihoods(features, groups.key_of[~is_document], class_of[~is_document], totals)
            best = scores.argmax(axis=1)
            top = scores[np.arange(len(groups)), best]
            logs = -np.log(np.exp(scores - top[:, None]).sum(axis=1))
        unknown = documents.sum(axis=1) == 0
        return _predicted(groups, classes.take(pa.array(best, mask=unknown)), pa.array(logs, mask=unknown))

    def _likelihoods(
        self,
        answers: pa.Table,
        document_of: NDArray[np.int64],
        class_of: NDArray[np.int32],
        totals: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Σ x·(log(N + α) − log(total + α·V)), for each document and class."""
        log_alpha = np.log(self.alpha)
        likelihoods = np.zeros(totals.shape)
        feature_of = document_of
        for name in self._key:
            feature_of = _told_apart(feature_of, _codes(answers[name]))
        # Channels' parts of one counter come together before the logarithm.
        part_of = _told_apart(feature_of, class_of)
        counts = np.bincount(part_of, answers["count"].to_numpy())
        first = _one_each(part_of)
        first = first[class_of[first] >= 0]
        times = answers["times"].to_numpy()
        above = times[first] * (np.log(counts[part_of[first]] + self.alpha) - log_alpha)
        np.add.at(likelihoods, (document_of[first], class_of[first]), above)
        # What every class has, seen or not: once for each feature of the document.
        first = _one_each(feature_of)
        sizes = self._sizes(answers[self.feature].take(pa.array(first)))
        for size in np.unique(sizes):
            weights = np.bincount(document_of[first], np.where(sizes == size, times[first], 0), minlength=len(totals))
            likelihoods += weights[:, None] * (log_alpha - np.log(totals + self.alpha * size))
        return likelihoods

    def _sizes(self, features: pa.ChunkedArray) -> NDArray[np.int64]:
        """How many values each feature is smoothed over."""
        if not isinstance(self.categories, Mapping):
            return np.full(len(features), self.vocabulary or self.categories, np.int64)
        names, (code_of,) = codes_of(features)
        for name in names.to_pylist():
            if name not in self.categories:
                raise UnknownNameError("feature in categories", str(name), [str(known) for known in self.categories])
        return np.array([self.categories[name] for name in names.to_pylist()], np.int64)[code_of]


def _predicted(groups: Groups, classes: pa.Array, logs: pa.Array) -> Update:
    outputs = pa.table({"class": classes, "log_probability": logs})
    return Update(outputs.select(["class"]), outputs, keep=np.zeros(len(groups), bool))


def _codes(column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Number the different values of a column in the order in which they come; a null is −1."""
    return pc.fill_null(one_chunk(column).dictionary_encode().indices, -1).to_numpy().astype(np.int64)


def _told_apart(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """Number the different pairs of numbers from −1 on."""
    width = int(right.max(initial=-1)) + 2
    return _codes(pa.array(left.astype(np.int64) * width + right + 1))


def _one_each(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give a place at which each number is."""
    places = np.empty(int(numbers.max(initial=-1)) + 1, np.int64)
    places[numbers] = np.arange(len(numbers))
    return places
