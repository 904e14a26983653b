"""LMDB's pages, read as they lie in its file: the same as by its cursors, whatever is in them."""

from __future__ import annotations

from contextlib import suppress

import lmdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import CorruptDataError
from evenkeel.state.environment import SharedEnvironment
from evenkeel.state.identity import as_list, pack
from evenkeel.state.pages import Pages
from evenkeel.state.reader import Cursors, Reader
from evenkeel.state.selection import Selection

SLOTS = 16


def packed_keys(numbers):
    """Some keys, ascending; of each four, two share their slot and hash."""
    numbers = np.unique(np.asarray(numbers, np.int64))
    hashes = (numbers // 2) * 0x1234567 - 2**40
    return np.sort(pack((hashes % SLOTS).astype(np.int32), hashes, numbers))


@pytest.fixture
def environment(tmp_path):
    shared = SharedEnvironment.open(tmp_path, 1 << 28)
    yield shared
    shared.close()


def fill(shared, database, packed, value):
    with shared.env.begin(write=True) as txn, txn.cursor(database) as cursor:
        cursor.putmulti([(key, value(place)) for place, key in enumerate(as_list(packed))])


def both(shared, txn):
    pages = Pages.of(shared, txn)
    assert pages is not None
    return pages, Cursors(txn, shared)


def all_of(found):
    pairs = [pair for packed, values in found for pair in zip(as_list(packed), values.to_pylist(), strict=True)]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


sizes = st.sampled_from([0, 1, 7, 24, 300, 2_000, 5_000, 70_000])


@settings(max_examples=60, deadline=None)
@given(
    held=st.sets(st.integers(0, 3_000), max_size=400),
    newer=st.sets(st.integers(0, 3_000), max_size=60),
    gone=st.sets(st.integers(0, 3_000), max_size=200),
    asked=st.lists(st.integers(0, 3_000), max_size=200),
    slots=st.sets(st.integers(0, SLOTS - 1)),
    lengths=st.lists(sizes, min_size=1, max_size=9),
)
def test_pages_say_what_cursors_say(tmp_path_factory, held, newer, gone, asked, slots, lengths):
    shared = SharedEnvironment.open(tmp_path_factory.mktemp("lmdb"), 1 << 28)
    try:
        fill(shared, shared.base, packed_keys(list(held)), lambda place: b"b" * lengths[place % len(lengths)])
        fill(shared, shared.recent, packed_keys(list(newer)), lambda place: b"r" * lengths[place % len(lengths)])
        with shared.env.begin(write=True) as txn:
            for key in as_list(packed_keys(list(gone))):
                txn.delete(key, db=shared.base)
        with shared.env.begin() as txn:
            pages, cursors = both(shared, txn)
            wanted = packed_keys(asked)
            for order in (slice(None), slice(None, None, -1)):
                assert pages.lookup(wanted[order]).to_pylist() == cursors.lookup(wanted[order]).to_pylist()
            chosen = Selection.of(sorted(slots)).ranges()
            assert all_of(pages.ranges(*chosen)) == all_of(cursors.ranges(*chosen))
    finally:
        shared.close()


@pytest.mark.parametrize("every", [1, 40], ids=["all keys", "one key in forty"])
def test_a_tree_of_several_levels_is_searched_and_walked(environment, every):
    packed = packed_keys(range(200_000))
    fill(environment, environment.base, packed, lambda place: b"%d" % place)
    fill(environment, environment.recent, packed[::97], lambda place: b"new %d" % place)
    with environment.env.begin() as txn:
        assert txn.stat(environment.base)["depth"] > 2
        pages, cursors = both(environment, txn)
        wanted = packed[::every]
        assert pages.lookup(wanted).equals(cursors.lookup(wanted))
        chosen = Selection.of([1, 2, 11], keys=([5], [-(2**40)])).ranges()
        assert all_of(pages.ranges(*chosen)) == all_of(cursors.ranges(*chosen))


def test_what_is_given_at_once_is_bounded_in_rows_and_bytes(environment):
    packed = packed_keys(range(70_000))
    fill(environment, environment.base, packed, lambda place: b"x" * (9 << 20 if place in (3, 4, 5, 6) else 3))
    everything = Selection.of(range(SLOTS)).ranges()
    with environment.env.begin() as txn:
        pages, cursors = both(environment, txn)
        for reader in (pages, cursors):
            batches = list(reader.ranges(*everything))
            assert sum(len(keys) for keys, _ in batches) == 70_000
            assert max(len(keys) for keys, _ in batches) <= 65_536
            assert max(values.nbytes for _, values in batches) < 34 << 20


def test_a_view_is_not_moved_by_what_others_write(environment):
    packed = packed_keys(range(5_000))
    fill(environment, environment.base, packed, lambda _: b"before")
    with environment.env.begin() as txn:
        pages, _ = both(environment, txn)
        for turn in range(5):
            fill(environment, environment.base, packed, lambda _, turn=turn: b"after %d" % turn)
        assert set(pages.lookup(packed).to_pylist()) == {b"before"}
        assert Pages.of(environment, txn) is None  # both of the pages that name roots are of later writes
        assert set(Reader(txn, environment).lookup(packed).to_pylist()) == {b"before"}


def test_a_format_that_is_not_known_is_left_to_cursors(environment, monkeypatch):
    fill(environment, environment.base, packed_keys(range(100)), lambda _: b"x")
    monkeypatch.setattr("evenkeel.state.pages._VERSION", 2)
    with environment.env.begin() as txn:
        assert Pages.of(environment, txn) is None
        assert Reader(txn, environment).lookup(packed_keys(range(100))).to_pylist() == [b"x"] * 100


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_pages_are_refused_or_do_not_matter(tmp_path_factory, data):
    """Whatever bytes stand in a page, nothing outside of the file is read, and no walk goes on for ever."""
    directory = tmp_path_factory.mktemp("lmdb")
    shared = SharedEnvironment.open(directory, 1 << 26)
    packed = packed_keys(range(3_000))
    try:
        fill(shared, shared.base, packed, lambda place: b"v" * (5_000 if place == 7 else 20))
        with shared.env.begin() as txn:
            pages = Pages.of(shared, txn)
            file = pages.data.copy()
            for _ in range(data.draw(st.integers(1, 5))):
                page = data.draw(st.integers(2, len(file) // 4096 - 1))
                at = page * 4096 + data.draw(st.one_of(st.integers(0, 64), st.integers(0, 4094)))
                file[at : at + 2] = data.draw(st.lists(st.integers(0, 255), min_size=2, max_size=2))
            changed = Pages("data.mdb", file, pages.page_bytes, pages.base, pages.recent)
            everything = Selection.of(range(SLOTS)).ranges()
            for read in (lambda: changed.lookup(packed), lambda: list(changed.ranges(*everything))):
                with suppress(CorruptDataError):
                    read()
    finally:
        shared.close()


def test_a_damaged_root_is_told(environment):
    fill(environment, environment.base, packed_keys(range(3_000)), lambda _: b"x")
    with environment.env.begin() as txn:
        pages = Pages.of(environment, txn)
        file = pages.data.copy()
        file[2 * pages.base : 2 * pages.base + 16] = 0
        changed = Pages(pages.path, file, pages.page_bytes, pages.base, pages.recent)
        with pytest.raises(CorruptDataError, match="remove its directory"):
            changed.lookup(packed_keys(range(10)))


def test_the_installed_lmdb_writes_the_known_format(environment):
    """Otherwise all would be as right as before, and slower, with nobody to notice."""
    with environment.env.begin() as txn:
        assert Pages.of(environment, txn) is not None, lmdb.version()
