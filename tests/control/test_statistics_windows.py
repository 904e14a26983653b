"""Reports become windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.streams import HEAVY_KEYS, STATE_BYTES, Stream, stored_and_read
from evenkeel.control import BatchReport, ChannelReport, Tally, WindowOptions, Windows
from evenkeel.errors import InvalidArgumentError
from evenkeel.routing import Ragged, RoutingTable

TABLE = RoutingTable.even(4, slots=64)


def a_batch(number: int, time: float = 0.0, *, key_counts: dict[int, float] | None = None) -> BatchReport:
    keys = key_counts or {}
    counts = np.array(list(keys.values()), float)
    tally = Tally(list(keys), counts, counts, counts * 10)
    slots = Tally([key % 64 for key in keys], counts, counts, counts * 10)
    return BatchReport(number, time, (ChannelReport(0, 1.0, slots, tally),))


tallies = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)), max_size=12
).map(lambda rows: Tally(*(np.array(rows, np.int64).reshape(-1, 4).T)))


@given(tallies, tallies, tallies)
def test_tallies_add_up_in_any_grouping(one, two, three):
    left = Tally.sum_of([Tally.sum_of([one, two]), three])
    right = Tally.sum_of([one, Tally.sum_of([two, three])])
    for name in ("ids", "counts", "costs", "state_bytes"):
        assert np.array_equal(getattr(left, name), getattr(right, name))


@given(tallies, tallies)
def test_time_adds_flows_and_keeps_the_newest_level(earlier, later):
    both = earlier.then(later)
    assert both.counts.sum() == earlier.counts.sum() + later.counts.sum()
    level = dict(zip(earlier.ids, earlier.state_bytes, strict=True))
    level |= dict(zip(later.ids, later.state_bytes, strict=True))
    assert dict(zip(both.ids, both.state_bytes, strict=True)) == level


def test_a_window_has_as_many_batches_as_asked_for():
    windows = Windows(WindowOptions(batches=3))
    stream = Stream(1)
    closed = []
    for _ in range(7):
        windows.observe(stream.next_batch(TABLE))
        closed.append(windows.close(TABLE))
    assert [window is not None for window in closed] == [False, False, True, False, False, True, False]
    assert [window.number for window in closed if window] == [0, 1]
    assert all(window.batches == 3 for window in closed if window)


def test_a_window_lasts_as_many_seconds_as_asked_for():
    windows = Windows(WindowOptions(seconds=10))
    ends = []
    for number, time in enumerate([0, 4, 9, 10, 15, 21, 22, 40]):
        windows.observe(a_batch(number, time, key_counts={5: 1}))
        if windows.close(TABLE) is not None:
            ends.append(time)
    assert ends == [10, 21, 40]


def test_a_batch_that_is_reported_again_counts_once():
    windows = Windows(WindowOptions(batches=1))
    windows.observe(a_batch(7, key_counts={5: 3}))
    windows.observe(a_batch(7, key_counts={5: 3}))
    window = windows.close(TABLE)
    assert window is not None
    assert window.snapshot.total("counts") == 3
    windows.observe(a_batch(7, key_counts={5: 3}))
    assert windows.close(TABLE) is None


def test_nothing_is_lost_between_reports_and_snapshot():
    windows, stream = Windows(WindowOptions(batches=4, max_keys=20)), Stream(3)
    reports = [stream.next_batch(TABLE) for _ in range(4)]
    for report in reports:
        windows.observe(report)
    window = windows.close(TABLE)
    assert window is not None
    snapshot = window.snapshot
    for measure in ("counts", "costs"):
        told = sum(getattr(part.slots, measure).sum() for report in reports for part in report.channels)
        assert snapshot.total(measure) == pytest.approx(told)
    assert snapshot.total("state_bytes") == len(stream.hashes) * STATE_BYTES
    assert snapshot.distinct_keys == len(stream.hashes)
    assert np.allclose(window.channel_costs, snapshot.per_channel(TABLE))


def test_as_many_keys_are_tracked_as_allowed_and_they_are_the_costliest():
    windows, stream = Windows(WindowOptions(batches=1, max_keys=10)), Stream(3)
    report = stream.next_batch(TABLE)
    windows.observe(report)
    window = windows.close(TABLE)
    assert window is not None
    told = Tally.sum_of(part.keys for part in report.channels)
    assert len(told) >= HEAVY_KEYS
    assert set(window.snapshot.key_hashes) == set(told.ids[np.argsort(-told.costs, kind="stable")[:10]])


def test_pinned_and_split_keys_are_tracked_even_if_none_may_be():
    table = RoutingTable(
        TABLE.slot_channels,
        4,
        pin_hashes=[70],
        pin_channels=[1],
        split_hashes=[71],
        split_channels=Ragged.of([[0, 2]]),
    )
    windows = Windows(WindowOptions(batches=1, max_keys=0))
    windows.observe(a_batch(0, key_counts={70: 2, 72: 9}))
    window = windows.close(table)
    assert window is not None
    assert window.snapshot.key_hashes.tolist() == [70, 71]
    assert window.snapshot.key_counts.tolist() == [2, 0]
    assert window.snapshot.slot_counts[72 % 64] == 9


def test_only_the_newest_windows_are_kept():
    windows, stream = Windows(WindowOptions(batches=1, keep=2)), Stream(3)
    for _ in range(5):
        windows.observe(stream.next_batch(TABLE))
        windows.close(TABLE)
    assert [window.number for window in windows.kept] == [3, 4]


def test_windows_continue_from_where_they_were_stored():
    stream = Stream(5)
    reports = [stream.next_batch(TABLE) for _ in range(12)]
    whole, first = Windows(WindowOptions(batches=5)), Windows(WindowOptions(batches=5))
    for report in reports[:7]:
        first.observe(report)
        first.close(TABLE)
    second = Windows(WindowOptions(batches=5))
    second.restore(stored_and_read(first.snapshot()))
    for number, report in enumerate(reports):
        whole.observe(report)
        whole.close(TABLE)
        if number >= 7:
            second.observe(report)
            second.close(TABLE)
    assert len(second.kept) == len(whole.kept) == 2
    for mine, theirs in zip(second.kept, whole.kept, strict=True):
        assert np.array_equal(mine.snapshot.slot_costs, theirs.snapshot.slot_costs)
        assert np.array_equal(mine.snapshot.key_hashes, theirs.snapshot.key_hashes)
        assert mine.busy_ms == theirs.busy_ms


@pytest.mark.parametrize(
    "wrong", [{"batches": 0}, {"keep": 0}, {"max_keys": -1}, {"seconds": 0.0}, {"seconds": float("nan")}], ids=str
)
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        WindowOptions(**wrong)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Tally([1, 2], [1], [1], [1]), id="columns of unequal length"),
        pytest.param(lambda: Tally([1], [-1], [1], [1]), id="negative counts"),
        pytest.param(lambda: Tally([1], [1], [float("inf")], [1]), id="endless costs"),
        pytest.param(lambda: ChannelReport(-1, 1.0, Tally.empty()), id="a negative channel"),
        pytest.param(lambda: ChannelReport(0, float("nan"), Tally.empty()), id="busy for an unknown time"),
        pytest.param(lambda: BatchReport(0, 0.0, ()), id="no channel at all"),
        pytest.param(
            lambda: BatchReport(0, 0.0, (ChannelReport(0, 1.0, Tally.empty()),) * 2), id="one channel reporting twice"
        ),
        pytest.param(
            lambda: BatchReport(0, 0.0, (ChannelReport(0, 1.0, Tally.empty()),), moving_ms=-1), id="moving backwards"
        ),
    ],
)
def test_reports_that_cannot_be_are_refused(make):
    with pytest.raises(InvalidArgumentError):
        make()


def test_a_report_about_slots_that_the_table_does_not_have_is_refused():
    windows = Windows(WindowOptions(batches=1))
    windows.observe(BatchReport(0, 0.0, (ChannelReport(0, 1.0, Tally([64], [1], [1], [1])),)))
    with pytest.raises(InvalidArgumentError, match="64"):
        windows.close(TABLE)


def test_what_is_left_of_a_slot_is_of_the_keys_that_hold_all_its_state():
    windows = Windows(WindowOptions(batches=2))
    # Key 3 is alone in its slot; of slot 5 another key holds 70 bytes. The second batch has heavier keys.
    slots = Tally([3, 5], [10, 4], [20, 8], [50, 120])
    windows.observe(BatchReport(0, 0.0, (ChannelReport(0, 1.0, slots, Tally([3, 5], [10, 4], [20, 8], [50, 50])),)))
    windows.observe(BatchReport(1, 1.0, (ChannelReport(0, 1.0, Tally([3, 5], [6, 5], [12, 10], [50, 120])),)))
    window = windows.close(TABLE)
    assert window is not None
    loads = window.snapshot
    assert loads.key_hashes.tolist() == [3, 5]
    assert (loads.key_counts.tolist(), loads.key_costs.tolist()) == ([16, 4], [32, 8])
    assert (loads.slot_counts[[3, 5]].tolist(), loads.slot_costs[[3, 5]].tolist()) == ([0, 5], [0, 10])
    assert loads.slot_state_bytes[[3, 5]].tolist() == [0, 70]
