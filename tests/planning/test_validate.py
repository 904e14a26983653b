"""Validation refuses every plan that would lose state or does not do what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evenkeel.errors import InvalidPlanError
from evenkeel.planning import plan, validate
from evenkeel.routing import Action, Moves, Ragged, RoutingTable
from planning.instances import KEYS, zipf_snapshot


@pytest.fixture
def good():
    snapshot = zipf_snapshot(300, 1.0, slots=32, track=40)
    table = RoutingTable.even(4, slots=32).with_pins(KEYS[:2], [0, 1])
    made = plan("keel", snapshot, table)
    assert len(made.moves) > 2
    validate(made, snapshot, table)
    return made, snapshot, table


def edited(moves: Moves, **changes) -> Moves:
    fields = {name: getattr(moves, name) for name in ("is_key", "ids", "sources", "targets", "actions")}
    return Moves(**{**fields, **changes})


def without_first(moves: Moves) -> Moves:
    return Moves(*(getattr(moves, name)[1:] for name in ("is_key", "ids", "sources", "targets", "actions")))


def doubled(moves: Moves) -> Moves:
    return Moves(*(np.repeat(getattr(moves, n), 2) for n in ("is_key", "ids", "sources", "targets", "actions")))


BROKEN = {
    "a move forgotten": (lambda m: without_first(m.moves), "would not be where the new table looks"),
    "a move made twice": (lambda m: doubled(m.moves), "from where there is none"),
    "to a channel that does not exist": (lambda m: edited(m.moves, targets=m.moves.targets + 9), "does not exist"),
    "to itself": (lambda m: edited(m.moves, targets=m.moves.sources), "to itself"),
    "from a wrong channel": (lambda m: edited(m.moves, sources=(m.moves.targets + 1) % 4), "from where there is none"),
    "a switch without a backup": (
        lambda m: edited(m.moves, actions=np.full(len(m.moves), Action.SWITCH, np.int8)),
        "holds no backup",
    ),
    "a key that is not listed": (
        lambda m: edited(m.moves, is_key=np.ones(len(m.moves), bool), ids=np.arange(len(m.moves))),
        "neither table lists",
    ),
    "a slot that does not exist": (
        lambda m: edited(m.moves, is_key=np.zeros(len(m.moves), bool), ids=m.moves.ids * 0 + 32),
        "slot that does not exist",
    ),
}


@pytest.mark.parametrize(("broken", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_moves_that_do_not_lead_to_the_table_are_refused(good, broken, why):
    made, snapshot, table = good
    with pytest.raises(InvalidPlanError, match=why):
        validate(replace(made, moves=broken(made)), snapshot, table)


def test_a_table_with_other_slots_is_refused(good):
    made, snapshot, table = good
    with pytest.raises(InvalidPlanError, match="number of slots"):
        validate(replace(made, table=RoutingTable.even(4, slots=64)), snapshot, table)


def test_an_old_epoch_is_refused(good):
    made, snapshot, table = good
    with pytest.raises(InvalidPlanError, match="epoch"):
        validate(replace(made, table=made.table.evolve(epoch=table.epoch)), snapshot, table)


def test_a_new_split_is_refused(good):
    made, snapshot, table = good
    split = made.table.evolve(split_hashes=[12345], split_channels=Ragged.of([[0, 1]]))
    with pytest.raises(InvalidPlanError, match="splits a key"):
        validate(replace(made, table=split), snapshot, table)


def test_a_false_prediction_is_refused(good):
    made, snapshot, table = good
    with pytest.raises(InvalidPlanError, match="predicts an imbalance"):
        validate(replace(made, after=made.before), snapshot, table)
