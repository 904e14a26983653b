"""Traces: every format, cut into windows as the literal version cuts them."""

from __future__ import annotations

import datetime as dt
import gzip
import os
from itertools import groupby, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError, UnknownNameError
from evenkeel.hashing import hash_keys
from evenkeel.sim import Trace, replay

DATA = os.environ.get("EVENKEEL_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="set EVENKEEL_DATA to the folder with real streams")


def tuples_of(trace):
    return [np.concatenate([np.empty(0, np.int64), *(part.hashes for part in window.tuples())]).tolist()
            for window in trace.windows()]  # fmt: skip


@given(
    gaps=st.lists(st.integers(-3, 12), min_size=1, max_size=30),
    seconds=st.sampled_from([1.0, 2.5, 7.0]),
    rows=st.integers(1, 7),
)
def test_windows_by_time_are_cut_as_literally(tmp_path_factory, gaps, seconds, rows):
    times = np.cumsum(gaps).tolist()  # not always ascending
    path = tmp_path_factory.mktemp("trace") / "x.parquet"
    pq.write_table(pa.table({"when": times, "key": list(range(len(times)))}), path, row_group_size=rows)
    window, literal = 0, {}
    for key, time in enumerate(times):
        window = max(window, int((time - times[0]) // seconds))
        literal.setdefault(window, []).append(int(hash_keys([key])[0]))
    found = tuples_of(Trace(path, time="when", window_seconds=seconds))
    assert found == [literal.get(number, []) for number in range(window + 1)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_windows_by_number_whatever_the_files_chunks(tmp_path, size):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"key": list(range(20))}), path, row_group_size=3)
    hashes = hash_keys(np.arange(20)).tolist()
    assert tuples_of(Trace(path, window_tuples=size)) == [hashes[low : low + size] for low in range(0, 20, size)]


def test_csv_plain_compressed_and_with_tabs(tmp_path):
    text = "user,ts,amount\nann,2024-01-01 00:00:00,5\nbob,2024-01-01 00:00:01,6\nann,2024-01-01 00:01:00,7\n"
    (tmp_path / "x.csv").write_text(text)
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "z.tsv").write_text(text.replace(",", "\t"))
    expected = [hash_keys(["ann", "bob"]).tolist(), hash_keys(["ann"]).tolist()]
    for name in ("x.csv", "y.csv.gz", "z.tsv"):
        assert tuples_of(Trace(tmp_path / name, key="user", time="ts", window_seconds=60)) == expected


def test_a_composite_key_and_a_folder_of_files(tmp_path):
    for name, part in (("a", [1, 2]), ("b", [3, 4])):
        pq.write_table(pa.table({"x": part, "y": ["k", None]}), tmp_path / f"{name}.parquet")
    expected = hash_keys([1, 2, 3, 4], ["k", None, "k", None]).tolist()
    assert tuples_of(Trace(tmp_path, key=("x", "y"), window_tuples=10)) == [expected]


def test_timestamps_of_any_unit_and_fractions_of_seconds(tmp_path):
    start = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    times = [start, start + dt.timedelta(milliseconds=400), start + dt.timedelta(milliseconds=1600)]
    for number, kind in enumerate((pa.timestamp("ms"), pa.timestamp("ns", "UTC"))):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"t": pa.array(times, kind), "key": [1, 2, 3]}), path)
        assert [len(window) for window in tuples_of(Trace(path, time="t", window_seconds=0.5))] == [2, 0, 0, 1]


def test_lines_words_and_edges(tmp_path):
    text = 'to be, or "not"\n\nto be\n'
    (tmp_path / "x.txt").write_text(text)
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(text.encode()))
    words = hash_keys(["to", "be,", "or", '"not"', "to", "be"]).tolist()
    for name in ("x.txt", "x.txt.gz"):
        assert tuples_of(Trace(tmp_path / name, key="word", format="words", window_tuples=99)) == [words]
        lines = hash_keys(['to be, or "not"', "to be"]).tolist()
        assert tuples_of(Trace(tmp_path / name, key="line", window_tuples=99)) == [lines]
    (tmp_path / "g.edges").write_text("# From To\n# Nodes: 3\tEdges: 3\n1\t2\n 1 3 \n2   3\n")
    graph = Trace(tmp_path / "g.edges", key="dst", source="src", source_count=3, window_tuples=9)
    (window,) = graph.windows()
    (part,) = window.tuples()
    assert part.hashes.tolist() == hash_keys([2, 3, 3]).tolist()
    assert part.sources[0] == part.sources[1]
    assert graph.sources == 3


def test_shuffled_is_another_order_of_the_same_tuples(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"key": list(range(50)), "who": list(range(50))}), path, row_group_size=7)
    plain = Trace(path, source="who", source_count=4, window_tuples=50)
    shuffled = Trace(path, source="who", source_count=4, window_tuples=50, shuffle_seed=1)
    pairs = [
        [(*pair,) for part in next(iter(trace.windows())).tuples()
         for pair in zip(part.hashes.tolist(), part.sources.tolist(), strict=True)]
        for trace in (plain, shuffled)
    ]  # fmt: skip
    assert pairs[0] != pairs[1]
    assert sorted(pairs[0]) == sorted(pairs[1])


def test_an_empty_trace_has_no_windows(tmp_path):
    (tmp_path / "x.txt").write_text("")
    pq.write_table(pa.table({"key": pa.array([], pa.string())}), tmp_path / "x.parquet")
    assert tuples_of(Trace(tmp_path / "x.txt", key="line", window_tuples=5)) == []
    assert tuples_of(Trace(tmp_path / "x.parquet", window_tuples=5)) == []
    assert tuples_of(Trace(tmp_path / "x.parquet", window_tuples=5, shuffle_seed=1)) == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"window_tuples": 5, "window_seconds": 1.0},
        {"window_seconds": 1.0},
        {"window_seconds": -1.0, "time": "ts"},
        {"window_seconds": 1.0, "time": "ts", "shuffle_seed": 1},
        {"window_tuples": 0},
        {"window_tuples": 5, "source_count": 3},
    ],
    ids=str,
)
def test_options_that_contradict_each_other_are_refused(options):
    with pytest.raises(InvalidArgumentError):
        Trace("x.parquet", **options)


def test_errors_name_what_is_wrong(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"key": [1], "ts": pa.array([None], pa.int64()), "text": ["noon"]}), path)
    with pytest.raises(UnknownNameError, match="Did you mean 'key'"):
        tuples_of(Trace(path, key="kye", window_tuples=1))
    with pytest.raises(InvalidArgumentError, match="nulls"):
        tuples_of(Trace(path, time="ts", window_seconds=1))
    with pytest.raises(InvalidArgumentError, match="neither timestamps nor numbers"):
        tuples_of(Trace(path, time="text", window_seconds=1))
    with pytest.raises(InvalidArgumentError, match="pass format"):
        Trace("x.dat", window_tuples=1)
    (tmp_path / "g.edges").write_text("one two\n")
    with pytest.raises(InvalidArgumentError, match="two numbers"):
        tuples_of(Trace(tmp_path / "g.edges", key="dst", window_tuples=1))


@needs_data
def test_a_real_stream_has_the_messages_and_keys_that_its_readme_says():
    trace = Trace(Path(DATA, "stocknet_cashtag.parquet"), time="ts", window_seconds=7 * 86_400)
    windows = [window.histogram() for window in trace.windows()]
    assert sum(window.tuples for window in windows) == 253_491
    assert len(np.unique(np.concatenate([window.hashes for window in windows]))) == 7_557


@needs_data
def test_a_real_graph_is_balanced_by_partial_key_grouping_whatever_its_sources_skew():
    edges = Path(DATA, "slashdot0902_edges.parquet")
    for options in ({}, {"source": "src", "source_count": 5}):
        trace = Trace(edges, key="dst", window_tuples=50_000, shuffle_seed=0, **options)
        done = replay(trace, {"hash": "key_grouping", "pkg": "pkg"}, channels=10)
        by = {row["strategy"]: row["average_imbalance_fraction"] for row in done.summary().to_pylist()}
        assert by["pkg"] < by["hash"] / 50
    assert [key for key, _ in groupby(done.table["strategy"].to_pylist()[:4])] == ["hash", "pkg", "hash", "pkg"]
    assert sum(1 for _ in islice(trace.windows(), 100)) == 19
