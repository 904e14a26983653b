"""Samples of every operator, which the conformance suite runs its checks on.

To add an operator, add a line to ``SAMPLES``: its class, and some :class:`Sample` of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
from hypothesis import strategies as st

from evenkeel.operators import Count, Detector, Operator, PerKey, RowCodec
from evenkeel.operators.aggregate import Aggregate
from evenkeel.operators.aggregates import ApproxDistinct, CountOf, First, Last, Max, Mean, Min, Sum, Variance
from evenkeel.operators.count_windows import CountSliding, CountTumbling
from evenkeel.operators.decision_tree import FeatureHistograms
from evenkeel.operators.heavy_hitters import HeavyHitters
from evenkeel.operators.naive_bayes import FeatureClassCounts, NaiveBayesPredict
from evenkeel.operators.reorder import Reordered
from evenkeel.operators.sessions import Sessions
from evenkeel.operators.split import PART, Merged, MergedColumns, Partial
from evenkeel.operators.top_k import TopK
from evenkeel.operators.window_join import WindowJoin
from evenkeel.operators.windows import Sliding, Tumbling

COLUMNS: Mapping[str, tuple[pa.DataType, st.SearchStrategy]] = {
    "key": (pa.string(), st.sampled_from(["a", "b", "c", "", None])),
    "value": (pa.int64(), st.none() | st.integers(-9, 9)),
    "price": (pa.float64(), st.none() | st.floats(-100, 100) | st.just(math.nan)),
    "word": (pa.string(), st.none() | st.sampled_from(["", "x", "y", "zebra", "ß"])),
    "time": (pa.int64(), st.none() | st.integers(0, 100)),
}


def equal(left: Any, right: Any) -> bool:
    """Whether two results are the same, NaN beside NaN too."""
    return near(left, right, tolerance=0)


def near(left: Any, right: Any, *, tolerance: float = 1e-9) -> bool:
    """Whether two results are the same but for the last digits of floats."""
    if isinstance(left, float) and isinstance(right, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or math.isclose(left, right, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(near(left[k], right[k], tolerance=tolerance) for k in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        same_length = len(left) == len(right)
        return same_length and all(near(a, b, tolerance=tolerance) for a, b in zip(left, right, strict=True))
    return type(left) is type(right) and left == right


@dataclass(frozen=True)
class Sample:
    """An operator, and what may be thrown at it.

    Parameters
    ----------
    operator
        One value of the class.
    columns
        The columns of tuples, ``key`` among them: type and Hypothesis strategy of each.
    event_time
        Which of them is the event time, if the operator needs one.
    delay
        How far the watermark stays behind; far enough here for no tuple to be late.
    any_cut
        What any cut of a stream into batches leaves the same: the ``"last"`` result of each key, ``"all"`` results
        (their order aside), or nothing (``None``).
    same
        Whether two results, or two states, are the same.
    except_for
        Checks that do not hold, by name, and why not.
    """

    operator: Operator
    columns: Mapping[str, tuple[pa.DataType, st.SearchStrategy]] = field(default_factory=lambda: COLUMNS)
    event_time: str | None = "time"
    delay: int = 1_000
    any_cut: Literal["last", "all"] | None = "last"
    same: Callable[[Any, Any], bool] = equal
    except_for: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns of tuples."""
        return pa.schema([(name, kind) for name, (kind, _) in self.columns.items()])

    def rows(self, max_size: int = 15) -> st.SearchStrategy[pa.Table]:
        """Some tuples."""
        row = st.fixed_dictionaries({name: values for name, (_, values) in self.columns.items()})
        return st.lists(row, max_size=max_size).map(lambda rows: pa.Table.from_pylist(rows, self.schema))


def remember(key: tuple[Any, ...], rows: list[dict[str, Any]], state: dict[str, Any] | None) -> Any:
    """A function per key whose state depends on the order of tuples."""
    seen = (state["seen"] if state else f"{key[0]}:") + "".join(f"{row['value']};" for row in rows)
    return {"seen": seen}, [{"seen": seen}]


def part(count: int) -> bytes:
    """A partial state of a count, as it is handed on."""
    codec = RowCodec(pa.schema([("count", pa.int64())]))
    return codec.encode(pa.table({"count": [count]}))[0].as_py()


_SIDES = {**COLUMNS, "side": (pa.string(), st.sampled_from(["left", "right"]))}
_DOCUMENTS = {
    **COLUMNS,
    "class": (pa.string(), st.none() | st.sampled_from("xy")),
    "document": (pa.int64(), st.integers(0, 3)),
    "probe": (pa.bool_(), st.booleans()),
}
_ANSWERS = {
    "key": COLUMNS["key"],
    "feature": (pa.string(), st.none()),  # every document answers for itself
    "times": (pa.int64(), st.integers(1, 3)),
    "class": (pa.string(), st.sampled_from("xy")),
    "rows": (pa.int64(), st.integers(1, 9)),
    "count": (pa.int64(), st.integers(0, 9)),
}
_PARTS = {**COLUMNS, PART: (pa.binary(), st.integers(0, 9).map(part))}
_PART_COLUMNS = {**COLUMNS, f"{PART}_0": (pa.int64(), st.integers(0, 9))}
_SEEN = pa.schema([("seen", pa.string())])
_RULES = {
    "above the mean": """
        SELECT value, avg(value) OVER last AS mean FROM events
        QUALIFY value > avg(value) OVER last WINDOW last AS (ROWS 3 PRECEDING)
    """,
    "up and down": """
        SELECT * FROM events MATCH_RECOGNIZE (
            MEASURES FIRST(up.value) AS first PATTERN (up+ down)
            DEFINE up AS value > PREV(value), down AS value < PREV(value)
        )
    """,
}
_MANY = Aggregate(n=Count(), total=Sum("value"), low=Min("word"), high=Max("price"), end=Last("word"))

SAMPLES: dict[type[Operator], list[Sample]] = {
    Aggregate: [Sample(_MANY), Sample(Aggregate(mean=Mean("value"), spread=Variance("price")), same=near)],
    ApproxDistinct: [Sample(ApproxDistinct("word", error=0.5)), Sample(ApproxDistinct("value"))],
    Count: [Sample(Count()), Sample(Count("n"), event_time=None)],
    CountOf: [Sample(CountOf("word"))],
    CountSliding: [
        Sample(CountSliding(Count(), 5, 2), any_cut="all"),
        Sample(CountSliding(_MANY, 6, 3), any_cut="all"),
    ],
    CountTumbling: [Sample(CountTumbling(Sum("value"), 3), any_cut="all")],
    Detector: [Sample(Detector(_RULES), any_cut="all")],
    FeatureClassCounts: [Sample(FeatureClassCounts(weight=None), _DOCUMENTS, any_cut=None)],
    FeatureHistograms: [Sample(FeatureHistograms(), _DOCUMENTS, same=near)],
    First: [Sample(First("value")), Sample(First("word"))],
    HeavyHitters: [Sample(HeavyHitters("word", 20, k=3))],
    Last: [Sample(Last("price")), Sample(Last("word"))],
    Max: [Sample(Max("price")), Sample(Max("word"))],
    Mean: [Sample(Mean("price"), same=near), Sample(Mean("value"))],
    Merged: [Sample(Merged(Count(), pa.schema([("key", pa.string())])), _PARTS)],
    MergedColumns: [Sample(MergedColumns(Count(), pa.schema([("key", pa.string())])), _PART_COLUMNS)],
    Min: [Sample(Min("price")), Sample(Min("value"))],
    NaiveBayesPredict: [Sample(NaiveBayesPredict(vocabulary=5), _ANSWERS, event_time=None, any_cut=None)],
    Partial: [
        Sample(Partial(Count()), any_cut=None),
        Sample(Partial(Sum("value"), every=3), any_cut=None),
        Sample(Partial(MergedColumns(Count(), pa.schema([("key", pa.string())]))), _PART_COLUMNS, any_cut=None),
    ],
    PerKey: [Sample(PerKey(remember, state=_SEEN, output=_SEEN))],
    Reordered: [Sample(Reordered(Count())), Sample(Reordered(CountTumbling(Sum("value"), 3)), any_cut="all")],
    Sessions: [Sample(Sessions("7 microseconds", _MANY), any_cut="all")],
    Sliding: [
        Sample(Sliding(Count(), "12 microseconds", "5 microseconds"), any_cut="all"),
        Sample(Sliding(_MANY, "20 microseconds", "10 microseconds"), any_cut="all"),
    ],
    Sum: [Sample(Sum("value")), Sample(Sum("price"), same=near)],
    TopK: [Sample(TopK(2, by="value"))],
    Tumbling: [Sample(Tumbling(_MANY, "15 microseconds"), any_cut="all")],
    WindowJoin: [Sample(WindowJoin(["value"], ["word"], "9 microseconds"), _SIDES, any_cut="all")],
    Variance: [Sample(Variance("price"), same=near), Sample(Variance("value"), same=near)],
}
