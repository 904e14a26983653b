"""The controller beside a small stream: it converges, does not flap, reacts, keeps its limits, and says why."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control.streams import Run, Stream, a_run, frozen_clock, stored_and_read, with_hot_key
from evenkeel.control import (
    Budget,
    Choice,
    Controller,
    ControlOptions,
    CoolDown,
    Decision,
    Elasticity,
    Imbalance,
    OverloadedChannel,
    WindowOptions,
)
from evenkeel.planning import Elb, Keel, Planner, Proposal, StayPut
from evenkeel.routing import RoutingTable

SHORT = WindowOptions(batches=2)
QUICK = ControlOptions(windows=SHORT)


def decided(run: Run) -> list[Decision]:
    return [verdict.decision for verdict in run.verdicts if verdict.decision.choice is not Choice.WAIT]


@pytest.mark.parametrize("exponent", [0.6, 1.0], ids="zipf {}".format)
@pytest.mark.parametrize("seed", [1, 2, 3], ids="seed {}".format)
def test_it_converges(seed, exponent):
    run = a_run(Keel(), QUICK, seed=seed, exponent=exponent).steps(40)
    assert run.skewness[0] > QUICK.imbalance.start
    assert np.mean(run.skewness[8:]) < QUICK.imbalance.start


@pytest.mark.parametrize("rows", [300, 3000, 30_000], ids="{} rows a batch".format)
def test_it_does_not_flap_on_a_stationary_noisy_load(rows):
    for seed in range(2):
        run = a_run(Keel(), QUICK, seed=seed, rows=rows).steps(200)
        assert run.changes() <= 4
        assert run.changes(start=60) <= 1


def test_it_follows_a_drifting_stream():
    run = a_run(Keel(), QUICK, rows=8000).steps(20)
    for _ in range(100):
        run.stream.drift(0.01)
        run.step()
    controlled = np.mean(run.skewness[20:])
    idle = a_run(StayPut(), QUICK, rows=8000).steps(20)
    for _ in range(100):
        idle.stream.drift(0.01)
        idle.step()
    assert controlled < QUICK.imbalance.start
    assert np.mean(idle.skewness[20:]) > 1.5
    assert run.changes() < 25


def test_it_reacts_to_a_burst_within_two_windows():
    run = a_run(Keel(), QUICK).steps(30)
    key = int(np.flatnonzero(run.table.home(run.stream.hashes) == 0)[0])
    calm = run.stream.popularity
    run.stream.popularity = with_hot_key(calm, key, 0.14)
    run.steps(4)
    assert run.changes(start=30) == 1
    assert run.skewness[30] > 1.5
    assert np.mean(run.steps(6).skewness[-6:]) < QUICK.imbalance.start


def test_every_decision_has_reasons_and_the_numbers_they_rest_on():
    run = a_run(Keel(), QUICK).steps(40)
    for decision in decided(run):
        assert decision.reasons
        assert all(reason.endswith(".") for reason in decision.reasons)
        assert decision.channels == decision.next_channels == 6
        assert {"imbalance", "overloaded channel", "drift"} <= {answer.gate for answer in decision.answers}
    moved = next(decision for decision in run.controller.decisions if decision.choice is Choice.MOVE)
    assert moved.planner == "keel"
    assert moved.before > moved.predicted
    assert moved.achieved == pytest.approx(moved.predicted, rel=0.1)
    assert moved.state_bytes > 0


@settings(max_examples=15)
@given(
    seed=st.integers(0, 1000),
    budget=st.integers(2000, 40_000),
    cool_down=st.integers(0, 3),
    bursts=st.lists(st.tuples(st.integers(0, 1499), st.floats(0.05, 0.5)), max_size=4),
)
def test_budget_and_cool_down_hold_whatever_the_stream_does(seed, budget, cool_down, bursts):
    options = dataclasses.replace(QUICK, budget=Budget(budget), cool_down=CoolDown(cool_down))
    run = a_run(Keel(), options, seed=seed)
    calm = run.stream.popularity
    for key, share in [*bursts, (0, 0.0)]:
        run.stream.popularity = with_hot_key(calm, key, share)
        run.steps(10)
    largest_slot = int(np.bincount(run.stream.hashes % run.table.slots).max()) * 1000
    for verdict, moved in zip(run.verdicts, run.moved, strict=True):
        assert moved == verdict.decision.step_bytes
        assert moved <= max(budget, largest_slot)
    windows = [decision.window for decision in decided(run) if decision.choice is Choice.MOVE]
    assert all(later - earlier > cool_down for earlier, later in pairwise(windows))


def test_a_large_plan_takes_several_batches_and_arrives():
    options = dataclasses.replace(QUICK, budget=Budget(8_000))
    run, whole = a_run(Keel(), options), a_run(Keel(), QUICK)
    run.steps(20)
    whole.steps(20)
    steps = [decision for decision in decided(run) if decision.changes]
    assert [decision.choice for decision in steps] == [Choice.MOVE] + [Choice.CONTINUE] * (len(steps) - 1)
    assert [decision.step for decision in steps] == list(range(1, len(steps) + 1))
    assert len(steps) > 2
    assert sum(decision.step_bytes for decision in steps) == steps[0].state_bytes
    assert np.array_equal(run.table.slot_channels, whole.table.slot_channels)
    assert np.array_equal(run.table.pin_hashes, whole.table.pin_hashes)


def test_the_window_after_a_change_knows_only_the_new_table():
    options = ControlOptions(windows=WindowOptions(batches=4), budget=Budget(8_000))
    run = a_run(Keel(), options).steps(20)
    last = [decision for decision in decided(run) if decision.changes][-1]
    judged = next(decision for decision in decided(run) if decision.batch > last.batch)
    assert last.step == last.steps > 2
    assert judged.batch == last.batch + 4
    moved = next(decision for decision in run.controller.decisions if decision.choice is Choice.MOVE)
    assert moved.achieved == pytest.approx(judged.before)


def test_once_started_balancing_goes_on_until_it_is_good_enough():
    gates = {"imbalance": Imbalance(start=1.6, stop=1.05), "overloaded_channel": OverloadedChannel(ratio=9)}
    options = dataclasses.replace(QUICK, **gates)
    little_by_little = Keel(budget_bytes=4_000)
    run = a_run(little_by_little, options).steps(60)
    assert run.skewness[0] > 1.6
    first, *later = [decision.before for decision in decided(run) if decision.changes]
    assert first > 1.6 > later[0]
    assert np.mean(run.skewness[-10:]) < 1.2
    early = a_run(little_by_little, options, exponent=0.6, seed=1).steps(60)
    assert 1.15 < early.skewness[0] < 1.6
    assert early.changes() == 0


def test_a_drift_that_was_planned_for_is_no_drift_any_more():
    run = a_run(StayPut(), QUICK).steps(12)
    run.stream.popularity = with_hot_key(run.stream.popularity, 700, 0.1)
    run.steps(20)
    alarms = [answer.passes for decision in decided(run)[6:] for answer in decision.answers if answer.gate == "drift"]
    assert alarms == [True] + [False] * (len(alarms) - 1)


def test_a_plan_is_dropped_if_another_table_is_in_force():
    run = a_run(Keel(), dataclasses.replace(QUICK, budget=Budget(8_000))).steps(2)
    assert run.changes() == 1
    run.table = RoutingTable.even(6, slots=240)
    run.steps(2)
    assert run.verdicts[2].table is None
    assert any("dropped" in reason for verdict in run.verdicts[2:] for reason in verdict.decision.reasons)


@dataclasses.dataclass(frozen=True)
class Raises(Planner):
    name = "raises"

    def propose(self, problem):  # noqa: ARG002
        raise ZeroDivisionError("by design")


class Lies(StayPut):
    name = "lies"

    def plan(self, snapshots, table, channels=None, *, clock):
        honest = Keel().plan(snapshots, table, channels, clock=clock)
        return dataclasses.replace(honest, moves=table.diff(table))


@pytest.mark.parametrize(
    ("planner", "word"),
    [pytest.param(Raises(), "by design", id="raises"), pytest.param(Lies(), "refused", id="gives an invalid plan")],
)
def test_a_planner_that_fails_is_a_decision_to_stay(planner, word):
    run = a_run(planner, QUICK).steps(10)
    assert run.changes() == 0
    assert all(decision.choice is Choice.STAY for decision in decided(run))
    assert any(word in reason for decision in decided(run) for reason in decision.reasons)


def test_a_plan_that_changes_nothing_is_not_carried_out():
    run = a_run(StayPut(), QUICK).steps(10)
    assert run.changes() == 0
    assert "The plan changes nothing." in decided(run)[-1].reasons


def test_state_that_is_too_dear_to_move_stays():
    run = a_run(Keel(), dataclasses.replace(QUICK, bytes_per_ms=0.001)).steps(10)
    assert run.changes() == 0
    assert any("to move the state" in reason for reason in decided(run)[-1].reasons)


@dataclasses.dataclass(frozen=True)
class Shuffles(Planner):
    """Balances each window perfectly on paper, by a dealing that no later window confirms."""

    name = "shuffles"

    def propose(self, problem):
        return Proposal(Keel(tolerance=0.0).propose(problem).table, ("Dealt anew.",))


class Fickle(Stream):
    """Another key is hot in every window, so no prediction comes true."""

    def next_batch(self, table, **moved):
        if self.batch % 2 == 0:
            self.popularity = with_hot_key(np.full(1500, 1 / 1500), int(self.rng.integers(1500)), 0.4)
        return super().next_batch(table, **moved)


def test_a_planner_whose_predictions_fail_waits_longer_each_time():
    options = dataclasses.replace(QUICK, windows=WindowOptions(batches=2), cool_down=CoolDown(1))
    run = Run(Fickle(1), Controller(Shuffles(), options, clock=frozen_clock), RoutingTable.even(2, slots=240))
    run.steps(160)
    windows = [decision.window for decision in decided(run) if decision.choice is Choice.MOVE]
    gaps = np.diff(windows)
    assert gaps[0] == 2
    assert gaps.max() > 4
    assert any("caution" in reason or "more than 2" in reason for d in decided(run) for reason in d.reasons)


@pytest.mark.parametrize("planner", [Keel(), Elb()], ids=["keel", "elb"])
def test_channels_follow_the_load(planner):
    elastic = Elasticity.around(100.0, slack=0.3, min_channels=2, max_channels=12)
    options = dataclasses.replace(QUICK, elasticity=elastic)
    run = a_run(planner, options, channels=4, exponent=0.5, rows=4000).steps(12)
    assert run.table.channels == 4
    run.stream.rows = 9500
    run.steps(12)
    assert run.table.channels == 10
    run.stream.rows = 2500
    run.steps(4)
    assert run.table.channels == 10, "shrinking waits for three windows in a row"
    run.steps(12)
    assert run.table.channels == 3
    resized = [decision for decision in decided(run) if decision.choice is Choice.RESIZE]
    assert [(decision.channels, decision.next_channels) for decision in resized] == [(4, 10), (10, 3)]
    assert all("channels." in " ".join(decision.reasons) for decision in resized)


def test_channels_change_with_the_first_step_when_growing_and_the_last_when_shrinking():
    elastic = Elasticity.around(100.0, slack=0.3)
    options = dataclasses.replace(QUICK, elasticity=elastic, budget=Budget(50_000))
    run = a_run(Keel(), options, channels=2, exponent=0.5, rows=7500).steps(30)
    assert run.table.channels == 8
    run.stream.rows = 1500
    run.steps(60)
    assert run.table.channels == 2
    grown = [v.table.channels for v in run.verdicts if v.table is not None]
    assert grown[0] == 8
    assert grown[-1] == 2
    assert grown.count(8) > 2


def test_a_planner_that_gives_another_number_of_channels_than_asked_for_is_refused():
    options = dataclasses.replace(QUICK, elasticity=Elasticity.around(100.0, slack=0.5))
    run = a_run(Elb(lower=10, upper=30), options, channels=4).steps(8)
    assert run.changes() == 0
    assert any("were asked for" in reason for reason in decided(run)[-1].reasons)


@pytest.mark.parametrize("pause", [3, 5, 6, 21, 34], ids="stored after {} batches".format)
@pytest.mark.parametrize("budget", [None, 6_000], ids=["plans at once", "plans in steps"])
def test_a_restored_controller_continues_identically(pause, budget):
    options = dataclasses.replace(QUICK, budget=Budget(budget), elasticity=Elasticity.around(60.0))

    def play(*, stored: bool) -> Run:
        run = a_run(Keel(), options, rows=3000, seed=4)
        for batch in range(60):
            if stored and batch == pause:
                fresh = Controller(Keel(), options, clock=frozen_clock)
                fresh.restore(stored_and_read(run.controller.snapshot()))
                run.controller = fresh
            if batch % 20 == 19:
                run.stream.drift(0.5)
            run.step()
        return run

    one, two = play(stored=False), play(stored=True)
    assert list(one.controller.decisions) == list(two.controller.decisions)
    assert [v.decision for v in one.verdicts] == [v.decision for v in two.verdicts]
    assert one.table == two.table
    assert one.changes() > 1


def test_another_planner_may_continue_what_was_stored():
    run = a_run(Keel(), QUICK).steps(9)
    elb = Controller(Elb(), QUICK)
    elb.restore(stored_and_read(run.controller.snapshot()))
    run.controller = elb
    run.steps(10)
    assert len(elb.decisions) == 9


def test_windows_without_a_tuple_change_nothing():
    run = a_run(Keel(), QUICK, rows=0).steps(6)
    assert run.changes() == 0
    assert "not a single tuple" in decided(run)[-1].reasons[0]


def test_decisions_of_others_are_logged_too():
    controller = Controller(Keel())
    noted = controller.record(Decision(3, 0, 1.0, Choice.REHOME, ("Host b is idle.",), 4, 4))
    assert list(controller.decisions) == [noted]
    assert noted.number == 0


def test_while_the_window_is_open_nothing_is_decided_or_logged():
    run = a_run(Keel(), ControlOptions(windows=WindowOptions(batches=50), imbalance=Imbalance(1.01, 1.0))).steps(49)
    assert {verdict.decision.choice for verdict in run.verdicts} == {Choice.WAIT}
    assert len(run.controller.decisions) == 0


def test_inputs_are_not_changed():
    run = a_run(Keel(), QUICK).steps(1)
    report, table = run.stream.next_batch(run.table), run.table
    before = [part.slots.counts.copy() for part in report.channels]
    run.controller.observe(report)
    run.controller.decide(table, 2.0)
    assert all(np.array_equal(old, part.slots.counts) for old, part in zip(before, report.channels, strict=True))
    assert table == RoutingTable.even(6, slots=240)
