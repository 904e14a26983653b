"""Sketches: speed on one core and accuracy, beside Apache DataSketches' own Python package."""

from __future__ import annotations

import datasketches
import numpy as np
import pyarrow as pa

from benchmarks.measure import time_together
from evenkeel.hashing import hash_keys
from evenkeel.sketches import LossyCounting, SlidingLossyCounting, SpaceSaving, StreamingHistogram

KEYS = 1_000_000
TOP = 100
# The peer keeps at most three quarters of 2**LG_SIZE keys: both sides get as many.
LG_SIZE, CAPACITY = 10, 768
FREQUENT = "datasketches.frequent_items_sketch"
KLL = "datasketches.kll_doubles_sketch"


def run(quick: bool) -> list[dict[str, object]]:
    items = 500_000 if quick else 5_000_000
    ranks = zipf_ranks(items)
    return [*frequency_speed(ranks), *frequency_accuracy(ranks), *histogram_rows(items // 5)]


def zipf_ranks(items):
    """Zipf(1.0) over a million keys: the key of rank r comes with a probability that falls as 1 / r."""
    cumulated = np.cumsum(1 / np.arange(1, KEYS + 1))
    return np.searchsorted(cumulated, np.random.default_rng(0).random(items) * cumulated[-1])


def fed(sketch, *arrays):
    sketch.observe(*arrays)
    return sketch


def peer_fed(items):
    """The peer takes one Python object per call."""
    sketch = datasketches.frequent_items_sketch(LG_SIZE)
    update = sketch.update
    for item in items:
        update(item)
    return sketch


def frequency_speed(ranks):
    keys = hash_keys(ranks)
    weights = np.random.default_rng(1).integers(1, 1_000_000, len(keys))
    # The peer is so much slower that it gets a part of the stream; rates are compared.
    part = len(keys) // 10
    words = np.char.add("word", ranks[:part].astype(str)).tolist()
    column = pa.array(words)
    longs = keys[:part].tolist()
    window = len(keys) // 10
    ours = {
        "lossy counting, epsilon 1e-3": lambda: fed(LossyCounting(1e-3), keys),
        "lossy counting, epsilon 1e-4": lambda: fed(LossyCounting(1e-4), keys),
        "sliding lossy counting, epsilon 1e-3, 3 counters": lambda: fed(SlidingLossyCounting(window, 1e-3), keys),
        "space-saving, capacity 1000": lambda: fed(SpaceSaving(1000), keys),
        f"space-saving, capacity {CAPACITY}": lambda: fed(SpaceSaving(CAPACITY), keys),
        f"space-saving, capacity {CAPACITY}, weights up to 1e6": lambda: fed(SpaceSaving(CAPACITY), keys, weights),
        f"space-saving, capacity {CAPACITY}, strings, hashing included": lambda: fed(
            SpaceSaving(CAPACITY), hash_keys(column)
        ),
    }
    theirs = {"longs": lambda: peer_fed(longs), "strings": lambda: peer_fed(words)}
    timings = time_together(5, **ours, **theirs)
    targets = {
        "lossy counting, epsilon 1e-3",
        "lossy counting, epsilon 1e-4",
        "space-saving, capacity 1000",
    }
    rows = []
    for what in ours:
        of_strings = "strings" in what
        rate = (part if of_strings else len(keys)) / timings[what].median / 1e6
        peer_rate = part / timings["strings" if of_strings else "longs"].median / 1e6
        rows.append(
            {
                "what": what,
                "value": rate,
                "unit": "M updates/s",
                "target": ">= 5" if what in targets else "",
                "met": rate >= 5 if what in targets else None,
                "ratio": rate / peer_rate,
                "peer": f"{FREQUENT}, {'strings' if of_strings else 'longs'}: {peer_rate:.2f} M/s",
                **timings[what].repeated,
            }
        )
    return rows


def frequency_accuracy(ranks):
    """How far the counts of the true heaviest keys are off, and how many of them are found, at equal entries."""
    part = ranks[: len(ranks) // 5]
    truth = np.bincount(part, minlength=TOP)
    top = np.argsort(-truth, kind="stable")[:TOP]
    peer = peer_fed(part.tolist())
    peer_top = peer.get_frequent_items(datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES)[:TOP]
    peer_counts = np.array([peer.get_estimate(int(key)) for key in top])
    answers = {}
    for what, sketch in {
        f"space-saving, capacity {CAPACITY}": fed(SpaceSaving(CAPACITY), part),
        f"space-saving, capacity {CAPACITY}, merged from 8 parts": merged_from(8, part),
        "lossy counting, epsilon 1e-3": fed(LossyCounting(1e-3), part),
    }.items():
        answers[f"{what} ({len(sketch)} entries)"] = (
            sketch.estimate(top),
            sketch.heavy_keys(1).top(TOP).keys.tolist(),
        )
    peer_error = np.mean(np.abs(peer_counts / truth[top] - 1))
    peer_recall = len({item[0] for item in peer_top} & set(top.tolist())) / TOP
    for what, (counts, found) in answers.items():
        error = np.mean(np.abs(counts / truth[top] - 1))
        yield {
            "what": f"{what}: mean relative error of the {TOP} heaviest",
            "value": error,
            "unit": "",
            "ratio": error / peer_error,
            "peer": f"{FREQUENT} ({peer.num_active_items} entries): {peer_error:.4f}",
        }
        yield {
            "what": f"{what}: share of the {TOP} heaviest found",
            "value": len(set(found) & set(top.tolist())) / TOP,
            "unit": "",
            "ratio": len(set(found) & set(top.tolist())) / TOP / peer_recall,
            "peer": f"{FREQUENT}: {peer_recall:.2f}",
        }


def merged_from(parts, keys):
    first, *others = (fed(SpaceSaving(CAPACITY), piece) for piece in np.array_split(keys, parts))
    for other in others:
        first = first.merge(other)
    return first


def histogram_rows(items):
    rng = np.random.default_rng(2)
    draws = {
        "normal": rng.normal(size=items),
        "exponential": rng.exponential(size=items),
        "lognormal, sigma 3": rng.lognormal(sigma=3, size=items),
    }

    def kll(values):
        sketch = datasketches.kll_doubles_sketch(200)
        sketch.update(values)
        return sketch

    values = draws["normal"]
    timings = time_together(
        5,
        **{f"{bins} bins": lambda bins=bins: fed(StreamingHistogram(bins), values) for bins in (32, 100, 256)},
        kll=lambda: kll(values),
    )
    peer_rate = items / timings.pop("kll").median / 1e6
    for what, timing in timings.items():
        yield {
            "what": f"streaming histogram, {what}",
            "value": items / timing.median / 1e6,
            "unit": "M updates/s",
            "ratio": items / timing.median / 1e6 / peer_rate,
            "peer": f"{KLL}, k 200: {peer_rate:.1f} M/s",
            **timing.repeated,
        }
    for name, values in draws.items():
        shares = np.linspace(0.01, 0.99, 99)
        points = np.quantile(values, shares)
        peer = kll(values)
        peer_error = np.max(np.abs(np.array([peer.get_rank(point, True) for point in points]) - shares))
        for bins in (100, 256):
            error = np.max(np.abs(fed(StreamingHistogram(bins), values).sum(points) / items - shares))
            yield {
                "what": f"streaming histogram, {bins} bins ({16 * bins} bytes), {name}: largest error of rank",
                "value": error,
                "unit": "",
                "ratio": error / peer_error,
                "peer": f"{KLL}, k 200 ({len(peer.serialize())} bytes): {peer_error:.4f}",
            }
