"""The streaming histogram against the paper's procedures, and its laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenkeel.errors import InvalidArgumentError
from evenkeel.sketches import StreamingHistogram

tame = st.integers(-50, 50).map(lambda tenths: tenths / 10)
wild = st.floats(allow_nan=False, allow_infinity=False)
streams = st.lists(st.tuples(tame, st.integers(1, 4)), max_size=60)
bins = st.integers(1, 12)


def shrink(histogram, bins):
    """Lines 3-8 of the paper's Update: join the closest pair until there are ``bins``."""
    histogram = sorted(histogram)
    while len(histogram) > bins:
        i = min(range(len(histogram) - 1), key=lambda i: histogram[i + 1][0] - histogram[i][0])
        (p, m), (q, k) = histogram[i : i + 2]
        centre = p * (m / (m + k)) + q * (k / (m + k))
        histogram[i : i + 2] = [(min(max(centre, p), q), m + k)]
    return histogram


def update(histogram, bins, value, count):
    """Procedure 1 of the paper."""
    as_dict = dict(histogram)
    as_dict[value] = as_dict.get(value, 0) + count
    return shrink(as_dict.items(), bins)


def paper_sum(histogram, b):
    """Procedure 3 of the paper, for p_1 <= b < p_B."""
    i = max(j for j, (p, _) in enumerate(histogram) if p <= b)
    (p, m), (q, k) = histogram[i : i + 2]
    m_b = m + (k - m) / (q - p) * (b - p)
    s = (m + m_b) / 2 * (b - p) / (q - p)
    return s + sum(count for _, count in histogram[:i]) + m / 2


def observed(stream, bins):
    histogram = StreamingHistogram(bins)
    histogram.observe([float(v) for v, _ in stream], np.array([c for _, c in stream], np.int64))
    return histogram


def bins_of(histogram):
    return list(zip(histogram.centres.tolist(), histogram.counts.tolist(), strict=True))


def mean_of(histogram):
    return math.fsum(p * (m / histogram.total) for p, m in bins_of(histogram))


@given(st.lists(st.tuples(tame | wild, st.integers(1, 4)), max_size=60), bins)
def test_it_has_the_bins_of_the_papers_update(stream, bins):
    expected = []
    for value, count in stream:
        expected = update(expected, bins, value, count)
    assert bins_of(observed(stream, bins)) == expected


def test_it_has_the_bins_of_the_papers_update_on_a_long_stream():
    values = np.random.default_rng(2).lognormal(size=3_000)
    expected = []
    for value in values.tolist():
        expected = update(expected, 20, value, 1)
    histogram = StreamingHistogram(20)
    histogram.observe(values)
    assert bins_of(histogram) == expected


def test_it_follows_the_papers_worked_example():
    # Appendix A of the paper, to its two decimals.
    histogram = StreamingHistogram(5)
    histogram.observe([23, 19, 10, 16, 36])
    histogram.observe([2])
    assert bins_of(histogram) == [(2, 1), (10, 1), (17.5, 2), (23, 1), (36, 1)]
    histogram.observe([9])
    assert bins_of(histogram) == [(2, 1), (9.5, 2), (17.5, 2), (23, 1), (36, 1)]
    other = StreamingHistogram(5)
    other.observe([32, 30, 45])
    merged = histogram.merge(other)
    assert [(round(p, 2), m) for p, m in bins_of(merged)] == [
        (2, 1),
        (9.5, 2),
        (19.33, 3),
        (32.67, 3),
        (45, 1),
    ]
    assert merged.sum([15.0])[0] == pytest.approx(3.28, abs=0.01)
    assert merged.uniform(3) == pytest.approx([15.21, 28.98], abs=0.02)


@given(streams, bins, st.lists(st.integers(0, 60)))
def test_how_the_stream_is_cut_into_arrays_does_not_matter(stream, bins, cuts):
    pieces = StreamingHistogram(bins)
    values, counts = [v for v, _ in stream], np.array([c for _, c in stream], np.int64)
    for piece, of_piece in zip(
        np.split(np.array(values, float), sorted(cuts)), np.split(counts, sorted(cuts)), strict=True
    ):
        pieces.observe(piece, of_piece)
    assert pieces.to_arrow().equals(observed(stream, bins).to_arrow(), check_metadata=True)


def check_laws(histogram, stream):
    assert len(histogram) <= histogram.bins == histogram.size_bound
    assert histogram.total == sum(count for _, count in stream)
    if not stream:
        return
    values = np.repeat(*map(list, zip(*stream, strict=True)))
    assert (histogram.minimum, histogram.maximum) == (values.min(), values.max())
    assert mean_of(histogram) == pytest.approx(values.mean(), abs=1e-9)
    if len(set(values)) <= histogram.bins:
        assert bins_of(histogram) == [(v, (values == v).sum()) for v in sorted(set(values))]


@given(streams, bins)
def test_total_mean_and_ends_are_kept(stream, bins):
    check_laws(observed(stream, bins), stream)


@given(st.lists(streams, min_size=2, max_size=4), bins, bins)
def test_a_merge_keeps_them_too_is_the_papers_and_commutes(parts, bins, other_bins):
    merged, seen = observed(parts[0], bins), parts[0]
    for part in parts[1:]:
        other = observed(part, other_bins)
        before = merged.to_arrow(), other.to_arrow()
        both = merged.merge(other)
        assert (merged.to_arrow(), other.to_arrow()) == before
        assert both.to_arrow().equals(other.merge(merged).to_arrow(), check_metadata=True)
        union = dict(bins_of(merged))
        for centre, count in bins_of(other):
            union[centre] = union.get(centre, 0) + count
        assert bins_of(both) == shrink(union.items(), min(merged.bins, other.bins))
        merged, seen = both, seen + part
        check_laws(merged, seen)


@given(streams, bins, tame)
def test_sum_is_the_papers_between_the_outer_centres(stream, bins, point):
    histogram = observed(stream, bins)
    assume(len(histogram) > 1)
    assume(histogram.centres[0] <= point < histogram.centres[-1])
    assert histogram.sum([point])[0] == pytest.approx(paper_sum(bins_of(histogram), point))


@given(st.lists(st.tuples(tame | wild, st.integers(1, 4)), min_size=1, max_size=40), bins)
def test_sum_never_falls_and_goes_from_nothing_to_all(stream, bins):
    histogram = observed(stream, bins)
    low, high = histogram.minimum, histogram.maximum
    points = np.unique(np.concatenate([[v for v, _ in stream], low / 2 + np.linspace(0, 1, 50) * (high / 2)]))
    sums = histogram.sum(points)
    assert (np.diff(sums) >= -1e-9 * histogram.total).all()
    assert ((sums >= 0) & (sums <= histogram.total)).all()
    assert histogram.sum([high]).tolist() == [histogram.total]
    if low > -1e308:
        assert histogram.sum([np.nextafter(low, -np.inf)]).tolist() == [0.0]


@given(streams, bins, st.integers(1, 9))
def test_uniform_cuts_where_sum_says(stream, bins, parts):
    histogram = observed(stream, bins)
    assume(stream)
    cuts = histogram.uniform(parts)
    assert len(cuts) == parts - 1
    assert (np.diff(cuts) >= -1e-9).all()
    assert ((cuts >= histogram.minimum - 1e-9) & (cuts <= histogram.maximum + 1e-9)).all()
    _, _, below = histogram._curve()
    for j, cut in enumerate(cuts.tolist(), start=1):
        target = j / parts * histogram.total
        # Where one value is so frequent that no cut hits the target, the cut is at that value.
        if below[0] < target < below[-1]:
            assert histogram.sum([cut])[0] == pytest.approx(target, abs=1e-6)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda rng, n: rng.normal(size=n), id="normal values"),
        pytest.param(lambda rng, n: rng.uniform(size=n), id="uniform values"),
        pytest.param(lambda rng, n: rng.exponential(size=n), id="exponential values"),
        pytest.param(
            lambda rng, n: np.where(rng.random(n) < 0.5, rng.normal(-5, 1, n), rng.normal(5, 1, n)),
            id="values in two humps",
        ),
    ],
)
def test_smooth_distributions_are_estimated_closely(draw):
    values = draw(np.random.default_rng(4), 20_000)
    histogram = StreamingHistogram(64)
    histogram.observe(values)
    points = np.quantile(values, np.linspace(0.01, 0.99, 99))
    ranks = np.searchsorted(np.sort(values), points, side="right")
    assert np.abs(histogram.sum(points) - ranks).max() < 0.03 * len(values)


@pytest.mark.parametrize("bins", [1, 3], ids="{} bins".format)
def test_the_ends_of_the_range_of_floats_do_not_overflow(bins):
    end = np.finfo(np.float64).max
    histogram = StreamingHistogram(bins)
    histogram.observe([-end, end, end / 2, 0.0, -end / 2])
    assert np.isfinite(histogram.centres).all()
    assert np.isfinite(histogram.uniform(5)).all()
    assert histogram.sum([-end, end]).tolist()[1] == 5.0


def test_one_value_only():
    histogram = StreamingHistogram(4)
    histogram.observe(np.full(100, 3.5))
    assert bins_of(histogram) == [(3.5, 100)]
    assert histogram.sum([3.4, 3.5, 3.6]).tolist() == [0.0, 100.0, 100.0]
    assert histogram.uniform(4).tolist() == [3.5] * 3


def test_an_empty_histogram_counts_nothing_and_cannot_be_cut():
    histogram = StreamingHistogram(4)
    assert histogram.sum([0.0, 1.0]).tolist() == [0.0, 0.0]
    with pytest.raises(InvalidArgumentError, match="observe some values"):
        histogram.uniform(2)


def test_values_of_an_empty_array_are_none():
    histogram = StreamingHistogram(4)
    histogram.observe(np.empty(0))
    assert histogram.total == len(histogram) == 0
