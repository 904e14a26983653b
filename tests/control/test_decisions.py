"""Decisions are remembered with their numbers and reasons."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control.streams import stored_and_read
from evenkeel.control import Answer, Choice, Decision, DecisionLog, Saved, Trust
from evenkeel.errors import CorruptDataError, IncompatibleCheckpointError

numbers = st.floats(allow_nan=False, allow_infinity=False)
answers = st.builds(Answer, st.text(), st.booleans(), numbers, st.text())
decisions = st.builds(
    Decision,
    batch=st.integers(0),
    window=st.integers(0),
    time=numbers,
    choice=st.sampled_from(Choice),
    reasons=st.lists(st.text(), max_size=3).map(tuple),
    channels=st.integers(1, 99),
    next_channels=st.integers(1, 99),
    planner=st.none() | st.text(),
    before=st.none() | numbers,
    predicted=st.none() | numbers,
    achieved=st.none() | numbers,
    answers=st.lists(answers, max_size=3).map(tuple),
)


def a_decision(batch: int = 0) -> Decision:
    return Decision(batch, 0, 0.0, Choice.STAY, ("Why not.",), 4, 4)


@settings(max_examples=40)
@given(decisions)
def test_a_decision_goes_through_json_unchanged(decision):
    assert Decision.from_json(json.loads(json.dumps(decision.to_json()))) == decision


@pytest.mark.parametrize("broken", [{}, {"choice": "fly"}, {**a_decision().to_json(), "mood": 1}], ids=str)
def test_what_is_no_decision_is_refused(broken):
    with pytest.raises(CorruptDataError):
        Decision.from_json(broken)


def test_the_log_forgets_the_oldest_but_goes_on_counting():
    log = DecisionLog(limit=3)
    for batch in range(5):
        log.append(a_decision(batch))
    assert [decision.number for decision in log] == [2, 3, 4]
    assert len(log) == 3


def test_what_was_achieved_is_filled_in_while_it_is_remembered():
    log = DecisionLog(limit=3)
    for batch in range(5):
        log.append(a_decision(batch))
    log.complete(3, 1.25)
    log.complete(0, 9.0)
    assert [decision.achieved for decision in log] == [None, 1.25, None]


@settings(max_examples=30)
@given(st.lists(decisions, max_size=6))
def test_the_log_comes_back_from_storage_as_it_was(made):
    log, again = DecisionLog(limit=4), DecisionLog(limit=4)
    for decision in made:
        log.append(decision)
    again.restore(stored_and_read(log.snapshot()))
    assert list(again) == list(log)
    assert again.append(a_decision()) == log.append(a_decision())


def test_a_decision_reads_as_a_sentence():
    assert str(a_decision(7)) == "batch 7: stay. Why not."


@pytest.mark.parametrize(
    ("achieved", "caution"),
    [
        pytest.param([1.5], 1, id="one miss is forgiven"),
        pytest.param([1.5, 1.5], 2, id="two in a row are not"),
        pytest.param([1.5, 1.1, 1.5], 1, id="two misses, but not in a row"),
        pytest.param([1.5] * 9, 8, id="there is a limit"),
        pytest.param([1.5, 1.5, 1.5, 1.2], 2, id="a kept promise halves it"),
        pytest.param([1.5, 1.5, 1.2, 1.2], 1, id="trust can be regained"),
    ],
)
def test_a_planner_whose_predictions_fail_repeatedly_is_trusted_less(achieved, caution):
    trust = Trust()
    for skewness in achieved:
        trust = trust.after(before=1.5, predicted=1.1, achieved=skewness)
    assert trust.caution == caution


def test_who_promises_nothing_cannot_fail():
    assert Trust().after(before=1.1, predicted=1.2, achieved=3.0) == Trust()


def test_a_foreign_or_newer_table_is_no_stored_controller():
    with pytest.raises(CorruptDataError):
        Saved.from_arrow(pa.table({"a": [1]}))
    newer = Saved({}).to_arrow().replace_schema_metadata({"evenkeel.control": "99", "facts": "{}"})
    with pytest.raises(IncompatibleCheckpointError, match="99"):
        Saved.from_arrow(newer)
    with pytest.raises(CorruptDataError, match="drift"):
        Saved({}).part("drift")
