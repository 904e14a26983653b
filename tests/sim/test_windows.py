"""What every workload promises: tuples and histograms are one sample, and the same one each time."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.hashing import hash_keys
from evenkeel.sim import (
    WORKLOADS,
    Bursts,
    Drifting,
    Histogram,
    Histograms,
    LogNormal,
    Sourced,
    Substreams,
    SwitchingZipf,
    Trace,
    Weighted,
    Zipf,
    make_workload,
    ordering,
)

EXAMPLES = {
    "zipf": lambda _: Zipf(50, 1.2, tuples=700),
    "zipf, fewer tuples than keys": lambda _: Zipf(10**8, 0.8, tuples=700),
    "switching_zipf": lambda _: SwitchingZipf(60, ((0.2, 1), (1.5, 2)), tuples=500, arrivals="poisson"),
    "substreams": lambda _: Substreams("gaussian", tuples=900),
    "log_normal": lambda _: LogNormal(tuples=800),
    "weighted": lambda _: Weighted(np.array([0.0, 3.0, 1.0]), tuples=[100, 0, 300]),
    "weighted, fewer tuples than keys": lambda _: Weighted(np.arange(5000), tuples=lambda window: 100 * window),
    "drifting": lambda _: Drifting(Zipf(80, 1.0, tuples=600), rate=0.3),
    "bursts": lambda _: Bursts(Zipf(80, 1.0, tuples=600), every=2, length=1, hot=2),
    "bursts, fewer tuples than keys": lambda _: Bursts(Zipf(8000, 1.0, tuples=600), every=2, length=1, hot=2),
    "sourced": lambda _: Sourced(Zipf(80, 1.0, tuples=600), 3, "zipf"),
    "histograms": lambda _: Histograms(
        pa.table({"window": [2, 0, 0], "hash": [5, 5, -7], "count": [4, 1, 9], "source": [0, 2, 1]})
    ),
    "trace": lambda folder: Trace(written(folder), time="ts", window_seconds=2.0),
}


def written(folder):
    path = folder / "stream.parquet"
    keys = ["a", "b", "a", "c", "a", "b", "b"]
    pq.write_table(pa.table({"ts": [0, 1, 1, 3, 8, 8, 9], "key": keys}), path, row_group_size=2)
    return path


@pytest.fixture(params=EXAMPLES, ids=str)
def workload(request, tmp_path):
    return EXAMPLES[request.param](tmp_path)


def test_every_workload_has_an_example():
    assert {name.split(",")[0] for name in EXAMPLES} == set(WORKLOADS)


def test_the_histogram_counts_the_tuples(workload, monkeypatch):
    monkeypatch.setattr(ordering, "PIECE", 64)  # several pieces per window
    for window in islice(workload.windows(), 5):
        parts = [np.empty(0, np.int64), *(part.hashes for part in window.tuples())]
        hashes, counts = np.unique(np.concatenate(parts), return_counts=True)
        histogram = window.histogram()
        assert histogram.hashes.tolist() == hashes.tolist()
        assert histogram.counts.tolist() == counts.tolist()
        assert window.size == histogram.tuples == counts.sum()


def test_it_gives_the_same_stream_each_time(workload):
    for one, other in zip(islice(workload.windows(), 4), islice(workload.windows(), 4), strict=True):
        assert one.histogram().counts.tolist() == other.histogram().counts.tolist()
        for _ in range(2):  # also of one window
            for mine, theirs in zip(one.tuples(), other.tuples(), strict=True):
                assert mine.hashes.tolist() == theirs.hashes.tolist()
                assert (mine.sources is None) == (workload.sources == 1)
                if mine.sources is not None:
                    assert mine.sources.tolist() == theirs.sources.tolist()
                    assert 0 <= mine.sources.min() <= mine.sources.max() < workload.sources


def test_tuples_come_in_order_within_their_window(workload, monkeypatch):
    monkeypatch.setattr(ordering, "PIECE", 64)
    for window in islice(workload.windows(), 4):
        times = [part.times for part in window.tuples(full=True)]
        together = np.concatenate([np.array([window.start]), *times, np.array([window.start + window.seconds])])
        assert (np.diff(together) >= 0).all()


def test_the_keys_of_synthetic_tuples_have_the_hashes():
    for workload in (Zipf(50, 1.0, tuples=500, salt=3), Zipf(5000, 1.0, tuples=500, salt=3)):
        for part in next(iter(workload.windows())).tuples(full=True):
            assert part.hashes.tolist() == hash_keys(part.ids).tolist()
            assert part.ids.min() >= 3 << 40


def test_another_seed_is_another_sample_and_another_salt_other_keys():
    def hashes(**options):
        return next(iter(Zipf(100, 1.0, tuples=1000, **options).windows())).histogram()

    assert hashes(seed=1).counts.tolist() != hashes().counts.tolist()
    assert not set(hashes(salt=1).hashes.tolist()) & set(hashes().hashes.tolist())
    assert sorted(hashes(salt=1).counts.tolist()) == sorted(hashes().counts.tolist())


def test_unhashed_keys_are_their_slots():
    window = next(iter(Substreams("zipf").windows()))
    assert window.histogram().hashes.tolist() == list(range(100))


def test_tuples_per_window_may_be_a_number_a_list_or_a_function():
    def sizes(**options):
        return [window.size for window in islice(Zipf(10, 1.0, **options).windows(), 4)]

    assert sizes(tuples=7) == [7, 7, 7, 7]
    assert sizes(tuples=[1, 5]) == [1, 5, 5, 5]
    assert sizes(tuples=lambda window: 10 * window) == [0, 10, 20, 30]
    assert len(set(sizes(tuples=1000, arrivals="poisson"))) > 1


def test_a_workload_by_its_name():
    assert make_workload("zipf", keys=5, exponent=2.0) == Zipf(5, 2.0)
    with pytest.raises(UnknownNameError, match="Did you mean 'zipf'"):
        make_workload("zipff")


@pytest.mark.parametrize(
    "make",
    [
        lambda: next(Zipf(0, 1.0).windows()),
        lambda: next(Zipf(5, -1.0).windows()),
        lambda: Zipf(5, 1.0, seconds=0),
        lambda: Zipf(5, 1.0, arrivals="sometimes"),
        lambda: Zipf(5, 1.0, tuples=[]),
        lambda: next(Zipf(5, 1.0, tuples=-1).windows()),
        lambda: Zipf(5, 1.0, salt=1 << 30),
        lambda: SwitchingZipf(5, ((1.0, 0),)),
        lambda: Substreams("poisson"),
        lambda: next(LogNormal(1, 5).windows()),
        lambda: next(Weighted([0.0, 0.0]).windows()),
        lambda: next(Drifting(LogNormal()).windows()),
        lambda: Drifting(Zipf(5, 1.0), rate=-1),
        lambda: Bursts(Zipf(5, 1.0), length=30),
        lambda: Sourced(Zipf(5, 1.0), 0),
        lambda: Sourced(Zipf(5, 1.0), 2, by="whim"),
        lambda: Histograms(pa.table({"window": [0], "hash": [1]})),
        lambda: Histograms(pa.table({"window": [-1], "hash": [1], "count": [1]})),
        lambda: Histograms(pa.table({"window": [0], "hash": [1], "count": [None]}, pa.schema(
            [("window", pa.int64()), ("hash", pa.int64()), ("count", pa.int64())]))),
        lambda: Histogram(np.array([2, 1]), np.array([1, 1])),
        lambda: Histogram.of(np.array([2, 1]), [1, -1]),
        lambda: Histogram.of(np.array([2, 1]), [1]),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(InvalidArgumentError):
        make()


def test_prepared_histograms_keep_sources_and_bytes_apart_from_keys():
    table = pa.table(
        {"window": [0, 0, 0], "hash": [8, 8, 3], "count": [2, 3, 1], "state_bytes": [10, 5, 1], "source": [0, 1, 1]}
    )
    window = next(iter(Histograms(table).windows()))
    assert window.histogram().state_bytes.tolist() == [1, 15]
    pairs = [pair for part in window.tuples() for pair in zip(part.hashes, part.sources, strict=True)]
    assert sorted(pairs) == [(3, 1), (8, 0), (8, 0), (8, 1), (8, 1), (8, 1)]


def test_histograms_of_a_workload_are_that_workload():
    stream = Drifting(Zipf(40, 1.0, tuples=300, seconds=2.0), rate=0.2)
    kept = Histograms.of(stream, 3)
    for mine, theirs in zip(kept.windows(), islice(stream.windows(), 3), strict=True):
        assert mine.histogram().hashes.tolist() == theirs.histogram().hashes.tolist()
        assert mine.histogram().counts.tolist() == theirs.histogram().counts.tolist()
        assert (mine.start, mine.seconds) == (theirs.start, theirs.seconds)
    assert list(Histograms.of(stream, 0).windows()) == []
