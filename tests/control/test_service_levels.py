from __future__ import annotations

import pyarrow as pa
import pytest

from evenkeel.control import ServiceLevels
from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.hashing import hash_keys


def hash_of(*values):
    return int(hash_keys(*(pa.array([value]) for value in values))[0])


def test_a_number_is_the_level_of_all_and_a_document_is_read():
    assert ServiceLevels.of(2) == ServiceLevels(default=2)
    document = {"default": 1, "keys": {"ann": 2}, "hottest": 3, "hottest_replicas": 2, "share": 0.5}
    levels = ServiceLevels.of(document)
    assert (levels.default, levels.hottest, levels.highest) == (1, 3, 2)
    assert ServiceLevels.of(levels) is levels
    assert ServiceLevels().highest == 0


def test_the_largest_number_that_anything_asks_for_counts():
    ann, bob, cid = (hash_of(name) for name in ("ann", "bob", "cid"))
    levels = ServiceLevels(keys={"ann": 1}, hottest=2, hottest_replicas=1, share=0.6, share_replicas=3)
    found = levels.levels_of([ann, bob, cid], [70, 20, 10])
    assert found == {ann: 3, bob: 1}
    assert list(found) == [ann, bob]  # named keys first, then by weight
    assert levels.levels_of([ann, bob, cid], [1, 1, 1], {cid: 2}) == {ann: 1, cid: 2, bob: 1}


def test_keys_that_are_as_frequent_as_each_other_do_not_take_turns():
    hottest, keys, even = ServiceLevels(hottest=4), list(range(6)), [10] * 6
    assert set(hottest.levels_of(keys, even)) == {0, 1, 2, 3}
    assert set(hottest.levels_of(keys, even, held={4})) == {0, 1, 2, 3, 4}  # among 1.25 times as many
    assert set(hottest.levels_of(keys, even, held={5})) == {0, 1, 2, 3}
    share = ServiceLevels(share=0.2)
    assert set(share.levels_of(keys, [17, 20, 21, 15, 15, 12])) == {1, 2}
    assert set(share.levels_of(keys, [17, 20, 21, 15, 15, 12], held={0, 3})) == {0, 1, 2}  # 0.8 of the share


def test_keys_are_hashed_as_the_columns_have_them():
    levels = ServiceLevels(keys={7: 1})
    assert levels.levels_of([], [], key_types=[pa.int32()]) == {int(hash_keys(pa.array([7], pa.int32()))[0]): 1}
    two = ServiceLevels(keys={("ann", 7): 1})
    assert two.levels_of([], [], key_types=[pa.string(), pa.int64()]) == {hash_of("ann", 7): 1}
    with pytest.raises(InvalidArgumentError, match="A key has 2 columns"):
        levels.levels_of([], [], key_types=[pa.string(), pa.int64()])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"default": -1}, "default must be"),
        ({"keys": {"ann": 1.5}}, "keys\\['ann'\\] must be"),
        ({"where": {"tier": {"gold": True}}}, "where\\['tier'\\] must be"),
        ({"share": 0}, "share must be"),
        ({"bytes_per_batch": 0}, "bytes_per_batch must be"),
    ],
)
def test_mistakes_are_told(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        ServiceLevels(**options)


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(UnknownNameError, match="default"):
        ServiceLevels.of({"defalt": 1})
