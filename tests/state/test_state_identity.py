from __future__ import annotations

import decimal
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.hashing import hash_keys
from evenkeel.state import SECOND_SEED, Selection, both_hashes
from evenkeel.state.identity import as_list, ascending, count_up_to, locate, pack, unpack

LONGS = st.integers(-(2**63), 2**63 - 1)
EDGES = st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1, 256, -256]) | LONGS
NAMES = st.tuples(st.integers(0, 2**31 - 1) | st.integers(0, 3), EDGES, EDGES)


def columns(names):
    return [np.array([name[place] for name in names], np.int64) for place in range(3)]


@given(st.lists(NAMES, max_size=30))
def test_packed_keys_sort_as_their_numbers_do_and_come_back_whole(names):
    packed = pack(*columns(names))
    assert list(zip(*(part.tolist() for part in unpack(packed)), strict=True)) == names
    order, wanted = ascending(packed), sorted(range(len(names)), key=lambda place: names[place])
    assert (list(range(len(names))) if order is None else order.tolist()) == wanted
    listed = as_list(packed)
    assert all(len(key) == 20 for key in listed)
    assert [names[place] for place in sorted(range(len(names)), key=lambda place: listed[place])] == sorted(names)


@given(st.lists(NAMES, max_size=30), st.lists(NAMES, max_size=10))
def test_locate_finds_exactly_the_members(members, wanted):
    members = sorted(set(members))
    places = locate(pack(*columns(members)), pack(*columns(wanted))).tolist()
    assert places == [members.index(name) if name in members else -1 for name in wanted]


@given(st.lists(st.sets(NAMES, max_size=20).map(sorted), max_size=40))
def test_pieces_that_ascend_are_put_in_order_and_what_ascends_is_left(pieces):
    names = [name for piece in pieces for name in piece]
    order = ascending(pack(*columns(names)))
    assert (names if order is None else [names[place] for place in order]) == sorted(names)


def test_what_ascends_is_left_as_it_is_and_equal_ones_stay_in_the_order_in_which_they_came():
    names = [(slot, key_hash, 0) for slot in range(3) for key_hash in (-(2**40), 0, 2**40)]
    assert ascending(pack(*columns(names))) is None
    assert ascending(pack(*columns([*names, names[-1]]))) is None
    assert ascending(pack(*columns([*names, names[0]]))).tolist() == [0, len(names), *range(1, len(names))]


FEW = st.tuples(st.integers(0, 1), st.sampled_from([0, 1, 2**32, -1]), st.integers(0, 2))
"""Names of which most begin with the same eight bytes as others."""


@given(st.lists(FEW, max_size=30), st.lists(FEW, max_size=30))
def test_keys_that_begin_alike_are_told_apart(members, wanted):
    members = sorted(set(members))
    packed, limits = pack(*columns(members)), pack(*columns(wanted))
    assert locate(packed, limits).tolist() == [members.index(name) if name in members else -1 for name in wanted]
    assert count_up_to(packed, limits).tolist() == [sum(member <= name for member in members) for name in wanted]


@given(st.lists(FEW, max_size=200))
def test_keys_that_begin_alike_are_put_in_order(names):
    order, wanted = ascending(pack(*columns(names))), sorted(range(len(names)), key=lambda place: names[place])
    assert (list(range(len(names))) if order is None else order.tolist()) == wanted


def test_the_second_seed_is_one_that_spark_can_start_from():
    assert hash_keys(np.array([4242]))[0] == SECOND_SEED


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param([["a"], [None]], [[None], ["a"]], id="a null before and a null behind the same word"),
        pytest.param([["a"], [None], [None]], [["a"], [None], [""]], id="a null and an empty string"),
        pytest.param(
            [pa.array([None], pa.struct([("x", pa.int64())]))],
            [pa.array([{"x": None}], pa.struct([("x", pa.int64())]))],
            id="no struct at all and a struct of nothing",
        ),
        pytest.param(
            [pa.array([{"x": 1, "y": None}])],
            [pa.array([{"x": None, "y": 1}], pa.struct([("x", pa.int64()), ("y", pa.int64())]))],
            id="one number in two fields of a struct",
        ),
    ],
)
def test_the_second_hash_tells_apart_what_sparks_hash_cannot(left, right):
    left, right = ([pa.array(c, pa.string()) if isinstance(c, list) else c for c in side] for side in (left, right))
    assert both_hashes(*left)[1] != both_hashes(*right)[1]


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pa.array(["a", None, "b"]), id="strings with a null"),
        pytest.param(pa.chunked_array([["a"], ["b", None]]), id="chunks"),
        pytest.param([decimal.Decimal("1.5"), None], id="decimals"),
        pytest.param(np.arange(5), id="a NumPy array"),
        pytest.param(pa.table({"x": [1, None], "y": ["a", "b"]}), id="a table as a composite key"),
    ],
)
def test_every_key_that_can_be_hashed_has_a_second_hash_of_its_own(column):
    hashes = both_hashes(column)[1]
    assert len(set(hashes.tolist())) == len(column)
    assert not (hashes == hash_keys(column)).any()


WORDS = st.lists(st.none() | st.text(max_size=70), min_size=1, max_size=20)


@given(WORDS, st.data())
def test_text_hashed_twice_in_one_walk_has_the_hashes_that_it_has_in_two(words, data):
    start, cut = (data.draw(st.integers(0, len(words))) for _ in range(2))
    array = pa.array(words, pa.string())[start:]
    for column in (array, pa.chunked_array([array[:cut], array[cut:]]), array.cast(pa.large_binary())):
        hashes, hashes2 = both_hashes(column)
        assert hashes.tolist() == hash_keys(column).tolist()
        assert hashes2.tolist() == hash_keys(column, seed=SECOND_SEED).tolist()


@given(st.lists(st.tuples(st.none() | st.text(max_size=40), st.none() | LONGS), min_size=1, max_size=20))
def test_the_second_hash_of_a_composite_key_goes_on_with_what_is_null(keys):
    words, numbers = (
        pa.array(column, kind) for column, kind in zip(zip(*keys, strict=True), (pa.string(), pa.int64()), strict=True)
    )
    hashes, hashes2 = both_hashes(words, numbers)
    assert hashes.tolist() == hash_keys(words, numbers).tolist()
    marks = [words.is_null(), numbers.is_null()]
    assert hashes2.tolist() == hash_keys(words, numbers, *marks, seed=SECOND_SEED).tolist()


@pytest.mark.parametrize(
    ("slots", "hashes"),
    [
        pytest.param([-1], [0], id="a slot below zero"),
        pytest.param([2**31], [0], id="a slot beyond 31 bits"),
        pytest.param([0, 1], [0], id="columns of different length"),
    ],
)
def test_keys_that_cannot_be_are_refused(slots, hashes):
    with pytest.raises(InvalidArgumentError):
        pack(slots, hashes, hashes)


PAIRS = st.tuples(st.integers(0, 3), st.sampled_from([-(2**63), -2, -1, 0, 1, 2**63 - 1]))
SELECTIONS = st.builds(
    Selection, st.frozensets(st.integers(0, 3)), st.frozensets(PAIRS, max_size=5), st.frozensets(PAIRS, max_size=5)
)


def selected(slots, spared, keys, name):
    return name[:2] in keys or (name[0] in slots and name[:2] not in spared)


@given(
    st.frozensets(st.integers(0, 3)),
    st.frozensets(PAIRS, max_size=6),
    st.frozensets(PAIRS, max_size=6),
    st.lists(st.tuples(st.integers(0, 4), PAIRS.map(lambda pair: pair[1]), EDGES), max_size=30),
)
def test_a_selection_covers_its_slots_but_for_the_spared_and_its_keys(slots, spared, keys, names):
    selection = Selection(slots, spared, keys)
    covered = selection.covers(pack(*columns(names))).tolist()
    assert covered == [selected(slots, spared, keys, name) for name in names]
    ranges = selection.range_list()
    assert ranges == sorted(ranges)
    assert all(low <= high for low, high in ranges)
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(ranges))


@given(SELECTIONS, SELECTIONS, st.lists(st.tuples(st.integers(0, 4), PAIRS.map(lambda pair: pair[1]), EDGES)))
def test_the_union_of_selections_covers_what_either_does(one, other, names):
    packed = pack(*columns(names))
    assert ((one | other).covers(packed) == (one.covers(packed) | other.covers(packed))).all()
