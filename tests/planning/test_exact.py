"""The yardstick is exact: it equals brute force wherever that can be had."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.planning import Exact, Items, LoadSnapshot, StayPut
from evenkeel.routing import Ragged, RoutingTable
from planning.instances import KEYS, zipf_snapshot


def every_placement(snapshot: LoadSnapshot, table: RoutingTable, channels: int):
    """(fullest channel, bytes sent) of every placement of the items."""
    items = Items.of(snapshot, table)
    loaded = np.flatnonzero((items.loads > 0) | (items.homes >= channels))
    backups = items.backups().tolist()
    for places in product(range(channels), repeat=len(loaded)):
        homes = items.homes.copy()
        homes[loaded] = places
        sent = sum(
            int(items.state_bytes[i]) for i in loaded if homes[i] != items.homes[i] and homes[i] not in backups[i]
        )
        yield items.channel_loads(homes, channels).max(), sent


@st.composite
def small(draw):
    slots = 2
    keys = KEYS[:4]
    load = st.integers(0, 20)
    counts = draw(st.lists(load, min_size=4, max_size=4))
    state = draw(st.lists(load, min_size=4, max_size=4))
    channels = draw(st.integers(1, 3))
    homes = draw(st.lists(st.integers(0, channels - 1), min_size=slots, max_size=slots))
    backups = None
    if channels > 1 and draw(st.booleans()):
        backups = Ragged.of([[(home + 1) % channels] for home in homes])
    table = RoutingTable(homes, channels, slot_backups=backups)
    return LoadSnapshot.of_keys(keys, counts, slots=slots, state_bytes=state), table, draw(st.integers(1, 3))


@given(small(), st.integers(0, 60))
@settings(max_examples=40)
def test_the_least_imbalance_within_a_budget_is_found(instance, budget):
    snapshot, table, channels = instance
    placements = [fullest for fullest, sent in every_placement(snapshot, table, channels) if sent <= budget]
    plan = Exact(budget_bytes=budget).plan(snapshot, table, channels)
    if not placements:
        assert "No exact solution" in plan.reasons[0]
        return
    assert snapshot.per_channel(plan.table).max() == pytest.approx(min(placements), rel=1e-5)
    assert plan.movement.state_bytes <= budget


@given(small(), st.sampled_from([1.0, 1.1, 1.5]))
@settings(max_examples=40)
def test_the_fewest_bytes_for_an_imbalance_are_found(instance, skewness):
    snapshot, table, channels = instance
    limit = skewness * snapshot.total() / channels
    sent = [sent for fullest, sent in every_placement(snapshot, table, channels) if fullest <= limit * (1 + 1e-9)]
    plan = Exact(max_skewness=skewness).plan(snapshot, table, channels)
    if not sent:
        assert "No exact solution" in plan.reasons[0]
        return
    assert plan.movement.state_bytes == min(sent)
    assert snapshot.per_channel(plan.table).max() <= limit * (1 + 1e-6)


def test_a_solver_that_runs_out_of_time_says_how_far_it_got():
    snapshot = zipf_snapshot(400, 0.9, slots=64, track=60, state="random")
    plan = Exact(time_limit_s=0.3, gap=0).plan(snapshot, RoutingTable.even(8, slots=64))
    assert plan.after.imbalance <= StayPut().plan(snapshot, RoutingTable.even(8, slots=64)).after.imbalance
    assert "of the optimum" in plan.reasons[0] or "No exact solution" in plan.reasons[0] or "optimal" in plan.reasons[0]


def test_a_problem_that_is_too_large_is_refused_with_a_hint():
    with pytest.raises(InvalidArgumentError, match="plan with 'keel'"):
        Exact(max_choices=100).plan(zipf_snapshot(400, 1.0, slots=64), RoutingTable.even(8, slots=64))


@pytest.mark.parametrize(
    "options",
    [{"max_skewness": 0.9}, {"budget_bytes": -1}, {"time_limit_s": 0}, {"gap": -1}],
    ids=lambda options: next(iter(options)),
)
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidArgumentError):
        Exact(**options)
