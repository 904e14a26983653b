"""Planners and controllers in replay: loads, tables, moves and bytes, followed key by key by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel import metrics
from evenkeel.control import Controller, ControlOptions, WindowOptions
from evenkeel.errors import InvalidArgumentError, InvalidPlanError
from evenkeel.metrics import ResourceProfile
from evenkeel.planning import PLANNERS, Elb, LoadSnapshot, Planner, Proposal, StayPut, make_planner, validate
from evenkeel.routing import Ragged, RoutingTable
from evenkeel.sim import Controlled, Drifting, Fluid, Planned, StateModel, Substreams, Zipf, replay
from evenkeel.sim.ledger import Ledger
from evenkeel.sim.measures import max_min_ratio, relative_imbalance, resource_imbalance
from evenkeel.sim.window import Histogram
from sim.literal import KEYS, histograms, home, moved_between, state_after, streams

STREAM = Drifting(Zipf(300, 1.0, tuples=2000), rate=0.2)
MODELS = st.builds(
    StateModel,
    bytes_per_unit=st.sampled_from([1.0, 3.0, 0.25]),
    growth=st.sampled_from(["constant", "linear", "sqrt", "quadratic"]),
    windows=st.sampled_from([1, 2, 3, None]),
    at_most=st.sampled_from([None, 2]),
)


@dataclass(frozen=True)
class Wandering(Planner):
    """Draws every slot and a few pins anew each time, and remembers what it saw: a planner to look through."""

    name = "wandering"
    seen: list

    def propose(self, problem):
        rng = np.random.default_rng(len(self.seen))
        keys = rng.choice(KEYS, 3, replace=False)
        table = problem.table.evolve(
            slot_channels=rng.integers(0, problem.channels, problem.table.slots),
            channels=problem.channels,
            pin_hashes=keys,
            pin_channels=rng.integers(0, problem.channels, 3),
        )
        self.seen.append((problem, table))
        return Proposal(table, ("By whim.",))


@given(windows=streams, model=MODELS, track=st.sampled_from([None, 0, 2]), every=st.integers(1, 3))
@settings(max_examples=60)
def test_loads_snapshots_moves_and_bytes_are_those_followed_by_hand(windows, model, track, every):
    planner = Wandering([])
    planned = Planned(planner, every=every, track=track)
    done = replay(histograms(windows), {"x": planned}, channels=3, slots=7, state=model, keep_loads=True)
    table, plans = RoutingTable.even(3, slots=7), iter(planner.seen)
    for number, (tuples, row) in enumerate(zip(windows, done.table.to_pylist(), strict=True)):
        loads = Counter(home(table, key) for key in tuples)
        assert done.loads["x"][number].tolist() == [loads[channel] for channel in range(3)]
        state = state_after(windows, number, model)
        assert row["state_bytes"] == sum(state.values())
        assert row["tuples"] == len(tuples)
        assert row["keys"] == len(set(tuples))
        assert row["pins"] == len(table.pin_hashes)
        assert row["planned"] == ((number + 1) % every == 0)
        if not row["planned"]:
            assert row["moves"] == row["moved_bytes"] == row["moved_keys"] == 0
            continue
        problem, new = next(plans)
        assert len(problem.snapshots) == min(every, number + 1)
        assert problem.table == table
        seen = problem.latest
        assert seen.total("counts") == len(tuples)
        assert seen.total("state_bytes") == sum(state.values())
        assert seen.per_channel(table, "counts").tolist() == done.loads["x"][number].tolist()
        assert row["moved_bytes"] == moved_between(table, new, state)
        assert row["moved_keys"] == sum(home(table, key) != home(new, key) for key in {*state, *tuples})
        assert row["moves"] == len(table.diff(new))
        table = new


@given(windows=streams, model=MODELS, growth=st.sampled_from(["constant", "linear", "quadratic"]))
@settings(max_examples=60)
def test_what_keys_hold_and_cost_is_what_the_models_say(windows, model, growth):
    ledger = Ledger(model, growth)
    for number, tuples in enumerate(windows):
        measured = ledger.observe(Histogram.of(np.array(tuples, np.int64)))
        state, counts = state_after(windows, number, model), Counter(tuples)
        assert measured.hashes.tolist() == sorted({*state, *counts})
        assert measured.counts.tolist() == [counts[key] for key in measured.hashes.tolist()]
        assert measured.state_bytes.tolist() == [state.get(key, 0) for key in measured.hashes.tolist()]
        power = {"constant": 0, "linear": 1, "quadratic": 2}[growth]
        assert measured.costs.tolist() == [
            counts[key] ** power if counts[key] else 0 for key in measured.hashes.tolist()
        ]


def test_state_may_be_told_instead_of_modelled():
    ledger = Ledger()
    first = ledger.observe(Histogram.of(np.array([1, 2]), [5, 5], [100, 200]))
    assert first.state_bytes.tolist() == [100, 200]
    second = ledger.observe(Histogram.of(np.array([2, 3]), [1, 1], [0, 7]))
    assert (second.hashes.tolist(), second.state_bytes.tolist()) == ([1, 2, 3], [100, 0, 7])
    third = ledger.observe(Histogram.of(np.array([3]), [1], [7]))
    assert third.hashes.tolist() == [1, 3]


def test_state_may_grow_as_a_function_of_ones_own():
    model = StateModel(10, np.log1p)
    assert model.state_bytes(np.array([0, 1, 100])).tolist() == [0, 7, 46]


@pytest.mark.parametrize("name", [name for name in PLANNERS if name != "exact"])
def test_every_planner_replays_with_valid_plans_while_channels_come_and_go(name, monkeypatch):
    checked = []

    def spying(plan, snapshot, table):
        checked.append(plan)
        validate(plan, snapshot, table)

    monkeypatch.setattr("evenkeel.planning.base.validate", spying)
    schedule = [3, 3, 5, 4]
    done = replay(STREAM, {name: Planned(name, track=50, look_back=2)}, channels=schedule, windows=5, slots=64)
    assert done.column(name, "channels").tolist() == [3, 3, 5, 4, 4]
    assert len(checked) == (2 if name == "stay_put" else 5)
    assert done.column(name, "tuples").tolist() == [2000] * 5
    assert done.column(name, "load_mean").tolist() == pytest.approx([2000 / n for n in (3, 3, 5, 4, 4)])


def test_a_plan_that_loses_state_is_refused():
    @dataclass(frozen=True)
    class Splitting(Planner):
        name = "splitting"

        def propose(self, problem):
            table = problem.table.evolve(split_hashes=[KEYS[0]], split_channels=Ragged.of([[0, 1]]))
            return Proposal(table, ("It must not.",))

    with pytest.raises(InvalidPlanError, match="splits a key"):
        replay(STREAM, {"x": Splitting()}, channels=3, windows=1)


def test_listed_keys_are_tracked_whatever_they_cost():
    table = RoutingTable.even(2, slots=3).with_pins(KEYS[:2], [0, 1])
    measured = Ledger().observe(Histogram.of(np.array(KEYS), np.arange(1, len(KEYS) + 1)))
    snapshot = measured.snapshot(table, track=1)
    assert snapshot.key_hashes.tolist() == sorted([KEYS[0], KEYS[1], KEYS[-1]])
    assert snapshot.total("counts") == sum(range(1, len(KEYS) + 1))
    assert snapshot.distinct_keys == len(KEYS)


def test_with_equal_costs_the_lower_hashes_are_tracked():
    measured = Ledger().observe(Histogram.of(np.array(KEYS)))
    snapshot = measured.snapshot(RoutingTable.even(2, slots=3), track=4)
    assert snapshot.key_hashes.tolist() == sorted(KEYS)[:4]


def test_a_snapshot_of_all_keys_is_that_of_the_planning_room():
    measured = Ledger().observe(next(STREAM.windows()).histogram())
    table = RoutingTable.even(4, slots=32)
    for track in (None, 0, 10):
        mine = measured.snapshot(table, track)
        theirs = LoadSnapshot.of_keys(measured.hashes, measured.counts, slots=32, track=track)
        for measure in ("counts", "costs", "state_bytes"):
            assert mine.of_slots(measure).sum() == theirs.of_slots(measure).sum()
            assert mine.per_channel(table, measure).tolist() == theirs.per_channel(table, measure).tolist()


@given(windows=streams, width=st.integers(1, 3))
@settings(max_examples=30)
def test_tuples_of_a_split_key_take_its_channels_in_turn_through_the_windows(windows, width):
    table = RoutingTable(np.arange(7) % 3, 3, split_hashes=KEYS[:2], split_channels=Ragged.of([[2, 0, 1][:width]] * 2))
    done = replay(histograms(windows), {"x": table}, channels=3, keep_loads=True)
    turns = Counter()
    for number, tuples in enumerate(windows):
        loads = Counter()
        for key in tuples:
            loads[int(table.route(np.array([key]), turn=turns[key])[0])] += 1
            turns[key] += 1
        assert done.loads["x"][number].tolist() == [loads[channel] for channel in range(3)]


def test_backups_cost_what_is_asked():
    plain = RoutingTable.even(3, slots=6)
    backed = plain.evolve(slot_backups=Ragged.of([[(channel + 1) % 3] for channel in plain.slot_channels]))
    strategies = {"plain": plain, "backed": Planned(StayPut(), table=backed, backup_cost=0.5)}
    done = replay(STREAM, strategies, channels=3, windows=1, keep_loads=True)
    (own,), (both,) = done.loads["plain"], done.loads["backed"]
    assert both.tolist() == (own + 0.5 * np.roll(own, 1)).tolist()


def test_elb_chooses_its_own_number_of_channels():
    planner = Elb(lower=80, upper=120)
    stream = Substreams("gaussian", tuples=[1000, 1000, 500, 500], arrivals="fixed")
    done = replay(stream, {"elb": planner}, channels=3, windows=4, slots=100)
    assert done.column("elb", "channels").tolist() == [3, 10, 10, 5]


def test_gedik_measures_are_those_of_the_metrics_for_all_keys():
    profile = ResourceProfile.named(computation="quadratic")
    measures = {"b": relative_imbalance(profile), "r": max_min_ratio}
    measures |= {f"b_{name}": resource_imbalance(profile, name) for name in ("state", "computation", "communication")}
    table = RoutingTable.even(4, slots=16)
    done = replay(STREAM, {"x": Planned("readj", track=20, table=table), "pkg": "pkg"}, channels=4, windows=1,
                  measures=measures)  # fmt: skip
    histogram = next(STREAM.windows()).histogram()
    loads = metrics.resource_loads(histogram.counts, table.home(histogram.hashes), 4, profile)
    row, other = done.table.to_pylist()
    assert row["b"] == metrics.relative_imbalance(loads, profile)
    assert [row[f"b_{name}"] for name in ("state", "computation", "communication")] == metrics.relative_imbalances(
        loads, profile
    ).tolist()
    assert row["r"] == loads[0].max() / loads[0].min()
    assert np.isnan(other["b"])
    with pytest.raises(InvalidArgumentError, match="communication"):
        resource_imbalance(profile, "network")
    assert other["r"] >= 1


# -- controllers ----------------------------------------------------------------------------------------------------


def controller(planner="keel", **options):
    options = ControlOptions(windows=WindowOptions(batches=2, max_keys=50), **options)
    return Controller(make_planner(planner), options, clock=lambda: 0.0)


def test_a_controller_sees_what_is_and_decides():
    given = controller()
    stream = Zipf(2000, 0.9, tuples=20_000)
    done = replay(stream, {"control": given, "stay": "stay_put"}, channels=6, windows=8, slots=120, keep_loads=True)
    before, after = done.column("control", "skewness")[:2], done.column("control", "skewness")[2:]
    assert after.max() < before.min() - 0.1
    assert done.column("control", "skewness")[:2].tolist() == done.column("stay", "skewness")[:2].tolist()
    assert len(given.decisions) == 0  # it is a copy that worked
    moved = done.column("control", "moved_bytes")
    assert moved.nonzero()[0].tolist() == [1]
    assert "fullest channel" in done.of("control")["reason"][1].as_py()


def test_what_the_channels_report_is_the_window():
    from evenkeel.sim.runs import ControlledRun

    seen = []
    original = ControlledRun._reports

    def spying(self, measured, homes):
        reports = original(self, measured, homes)
        seen.append((self.table, measured, reports))
        return reports

    table = RoutingTable(
        np.arange(20) % 3, 3, pin_hashes=KEYS[:2], pin_channels=[2, 2],
        split_hashes=KEYS[2:3], split_channels=Ragged.of([[0, 2]]),
    )  # fmt: skip
    windows = [KEYS * 4, KEYS[:5] * 2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ControlledRun, "_reports", spying)
        replay(histograms(windows), {"x": Controlled(controller(), table=table, ms_per_load=2.0)}, channels=3)
    for (_, measured, reports), tuples in zip(seen, windows, strict=True):
        for channel, report in enumerate(reports):
            expected = Counter()
            for key in tuples:
                if key == KEYS[2]:
                    expected[key] += 0.5 * (channel in {0, 2})
                elif home(table, key) == channel:
                    expected[key] += 1
            assert report.busy_ms == 2 * sum(expected.values())
            assert report.slots.counts.sum() == sum(expected.values())
            told = dict(zip(report.keys.ids.tolist(), report.keys.counts.tolist(), strict=True))
            assert {key: count for key, count in told.items() if count} == {k: c for k, c in expected.items() if c}
        assert sum(report.slots.state_bytes.sum() for report in reports) == measured.state_bytes.sum()


def test_a_plan_in_steps_moves_what_the_tables_differ_by():
    from evenkeel.control import Budget

    given = controller(budget=Budget(state_bytes=400))
    done = replay(Zipf(2000, 0.9, tuples=20_000), {"x": given}, channels=6, windows=12, slots=120)
    moved = done.column("x", "moved_bytes")
    assert (moved > 0).sum() > 1
    assert done.column("x", "skewness")[-1] < done.column("x", "skewness")[0] - 0.1


def test_the_pause_of_a_migration_is_what_the_controller_learns_from():
    given = controller()
    service = Fluid(rate=5000, bytes_per_s=10_000, pause_s=0.1)
    done = replay(Zipf(2000, 0.9, tuples=20_000), {"x": given}, channels=6, windows=8, slots=120, service=service)
    moved, pause = done.column("x", "moved_bytes"), done.column("x", "pause_s")
    assert pause[1:].tolist() == pytest.approx([0.1 + size / 10_000 if size else 0 for size in moved[:-1]])
    assert replace(service, rate=1.0).pause_for(0, 0) == 0


def test_a_switch_of_roles_is_counted_and_sends_nothing():
    homes = np.arange(64) % 4
    table = RoutingTable(homes, 4, slot_backups=Ragged.of([[(home + 1) % 4] for home in homes]))
    done = replay(STREAM, {"ftlb": Planned("ftlb", table=table)}, channels=4, windows=4)
    assert done.column("ftlb", "switches").sum() > 0
    whole = replay(STREAM, {"ftlb": Planned("ftlb", table=RoutingTable(homes, 4))}, channels=4, windows=4)
    assert done.column("ftlb", "moved_bytes").sum() < whole.column("ftlb", "moved_bytes").sum()
    assert done.column("ftlb", "moved_keys").sum() > 0
