"""Tuples are told apart by their keys, and keys are in the order in which their states are stored."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.hashing import hash_keys
from evenkeel.operators import Groups
from evenkeel.state import both_hashes
from evenkeel.state.identity import ascending, pack

SLOTS = st.sampled_from([1, 2, 64, 4096])


def groups_of(words, hashes, hashes2, slots):
    return Groups.of(pa.table({"word": words}), ["word"], hashes, hashes2, slots=slots)


def check(groups, words, slots):
    assert groups.keys["word"].take(pa.array(groups.key_of)).to_pylist() == words
    assert sorted(groups.keys["word"].to_pylist()) == sorted(set(words))
    names = list(zip((groups.hashes % slots).tolist(), groups.hashes.tolist(), groups.hashes2.tolist(), strict=True))
    assert names == sorted(names)


@given(st.lists(st.integers(0, 300).map(str), min_size=1, max_size=200), SLOTS)
def test_keys_are_in_the_order_of_slot_and_hash(words, slots):
    keys = pa.array(words)
    groups = groups_of(words, *both_hashes(keys), slots)
    check(groups, words, slots)
    assert ascending(pack(groups.hashes % slots, groups.hashes, groups.hashes2)) is None


@given(st.lists(st.integers(0, 300).map(str), min_size=1, max_size=200))
def test_without_slots_keys_are_in_the_order_in_which_they_came(words):
    keys = pa.array(words)
    groups = groups_of(words, *both_hashes(keys), None)
    assert groups.keys["word"].to_pylist() == list(dict.fromkeys(words))
    assert groups.keys["word"].take(pa.array(groups.key_of)).to_pylist() == words
    assert groups.hashes.tolist() == hash_keys(groups.keys["word"]).tolist()


@pytest.mark.parametrize("slots", [1, 16], ids=["by hash alone", "by slot and hash"])
def test_keys_whose_hashes_are_or_begin_alike_are_put_in_order_by_the_rest(slots):
    words = ["a", "b", "c", "d", "a"]
    hashes = np.array([48, 48, 32, -(2**63), 48])
    check(groups_of(words, hashes, np.array([2, 1, 5, 0, 2]), slots), words, slots)
