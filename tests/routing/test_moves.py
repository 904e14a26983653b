"""The difference of two tables, carried out, turns one into the other and loses nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.routing import Action, Ragged, RoutingTable
from routing.test_table import tables

KEYS = st.integers(-20, 20)  # few, so that both tables list the same ones


def pieces(table: RoutingTable, keys: np.ndarray) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Which channels hold a part of each key's state, and which a backup."""
    active = {k: set(c) for k, c in zip(keys.tolist(), table.active_channels(keys).tolist(), strict=True)}
    backups = {k: set(c) for k, c in zip(keys.tolist(), table.backups(keys).tolist(), strict=True)}
    return active, backups


@given(st.data(), st.integers(1, 7))
def test_carrying_out_the_moves_gives_the_new_table(data, slots):
    old = data.draw(tables(slots=st.just(slots), keys=KEYS))
    new = data.draw(tables(slots=st.just(slots), keys=KEYS))
    keys = np.arange(-25, 26)
    listed = set(np.concatenate([old.pin_hashes, old.split_hashes, new.pin_hashes, new.split_hashes]).tolist())
    active, backups = pieces(old, keys)
    home = dict(zip(keys.tolist(), old.home(keys).tolist(), strict=True))
    moves = old.diff(new)
    for row in moves.to_arrow().to_pylist():
        about = [row["id"]] if row["kind"] == "key" else [k for k in keys.tolist() if k % slots == row["id"]]
        for key in about:
            if (key in listed) != (row["kind"] == "key") or key not in active:
                continue
            if row["action"] == "copy":
                assert row["source"] == home[key]
                backups[key].add(row["target"])
                continue
            assert row["source"] in active[key]
            assert row["source"] != row["target"]
            assert (row["action"] == "switch") == (row["target"] in backups[key])
            active[key] -= {row["source"]}
            active[key] |= {row["target"]}
            backups[key] |= {row["source"]}  # where it was, it may stay as a backup
    new_active, new_backups = pieces(new, keys)
    for key in keys.tolist():
        assert active[key] <= new_active[key], "state may sit only where the new table looks for it"
        assert active[key], "no state may be lost"
        assert new_backups[key] <= backups[key] | active[key]


@given(tables())
def test_nothing_moves_between_equal_tables(table):
    assert len(table.diff(table)) == 0


def test_switching_to_a_backup_sends_no_state():
    old = RoutingTable([0, 1], 3, slot_backups=Ragged.of([[2], []]))
    new = RoutingTable([2, 0], 3, slot_backups=Ragged.of([[0], [2]]))
    moves = old.diff(new)
    assert moves.to_arrow().to_pylist() == [
        {"kind": "slot", "id": 0, "source": 0, "target": 2, "action": "switch"},
        {"kind": "slot", "id": 1, "source": 1, "target": 0, "action": "move"},
        {"kind": "slot", "id": 1, "source": 1, "target": 2, "action": "copy"},
    ]
    assert moves.sends_state.tolist() == [False, True, True]
    assert Action(moves.actions[0]) is Action.SWITCH


def test_a_key_that_is_no_longer_split_is_gathered_at_its_home():
    old = RoutingTable([0], 4, split_hashes=[7], split_channels=Ragged.of([[1, 2, 3]]))
    new = RoutingTable([0], 4, pin_hashes=[7], pin_channels=[2])
    moves = old.diff(new)
    assert moves.sources.tolist() == [1, 3]
    assert moves.targets.tolist() == [2, 2]
    assert moves.is_key.all()


def test_tables_with_other_slots_cannot_be_compared():
    with pytest.raises(InvalidArgumentError, match="got 4 and 8"):
        RoutingTable.even(2, slots=4).diff(RoutingTable.even(2, slots=8))
