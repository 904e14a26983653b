"""The routing table: total, single-valued, immutable, and the same after any trip."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import CorruptDataError, EvenkeelError, InvalidArgumentError, InvalidTableError
from evenkeel.hashing import hash_keys
from evenkeel.routing import Ragged, RoutingTable, default_slots

INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def tables(draw, slots=st.integers(1, 20), max_channels=6, keys=INT64):
    """Any legal table, with few slots and keys so that everything meets everything."""
    channels = draw(st.integers(1, max_channels))
    channel = st.integers(0, channels - 1)
    count = draw(slots)
    listed = draw(st.lists(keys, unique=True, max_size=8))
    pinned = listed[: draw(st.integers(0, len(listed)))]
    split = listed[len(pinned) :]
    slot_channels = draw(st.lists(channel, min_size=count, max_size=count))
    pin_channels = draw(st.lists(channel, min_size=len(pinned), max_size=len(pinned)))
    some = st.lists(channel, unique=True, max_size=3)

    def backups(homes):
        return Ragged.of([c for c in draw(some) if c != home] for home in homes)

    return RoutingTable(
        slot_channels=np.array(slot_channels, np.int32),
        channels=channels,
        epoch=draw(st.integers(0, 5)),
        pin_hashes=np.array(pinned, np.int64),
        pin_channels=np.array(pin_channels, np.int32),
        pin_backups=backups(pin_channels),
        split_hashes=np.array(split, np.int64),
        split_channels=Ragged.of(draw(st.lists(channel, unique=True, min_size=1)) for _ in split),
        slot_backups=backups(slot_channels),
    )


def slow_home(table: RoutingTable, key_hash: int) -> int:
    for pinned, channel in zip(table.pin_hashes.tolist(), table.pin_channels.tolist(), strict=True):
        if pinned == key_hash:
            return channel
    for split, channels in zip(table.split_hashes.tolist(), table.split_channels.tolist(), strict=True):
        if split == key_hash:
            return channels[0]
    return int(table.slot_channels[key_hash % table.slots])


def some_hashes(table: RoutingTable, extra: list[int]) -> np.ndarray:
    return np.array([*table.pin_hashes, *table.split_hashes, *extra, *table.pin_hashes], np.int64)


@given(tables(), st.lists(INT64, max_size=10))
def test_every_key_has_exactly_one_home(table, extra):
    hashes = some_hashes(table, extra)
    assert table.home(hashes).tolist() == [slow_home(table, h) for h in hashes.tolist()]


@given(tables(), st.lists(INT64, max_size=10), st.integers(0, 9))
def test_a_tuple_goes_home_or_to_the_next_channel_of_its_split(table, extra, turn):
    hashes = some_hashes(table, extra)
    turns = dict.fromkeys(table.split_hashes.tolist(), turn)
    splits = dict(zip(table.split_hashes.tolist(), table.split_channels.tolist(), strict=True))
    expected = []
    for key_hash in hashes.tolist():
        if key_hash in splits:
            expected.append(splits[key_hash][turns[key_hash] % len(splits[key_hash])])
            turns[key_hash] += 1
        else:
            expected.append(slow_home(table, key_hash))
    assert table.route(hashes, turn=turn).tolist() == expected


@given(tables(), st.lists(INT64, max_size=10))
def test_backups_come_from_the_pin_or_the_slot_and_never_sit_beside_the_active_copy(table, extra):
    hashes = some_hashes(table, extra)
    pins = dict(zip(table.pin_hashes.tolist(), table.backups_of_pins.tolist(), strict=True))
    slots = table.backups_of_slots.tolist()
    expected = [pins.get(h, [] if h in table.split_hashes else slots[h % table.slots]) for h in hashes.tolist()]
    backups = table.backups(hashes)
    assert backups.tolist() == expected
    assert (table.home(hashes)[backups.rows] != backups.channels).all()


@given(tables())
def test_listed_keys_are_kept_in_order_however_far_apart(table):
    for hashes in (table.pin_hashes, table.split_hashes):
        assert hashes.tolist() == sorted(hashes.tolist())


@given(tables())
def test_a_table_survives_every_trip(table):
    for copy in (
        RoutingTable.from_arrow(table.to_arrow()),
        RoutingTable.from_json(table.to_json()),
        pickle.loads(pickle.dumps(table)),
    ):
        assert copy == table
        assert hash(copy) == hash(table)
        assert not copy.slot_channels.flags.writeable
    sliced = pa.concat_tables([table.to_arrow(), table.to_arrow()]).slice(table.to_arrow().num_rows)
    assert RoutingTable.from_arrow(sliced.replace_schema_metadata(table.to_arrow().schema.metadata)) == table


def test_a_column_of_keys_is_hashed_first():
    table = RoutingTable.even(5)
    words = pa.array(["a", "b", None, "a"])
    np.testing.assert_array_equal(table.route(words), table.route(hash_keys(words)))
    assert table.route([]).shape == (0,)


def test_a_table_and_its_inputs_do_not_touch_each_other():
    slots = np.zeros(4, np.int32)
    table = RoutingTable(slots, 2)
    slots[0] = 1
    assert table.slot_channels.tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        table.slot_channels[0] = 1
    with pytest.raises(AttributeError):
        table.epoch = 3


def test_pinning_replaces_what_was_listed_before_and_counts_the_epoch():
    table = RoutingTable(
        np.zeros(4, np.int32),
        3,
        pin_hashes=np.array([5, 1]),
        pin_channels=np.array([1, 2]),
        pin_backups=Ragged.of([[0], [1]]),
        split_hashes=np.array([9]),
        split_channels=Ragged.of([[0, 1, 2]]),
    )
    after = table.with_pins([9, 5], [2, 0])
    assert after.epoch == 1
    assert after.pin_hashes.tolist() == [1, 5, 9]
    assert after.pin_channels.tolist() == [2, 0, 2]
    assert after.backups_of_pins.tolist() == [[1], [], []]
    assert len(after.split_hashes) == 0
    assert table.pin_hashes.tolist() == [1, 5]


def test_names_of_keys_appear_in_the_json():
    table = RoutingTable.even(2).with_pins(hash_keys(["hot"]), [1])
    text = table.to_json({int(hash_keys(["hot"])[0]): "hot"})
    assert '"key": "hot"' in text
    assert RoutingTable.from_json(text) == table


def test_an_even_table_is_key_grouping():
    hashes = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 1000)
    np.testing.assert_array_equal(RoutingTable.even(8).route(hashes), hashes % 8)


@pytest.mark.parametrize(("channels", "slots"), [(1, 4096), (256, 4096), (257, 8192), (10_000, 262_144)], ids=str)
def test_there_are_enough_slots_for_many_channels(channels, slots):
    assert default_slots(channels) == slots
    assert RoutingTable.even(channels).slots == slots


def test_the_size_grows_with_what_is_listed():
    table = RoutingTable.even(4)
    assert table.size_bytes == 4 * 4096
    assert table.with_pins([1, 2], [0, 1]).size_bytes == 4 * 4096 + 2 * 12


BROKEN = {
    "a slot on a channel that does not exist": {"slot_channels": [0, 2]},
    "a slot on a negative channel": {"slot_channels": [-1]},
    "no slots": {"slot_channels": []},
    "no channels": {"channels": 0},
    "slots in two dimensions": {"slot_channels": [[0, 1]]},
    "a pin on a channel that does not exist": {"pin_hashes": [1], "pin_channels": [2]},
    "a pin without a channel": {"pin_hashes": [1], "pin_channels": []},
    "a key pinned twice": {"pin_hashes": [1, 1], "pin_channels": [0, 0]},
    "a key split twice": {"split_hashes": [1, 1], "split_channels": Ragged.of([[0], [1]])},
    "a key pinned and split": {
        "pin_hashes": [1],
        "pin_channels": [0],
        "split_hashes": [1],
        "split_channels": Ragged.of([[0]]),
    },
    "a split over nothing": {"split_hashes": [1], "split_channels": Ragged.of([[]])},
    "a split over one channel twice": {"split_hashes": [1], "split_channels": Ragged.of([[1, 1]])},
    "a split on a channel that does not exist": {"split_hashes": [1], "split_channels": Ragged.of([[2]])},
    "a backup beside the active copy of a pin": {
        "pin_hashes": [1],
        "pin_channels": [1],
        "pin_backups": Ragged.of([[1]]),
    },
    "a backup beside the active copy of a slot": {"slot_backups": Ragged.of([[], [1]])},
    "two backups on one channel": {
        "slot_backups": Ragged.of([[1, 1], []]),
    },
    "backups for fewer slots than there are": {"slot_backups": Ragged.of([[1]])},
}


@pytest.mark.parametrize("changes", BROKEN.values(), ids=BROKEN.keys())
def test_a_table_that_breaks_its_laws_is_refused(changes):
    with pytest.raises(InvalidTableError):
        RoutingTable(**{"slot_channels": [0, 1], "channels": 2, **changes})


def test_offsets_must_fit():
    for offsets in ([], [1, 2], [0, 1], [0, 2, 1, 2]):
        with pytest.raises(InvalidTableError):
            Ragged(np.array(offsets, np.int64), np.zeros(2, np.int32))
    with pytest.raises(TypeError):
        hash(Ragged.empty(1))


def test_no_channels_is_a_clear_error():
    with pytest.raises(InvalidArgumentError, match="at least 1; got 0"):
        RoutingTable.even(0)


def test_what_is_not_a_table_is_named_so():
    good = RoutingTable.even(2, slots=4).to_arrow()
    metadata = good.schema.metadata
    broken = [
        pa.table({"a": [1]}),
        good.replace_schema_metadata({**metadata, b"evenkeel.routing_table": b"99"}),
        good.drop_columns(["others"]).replace_schema_metadata(metadata),
        good.slice(1),
        good.replace_schema_metadata({**metadata, b"channels": b"1"}),
        good.replace_schema_metadata({k: v for k, v in metadata.items() if k != b"epoch"}),
    ]
    for table in broken:
        with pytest.raises(CorruptDataError):
            RoutingTable.from_arrow(table)
    for text in ("", "{}", "[]", '{"format": 2}', '{"format": 1, "slots": 3}'):
        with pytest.raises(CorruptDataError):
            RoutingTable.from_json(text)


def test_errors_keep_their_fields_across_processes():
    with pytest.raises(InvalidTableError) as caught:
        RoutingTable([0, 7], 2)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(copy, EvenkeelError)
    assert copy.channel == 7
    assert str(copy) == str(caught.value)
    with pytest.raises(AttributeError):
        copy.nothing  # noqa: B018
