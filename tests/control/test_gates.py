"""Every gate answers with its number and its reason."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.control import Budget, ControlOptions, CoolDown, Imbalance, OverloadedChannel, RelativeGain, WorthItsCost
from evenkeel.control.analysis import MigrationRate
from evenkeel.control.gates import chance_excess
from evenkeel.errors import InvalidArgumentError

GATE = Imbalance(start=1.2, stop=1.1)


@pytest.mark.parametrize(
    ("skewness", "started", "yes"),
    [
        pytest.param(1.25, False, True, id="starts above the start"),
        pytest.param(1.15, False, False, id="does not start in between"),
        pytest.param(1.15, True, True, id="goes on in between"),
        pytest.param(1.10, True, False, id="stops at the stop"),
    ],
)
def test_imbalance_has_hysteresis(skewness, started, yes):
    answer = GATE.ask(skewness, 0.0, started=started)
    assert answer.passes is yes
    assert answer.number == skewness
    assert f"{skewness:.3f}" in answer.reason


def test_what_chance_explains_is_no_imbalance():
    assert GATE.ask(1.25, 0.0, started=False).passes
    assert not GATE.ask(1.25, 0.1, started=False).passes


@pytest.mark.parametrize(("channels", "tuples"), [(4, 50), (16, 500), (200, 5000)])
def test_the_fullest_of_equal_channels_is_mostly_within_chance(channels, tuples):
    rng = np.random.default_rng(7)
    counts = rng.poisson(tuples, size=(500, channels)).astype(float)
    skewness = counts.max(axis=1) / counts.mean(axis=1)
    assert (skewness <= 1 + chance_excess(np.full(channels, float(tuples)))).mean() > 0.8


def ratios(*windows: dict[int, float], channels: int = 100) -> np.ndarray:
    table = np.ones((len(windows), channels))
    for row, window in zip(table, windows, strict=True):
        for channel, ratio in window.items():
            row[channel] = ratio
    return table


@pytest.mark.parametrize(
    ("windows", "yes"),
    [
        pytest.param([{3: 1.3}, {3: 1.3}, {3: 1.3}], True, id="the same channel three times"),
        pytest.param([{3: 1.3}, {3: 1.3}, {}, {3: 1.3}], True, id="the same channel in three of four"),
        pytest.param([{3: 1.3}, {4: 1.3}, {5: 1.3}], False, id="another one each time"),
        pytest.param([{3: 1.3}, {3: 1.3}, {3: 1.3}, {}], False, id="three times, but not now"),
        pytest.param([{3: 1.3}], False, id="once so far"),
    ],
)
def test_one_overloaded_channel_among_many_is_not_averaged_away(windows, yes):
    answer = OverloadedChannel(ratio=1.2, windows=3, of=4).ask(ratios(*windows), 0.0)
    assert answer.passes is yes
    assert answer.reason


@pytest.mark.parametrize(
    ("since", "caution", "yes"),
    [
        pytest.param(None, 8, True, id="nothing was ever changed"),
        pytest.param(2, 1, False, id="the cool-down is not over"),
        pytest.param(3, 1, True, id="the cool-down is over"),
        pytest.param(3, 2, False, id="caution makes it longer"),
    ],
)
def test_the_cool_down(since, caution, yes):
    assert CoolDown(2).ask(since, caution).passes is yes


@given(before=st.floats(1.01, 10), predicted=st.floats(1, 10))
def test_the_relative_gain_is_the_share_of_time_saved(before, predicted):
    answer = RelativeGain(0.05).ask(before, predicted)
    assert answer.passes == ((before - predicted) / before >= 0.05 - 1e-12) or abs(answer.number - 0.05) < 1e-9


def test_a_dear_plan_must_save_more_and_caution_asks_for_more_still():
    gate = WorthItsCost(horizon_batches=10)
    assert gate.ask(2, 15, 1).passes
    assert not gate.ask(2, 25, 1).passes
    assert not gate.ask(2, 15, 2).passes
    assert gate.ask(2, 15, 1).number == 5


def test_a_plan_that_takes_too_many_batches_is_over_the_budget():
    assert Budget(10, max_batches=3).ask(30, 3).passes
    assert not Budget(10, max_batches=3).ask(40, 4).passes


def test_the_rate_of_migration_follows_what_was_measured():
    rate = MigrationRate(1000.0)
    assert rate.after(0, 0.0) == rate
    for _ in range(20):
        rate = rate.after(500_000, 100.0)
    assert rate.bytes_per_ms == pytest.approx(5000, rel=1e-3)
    assert rate.cost_ms(10_000) == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Imbalance(start=1.1, stop=1.2), id="stop above start"),
        pytest.param(lambda: Imbalance(start=1.1, stop=0.9), id="stop below one"),
        pytest.param(lambda: OverloadedChannel(windows=5, of=4), id="five of four windows"),
        pytest.param(lambda: CoolDown(-1), id="a negative cool-down"),
        pytest.param(lambda: RelativeGain(1.5), id="a gain of more than all"),
        pytest.param(lambda: WorthItsCost(0), id="no horizon"),
        pytest.param(lambda: Budget(0), id="no bytes at all"),
        pytest.param(lambda: ControlOptions(bytes_per_ms=0), id="state that never arrives"),
        pytest.param(lambda: ControlOptions(log_limit=0), id="a log without room"),
        pytest.param(lambda: ControlOptions(overloaded_channel=OverloadedChannel(of=9)), id="looking back too far"),
    ],
)
def test_options_that_make_no_sense_are_refused(make):
    with pytest.raises(InvalidArgumentError):
        make()
