"""The advisor: the answers that one knows beforehand, and what it says about them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.hashing import hash_keys
from evenkeel.sim import Drifting, Histograms, Routed, StateModel, Weighted, Zipf, replay
from evenkeel.sim.advice import CANDIDATES, Candidate, Costs, KnownTrace, Profile, advise
from evenkeel.sim.advice.candidates import find_candidates
from evenkeel.sim.advice.outcome import combined, try_out

KEEL = {"keel", "keel+short"}
COMBINED = {"key_grouping+combine", "keel+combine"}
SPLIT = {"pkg", "d_choices", "w_choices"}
# Others that Spark could run: the advice must be near the best of these, too.
RIVALS = ("lptf", "min_mig", "scan")


def unlucky() -> Weighted:
    """100 keys, alike, but all with one channel of eight by their hashes; and many cold ones."""
    crowded = np.flatnonzero(hash_keys(np.arange(2000)) % 8 == 3)[:100]
    weights = np.full(2000, 1.0)
    weights[crowded] = 40.0
    return Weighted(weights, tuples=10_000)


GIANT = [600.0] + [1.0] * 600
STATE = StateModel(100, "constant", windows=None)

# stream, whether states merge, map tasks, what to answer, on how many channels
KNOWN = {
    "uniform keys: key grouping is enough": (Zipf(5000, 0.0, tuples=40_000), False, 8, {"key_grouping"}, {8}),
    "an unlucky hash": (unlucky(), False, 8, KEEL, {8}),
    "moderate skew, whole keys": (Zipf(2000, 0.9, tuples=20_000), False, 8, KEEL, {8}),
    "a giant key that must stay whole": (Weighted(GIANT, tuples=10_000), False, 8, KEEL, {2}),
    "nothing but one key": (Weighted([1.0], tuples=2000), False, 8, {"key_grouping"}, {1}),
    "a few keys": (Weighted([1.0] * 5, tuples=20_000), False, 8, KEEL, {5}),
    "drift, whole keys": (Drifting(Zipf(1000, 0.9, tuples=20_000), rate=0.05), False, 8, {"keel+short"}, {4, 8}),
    "a giant key that may be split, few tuples per key": (
        Weighted([5000.0] + [1.0] * 5000, tuples=4000),
        True,
        200,
        {"w_choices", "d_choices", *COMBINED},
        {8},
    ),
    "a giant key that may be split, many tuples per key": (Weighted(GIANT, tuples=20_000), True, 8, COMBINED, {8}),
    "uniform keys of many tuples that merge": (Zipf(500, 0.0, tuples=20_000), True, 8, COMBINED, {8}),
    "states merge, but every tuple is a key of its own": (
        Zipf(10**7, 0.0, tuples=4000),
        True,
        8,
        {"key_grouping"},
        {8},
    ),
}


@pytest.mark.parametrize(("workload", "mergeable", "sources", "wanted", "channels"), KNOWN.values(), ids=KNOWN)
def test_the_known_answer_is_given(workload, mergeable, sources, wanted, channels):
    stream = Histograms.of(workload, 18)
    advice = advise(stream, mergeable=mergeable, channels=8, sources=sources)
    (answer,) = advice.answers
    assert answer.chosen.name in wanted
    assert answer.chosen.channels in channels
    rivals = [candidate for candidate in find_candidates(RIVALS) if mergeable or not candidate.needs_merge]
    number = answer.chosen.channels
    tried = try_out(stream, rivals, number, sources=sources, warm_up=6, state=STATE, costs=Costs())
    best = min(outcome.makespan for outcome in (*answer.outcomes, *tried))
    assert answer.chosen.makespan <= 1.05 * best
    total = advice.profile.tuples / advice.profile.windows
    if not mergeable:  # no placement of whole keys can be better than this
        assert answer.chosen.busiest >= max(total / number, total * advice.profile.hottest_share) * (1 - 1e-9)


def test_what_cannot_be_helped_is_said():
    stream = Histograms.of(Weighted(GIANT, tuples=10_000), 18)
    whole, split = advise(stream, channels=8, strategies=["keel+short", "w_choices"]).answers
    assert any("cannot be divided" in reason for reason in whole.reasons)
    assert (whole.mergeable, split.mergeable) == (False, True)
    assert not any("cannot be divided" in reason for reason in split.reasons)
    assert split.gain > whole.gain > 1


def test_drift_is_told_from_chance():
    still = Profile.of(Histograms.of(Zipf(20_000, 0.0, tuples=40_000), 6))
    drifting = Profile.of(Histograms.of(Drifting(Zipf(2000, 0.9, tuples=20_000), rate=0.4), 6))
    steady = Profile.of(Histograms.of(Zipf(2000, 0.9, tuples=20_000), 6))
    assert still.turnover == 0
    assert steady.turnover < 0.1
    assert drifting.turnover > 0.3


def test_the_profile_counts_what_there_is():
    table = pa.table({"window": [0, 0, 1, 1], "hash": [-5, 3 << 40, -5, 7], "count": [60, 40, 70, 30]})
    profile = Profile.of(Histograms(table), keys_of=lambda hashes: {-5: "ann"} if -5 in hashes else {})
    assert (profile.tuples, profile.keys, profile.windows, profile.folded) == (200, 3, 2, True)
    assert [(key.name, key.share) for key in profile.hot] == [("ann", 0.65), (None, 0.2)]
    assert profile.hottest_share == pytest.approx(0.65)


def test_a_rate_asks_for_the_fewest_channels_that_keep_up():
    stream = Histograms.of(Zipf(4000, 0.5, tuples=40_000), 18)
    (enough,) = advise(stream, mergeable=False, channels=4, rate=15_000, timed=True).answers
    assert enough.keeps_up
    assert enough.chosen.channels == 4  # 40,000 a second, at 80 % of 15,000 for each
    assert enough.chosen.latency_p95_ms is not None
    (never,) = advise(stream, mergeable=False, channels=2, rate=15_000, timed=True).answers
    assert never.keeps_up is False
    assert "No number of channels" in never.reasons[0]


def test_dear_state_is_left_where_it_is():
    """Where a plan would move more than it saves before the next one, plain Spark is the answer."""
    stream = Histograms.of(Drifting(Zipf(3000, 0.6, tuples=10_000), rate=0.3), 18)
    state = StateModel(2_000_000, "constant", windows=None)
    (answer,) = advise(stream, mergeable=False, channels=4, state=state).answers
    assert answer.chosen.moved_bytes == 0


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.name)
def test_code_is_python_that_names_strategy_and_channels(candidate: Candidate):
    code = candidate.code(["user id", "land"], 12)
    compile(code, "advice", "exec")
    for part in (f'"{candidate.strategy}"', "channels=12", 'key=["user id", "land"]', "checkpoints/user_id-land"):
        assert part in code
    assert ("combine=True" in code) == candidate.combine


def test_combining_leaves_one_row_per_key_and_map_task():
    table = pa.table({"window": [0, 0, 0], "hash": [7, 7, 8], "count": [500, 2, 1], "source": [0, 1, 1]})
    assert combined(Histograms(table), 99).table["count"].to_pylist() == [1, 1, 1]
    plain = Histograms(table.drop_columns("source"))
    assert combined(plain, 1).table["count"].to_pylist() == [1, 1, 1]


def test_a_trace_is_looked_over_and_its_keys_are_named(tmp_path):
    (tmp_path / "log.csv").write_text("at,user\n10,ann\n12,bob\n30,ann\n")
    trace = KnownTrace(tmp_path / "log.csv", "user", time="at", window_tuples=2)
    assert trace.survey() == (3, 10.0, 30.0)
    ann, nobody = int(hash_keys(["ann"])[0]), 99
    assert trace.keys_of(np.array([ann, nobody])) == {ann: "ann"}


def test_mistakes_are_told():
    empty = Histograms(pa.table({"window": [0], "hash": [1], "count": [0]}))
    with pytest.raises(InvalidArgumentError, match="not a single tuple"):
        advise(empty)
    with pytest.raises(UnknownNameError, match="Did you mean 'keel'"):
        advise(Histograms.of(Zipf(10, tuples=10), 1), strategies=["kel"])
    with pytest.raises(InvalidArgumentError, match="channels"):
        advise(empty, channels=0)
    with pytest.raises(InvalidArgumentError, match="ms_per_tuple"):
        Costs(0)


def test_a_router_that_starts_afresh_forgets_the_window_before():
    """d_choices counts 10,000 tuples of a source before it gives hot keys more choices; a batch may have fewer."""
    stream = Histograms.of(Weighted(GIANT, tuples=4000), 6)
    kinds = {"on": Routed("d_choices"), "anew": Routed("d_choices", afresh=True)}
    done = replay(stream, kinds, channels=8)
    assert done.column("on", "skewness")[0] == done.column("anew", "skewness")[0]
    assert done.column("on", "skewness")[-1] < 1.2
    assert done.column("anew", "skewness").min() > 1.5
