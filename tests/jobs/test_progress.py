"""What is watched of a batch: sums over channels, the worst stage, and the last decision of the batch."""

from __future__ import annotations

from evenkeel.control import Choice, Decision
from evenkeel.jobs import progress_of


def report(rows: int, *, tuples: int | None = None, late: int = 0, results: int = 0, moved: int = 0):
    tuples = rows if tuples is None else tuples
    return {"rows": rows, "tuples": tuples, "late": late, "results": results, "imported_bytes": moved}


def test_a_batch_is_summed_up():
    first = [report(30, tuples=300, late=1), report(10, tuples=100, moved=7)]
    second = [report(0), report(4, late=2, results=5), report(5, results=6, moved=1)]
    decisions = [
        Decision(4, 0, 0.0, Choice.REHOME, ("A host left.",), 2, 2),
        Decision(4, 0, 0.0, Choice.MOVE, ("Uneven.",), 2, 2),
        Decision(5, 0, 0.0, Choice.STAY, ("Even.",), 2, 2),
    ]
    made = progress_of({"batch": 4, "ms": 12.34, "reports": [first, second]}, decisions)
    assert made.to_json() == {
        "batch": 4,
        "ms": 12.3,
        "rows": 400,
        "late": 3,
        "results": 11,
        "imbalance": 1.6667,
        "moved_bytes": 8,
        "stages": [{"loads": [30, 10], "imbalance": 1.5}, {"loads": [0, 4, 5], "imbalance": 1.6667}],
        "choice": "move",
        "reasons": ["Uneven."],
    }


def test_an_empty_batch_is_even_and_undecided():
    made = progress_of({"batch": 0, "ms": 1.0, "reports": [[report(0), report(0)]]}, [])
    assert made.imbalance == 1
    assert made.to_json()["choice"] is None
