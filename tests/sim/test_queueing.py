"""Latency and throughput: the closed forms against following every tuple, and the laws that any queue keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics import summarise_latency
from evenkeel.sim import Fluid, MicroBatches, Zipf, replay
from evenkeel.sim.queueing import Delays, LatencyLog

LOADS = st.lists(st.lists(st.integers(0, 3000), min_size=3, max_size=3), min_size=1, max_size=5)
PAUSES = st.lists(st.sampled_from([0.0, 0.0, 0.3, 1.7]), min_size=5, max_size=5)
RATE = 1000.0


def tuple_by_tuple(windows, pauses, seconds):
    """One channel: tuples arrive evenly and are served one after the other; a pause is one more piece of work."""
    free, latencies = 0.0, []
    for number, (load, pause) in enumerate(zip(windows, pauses, strict=False)):
        start = number * seconds
        free = max(free, start) + pause
        for place in range(load):
            arrives = start + (place + 0.5) * seconds / load
            free = max(arrives, free) + 1 / RATE
            latencies.append((number, free - arrives))
    return latencies


@given(windows=st.lists(st.one_of(st.just(0), st.integers(400, 2500)), min_size=1, max_size=4), pauses=PAUSES)
@settings(max_examples=40)
def test_a_fluid_is_close_to_following_every_tuple(windows, pauses):
    queues, found = Fluid(RATE).start(), []
    for load, pause in zip(windows, pauses, strict=False):
        found.append(queues.serve([load], 1.0, pause).delays)
    literal = tuple_by_tuple(windows, pauses, 1.0)
    for number, delays in enumerate(found):
        mine = np.array([latency for window, latency in literal if window == number])
        if len(mine):
            assert delays.total == len(mine)
            assert delays.mean == pytest.approx(mine.mean(), abs=0.01)
            assert delays.longest == pytest.approx(mine.max(), abs=0.01)
            # A quantile of the tuples lies between those of the fluid a little below and above.
            low, high = delays.quantiles(0.88, 0.92)
            assert low - 0.01 <= np.quantile(mine, 0.9) <= high + 0.01


@given(loads=LOADS, pauses=PAUSES, seconds=st.sampled_from([0.5, 1.0, 2.0]))
def test_what_arrives_is_served_or_waits_and_no_channel_works_faster_than_it_can(loads, pauses, seconds):
    for service in (Fluid(RATE), MicroBatches(RATE, overhead_s=0.1)):
        queues, arrived, served = service.start(), 0.0, 0.0
        for window, pause in zip(loads, pauses, strict=False):
            done = queues.serve(window, seconds, pause)
            arrived += sum(window)
            served += done.served
            assert served + done.backlog == pytest.approx(arrived)
            assert -1e-6 <= done.served <= 3 * RATE * seconds + 1e-6
            assert done.delays.total == pytest.approx(sum(window))
            assert done.needed_s >= max(window) / RATE + pause - 1e-9


def test_the_slowest_channel_is_what_throughput_is_limited_by():
    queues = Fluid(100).start()
    done = queues.serve([50, 250], 1.0)
    assert (done.served, done.backlog, done.needed_s) == (150, 150, 2.5)
    assert queues.serve([0, 0], 1.0).served == 100
    assert queues.serve([0, 0], 1.0).backlog == 0


def test_a_pause_longer_than_a_window_goes_on_in_the_next():
    queues = Fluid(100).start()
    assert queues.serve([10], 1.0, pause_s=2.5).served == 0
    assert queues.serve([10], 1.0).served == 0
    third = queues.serve([10], 1.0)
    assert third.backlog == 0
    assert third.served == pytest.approx(30)


def test_new_channels_start_idle_and_the_work_of_vanished_ones_is_shared_out():
    queues = Fluid(100).start()
    queues.serve([0, 0, 300], 1.0)  # 200 wait
    assert queues.serve([0, 0], 1.0).backlog == pytest.approx(0)
    queues.serve([300], 1.0)
    assert queues.serve([0, 0, 0], 1.0).backlog == pytest.approx(100)


def test_micro_batches_wait_for_their_window_and_for_the_batch_before():
    queues = MicroBatches(100, overhead_s=0.5).start()
    first = queues.serve([100, 50], 1.0)  # takes 1.5 s after its window
    assert (first.delays.lows.tolist(), first.delays.highs.tolist()) == ([1.5], [2.5])
    assert (first.served, first.backlog, first.needed_s) == (0, 150, 1.5)
    second = queues.serve([100, 50], 1.0, pause_s=0.25)  # waits 0.5 s for the first, then takes 1.75 s
    assert second.delays.lows.tolist() == [2.25]
    assert second.served == pytest.approx(100)
    assert second.backlog == pytest.approx(200)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 4)).map(lambda t: (t[0], t[0] + t[1], t[2])),
        min_size=1,
        max_size=6,
    )
)
def test_quantiles_are_those_of_many_tuples_spread_evenly(parts):
    lows, highs, masses = (np.array(column, float) for column in zip(*parts, strict=True))
    delays = Delays(lows, highs, masses)
    if not masses.sum():
        assert np.isnan([delays.mean, delays.longest, *delays.quantiles(0.5)]).all()
        return
    fine = 400
    spread = np.concatenate(
        [low + (high - low) * (np.arange(int(m) * fine) + 0.5) / max(int(m) * fine, 1) for low, high, m in parts]
    )
    assert delays.mean == pytest.approx(spread.mean())
    ordered = np.sort(spread)
    for share in (0.05, 0.5, 0.95, 0.99):
        (found,) = delays.quantiles(share)
        # About that share lies at or below it, and no less does below anything smaller.
        assert (ordered <= found + 0.02).mean() >= share - 2 / fine
        assert (ordered < found - 0.02).mean() <= share + 2 / fine


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50), st.integers(1, 50)), min_size=1, max_size=5))
def test_the_log_of_a_run_is_within_a_percent(parts):
    log, every = LatencyLog(), []
    for low, more, mass in parts:
        log.add(Delays(np.array([low]), np.array([low + more]), np.array([float(mass)])))
        every.append(low + more * (np.arange(mass * 50) + 0.5) / (mass * 50))
    spread = 1e3 * np.concatenate(every)
    exact, found = summarise_latency(spread), log.summary()
    assert found.count == sum(mass for _, _, mass in parts)
    assert found.mean_ms == pytest.approx(exact.mean_ms, rel=1e-6, abs=1e-6)
    assert found.max_ms == pytest.approx(1e3 * max(low + more for low, more, _ in parts))
    ordered = np.sort(spread)
    for share, value in ((0.5, found.median_ms), (0.95, found.p95_ms), (0.99, found.p99_ms)):
        assert (ordered <= value * 1.001 + 1e-3).mean() >= share - 0.02
        assert (ordered < value / 1.011 - 1e-3).mean() <= share + 0.02


def test_a_log_of_nothing():
    assert LatencyLog().summary().count == 0


def test_latency_and_throughput_in_a_replay():
    stream = Zipf(1000, 1.2, tuples=8000, seconds=1.0)
    strategies = {"hash": "key_grouping", "pkg": "pkg", "keel": "keel"}
    done = replay(stream, strategies, channels=4, windows=5, service=Fluid(2200, bytes_per_s=1e5, pause_s=0.05))
    summary = {row["strategy"]: row for row in done.summary().to_pylist()}
    assert summary["pkg"]["latency_p99_ms"] < summary["hash"]["latency_p99_ms"] / 10
    assert summary["pkg"]["throughput_per_s"] > summary["hash"]["throughput_per_s"]
    assert done.column("pkg", "backlog").max() == 0
    assert (np.diff(done.column("hash", "backlog")) > 0).all()
    assert done.column("keel", "pause_s")[0] == 0
    assert done.column("keel", "pause_s")[1] == pytest.approx(0.05 + done.column("keel", "moved_bytes")[0] / 1e5)
    needed = done.column("hash", "needed_s")
    assert needed.tolist() == pytest.approx((done.column("hash", "load_max") / 2200).tolist())
    assert done.latencies["hash"].count == 40_000


@pytest.mark.parametrize("options", [{"rate": 0}, {"rate": 1, "bytes_per_s": 0}, {"rate": 1, "pause_s": -1}], ids=str)
def test_services_that_cannot_be_are_refused(options):
    with pytest.raises(InvalidArgumentError):
        Fluid(**options)
