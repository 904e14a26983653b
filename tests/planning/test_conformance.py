"""What every planner promises, whoever it is; new ones are found by themselves."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings

from evenkeel import metrics
from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.planning import PLANNERS, LoadSnapshot, Plan, make_planner, plan
from evenkeel.routing import Action, RoutingTable
from planning.instances import AWKWARD, perfectly_even, problems, zipf_snapshot

OPTIONS = {"exact": {"time_limit_s": 1.0}}


def planner(name: str):
    return make_planner(name, **OPTIONS.get(name, {}))


def slow_loads(snapshot: LoadSnapshot, table: RoutingTable) -> np.ndarray:
    loads = np.zeros(table.channels)
    for slot, cost in enumerate(snapshot.slot_costs):
        loads[table.slot_channels[slot]] += cost
    for key_hash, cost in zip(snapshot.key_hashes, snapshot.key_costs, strict=True):
        places = table.active_channels(np.array([key_hash])).channels
        loads[places] += cost / len(places)
    return loads


def check_promises(made: Plan, windows, table: RoutingTable, channels: int) -> None:
    snapshot = windows[-1]
    assert made.table.channels == channels
    assert made.table.slots == table.slots
    assert made.reasons
    assert all(reason.endswith((".", ")")) for reason in made.reasons)
    for balance, of in ((made.before, table), (made.after, made.table)):
        loads = slow_loads(snapshot, of)
        assert balance.imbalance == pytest.approx(metrics.imbalance(loads), rel=1e-6, abs=1e-9)
        assert balance.variance == pytest.approx(metrics.load_variance(loads), rel=1e-6, abs=1e-9)
    assert made.own_after == planner(made.planner).score(_problem(windows, table, channels), made.table)
    leaving = made.moves.actions != Action.COPY
    left = zip(made.moves.is_key[leaving], made.moves.ids[leaving], made.moves.sources[leaving], strict=True)
    assert len(set(left)) == leaving.sum(), "nothing may leave one place twice"
    assert 0 <= made.movement.percent <= 100 * (1 + (made.moves.actions == Action.COPY).any())


def _problem(windows, table, channels):
    from evenkeel.planning import Problem

    return Problem(tuple(windows), table, channels)


@pytest.mark.parametrize("name", PLANNERS)
class TestEveryPlanner:
    @given(instance=problems())
    @settings(max_examples=40)
    def test_its_plans_are_valid_and_true(self, name, instance):
        windows, table, channels = instance
        check_promises(planner(name).plan(windows, table, channels), windows, table, channels)

    @pytest.mark.parametrize("case", AWKWARD)
    def test_it_copes_with_awkward_input(self, name, case):
        snapshot, table, channels = AWKWARD[case]
        made = planner(name).plan(snapshot, table, channels)
        check_promises(made, [snapshot], table, channels)

    def test_it_repeats_itself(self, name):
        snapshot = zipf_snapshot(300, 1.0, slots=32, track=40)
        table = RoutingTable.even(5, slots=32)
        first, second = (planner(name).plan([snapshot, snapshot], table, 6) for _ in range(2))
        if name != "exact":  # which is stopped by a clock
            assert first.table == second.table
        assert first.own_before == second.own_before

    def test_it_leaves_its_input_alone(self, name):
        snapshot = zipf_snapshot(300, 1.0, slots=32, track=40)
        table = RoutingTable.even(5, slots=32).with_pins(snapshot.key_hashes[:3], [0, 1, 2])
        before = copy.deepcopy([getattr(snapshot, field) for field in LoadSnapshot.__dataclass_fields__])
        again = RoutingTable.from_arrow(table.to_arrow())
        planner(name).plan(snapshot, table, 7)
        for old, field in zip(before, LoadSnapshot.__dataclass_fields__, strict=True):
            np.testing.assert_array_equal(old, getattr(snapshot, field))
        assert table == again

    @pytest.mark.parametrize("replicas", [False, True], ids=["without replicas", "with replicas"])
    def test_it_moves_nothing_where_balance_holds(self, name, replicas):
        snapshot, table = perfectly_even(replicas=replicas)
        made = planner(name).plan([snapshot, snapshot, snapshot], table)
        assert made.before.imbalance == 0
        assert made.table is table
        assert made.changes_nothing
        assert made.movement.state_bytes == 0

    def test_it_is_documented_and_known_by_its_name(self, name):
        assert PLANNERS[name].name == name
        assert PLANNERS[name].__doc__
        assert isinstance(planner(name), PLANNERS[name])
        assert repr(planner(name)).startswith(PLANNERS[name].__name__)

    def test_nonsense_is_refused(self, name):
        snapshot, table = perfectly_even()
        with pytest.raises(InvalidArgumentError, match="at least one snapshot"):
            planner(name).plan([], table)
        with pytest.raises(InvalidArgumentError, match="at least 1; got 0"):
            planner(name).plan(snapshot, table, 0)
        with pytest.raises(InvalidArgumentError, match="64 slots and the table 8"):
            planner(name).plan(snapshot, RoutingTable.even(2, slots=8))

    def test_the_time_it_took_comes_from_the_clock_given(self, name):
        ticks = iter(range(10, 10_000))
        snapshot, table = perfectly_even()
        assert planner(name).plan(snapshot, table, clock=lambda: float(next(ticks))).seconds >= 1


def test_an_unknown_planner_comes_with_a_hint():
    snapshot, table = perfectly_even()
    with pytest.raises(UnknownNameError, match="Did you mean 'keel'"):
        plan("kel", snapshot, table)


def test_a_plan_says_what_it_does():
    snapshot = zipf_snapshot(300, 1.0, slots=32, track=40)
    text = str(plan("keel", snapshot, RoutingTable.even(4, slots=32)))
    assert text.startswith("keel: skewness")
    assert "bytes" in text
