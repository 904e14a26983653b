"""Metrics: their names are kept in one place, the docs and Grafana use just these, and they tell what was read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dashboard.checkpoints import Query
from evenkeel.dashboard import CheckpointReader, state_of
from evenkeel.dashboard.prometheus import METRICS, exposition

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    path = tmp_path_factory.mktemp("measured")
    query = Query(path, names=["secret-name"]).run(6)
    query.lease(1000.0)
    reader = CheckpointReader(str(path))
    reader.look()
    return state_of(reader, 1001.0)


@pytest.fixture(scope="module")
def samples(state):
    families = text_string_to_metric_families(exposition(state).decode())
    return [sample for family in families for sample in family.samples]


def value(samples, name, **labels):
    found = [sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items()]
    assert len(found) == 1
    return found[0]


def test_they_tell_what_was_read(state, samples):
    stage = state["stages"][0]
    assert value(samples, "evenkeel_up") == value(samples, "evenkeel_running") == 1
    assert value(samples, "evenkeel_last_batch") == 5
    assert value(samples, "evenkeel_rows_total") == 6 * 4000
    assert value(samples, "evenkeel_batch_duration_seconds") == pytest.approx(0.85)
    assert value(samples, "evenkeel_watermark_timestamp_seconds") == 1_700_000_025
    assert value(samples, "evenkeel_decisions_total", choice="move") == 1
    assert value(samples, "evenkeel_skewness") == pytest.approx(stage["skewness"])
    assert value(samples, "evenkeel_achieved_skewness") < 1.2
    for channel in stage["channels"]:
        labels = {"channel": str(channel["channel"])}
        assert value(samples, "evenkeel_channel_rows", **labels) == channel["rows"]
        assert value(samples, "evenkeel_channel_state_bytes", **labels) == channel["state_bytes"]


def test_every_metric_is_given_with_just_its_labels(samples):
    assert {sample.name for sample in samples} == set(METRICS)
    for sample in samples:
        assert set(sample.labels) == set(METRICS[sample.name][1])


def test_no_key_is_ever_a_label(samples):
    assert {label for sample in samples for label in sample.labels} == {"stage", "channel", "action", "choice"}
    assert "secret-name" not in str(samples)


def test_a_checkpoint_without_a_batch_has_metrics(tmp_path):
    Query(tmp_path)
    reader = CheckpointReader(str(tmp_path))
    reader.look()
    assert b"evenkeel_up 1.0" in exposition(state_of(reader, 0.0))


def test_the_docs_list_every_metric_with_its_meaning():
    listed = re.findall(
        r"^\| `(evenkeel_\w+)` \| (\w+) \| ([^|]*) \| ([^|]+) \|$", (DOCS / "metrics.md").read_text(), re.MULTILINE
    )
    wanted = [
        (name, kind, ", ".join(f"`{label}`" for label in labels) or "–", told)
        for name, (kind, labels, told) in METRICS.items()
    ]
    assert listed == wanted


def test_grafana_uses_just_these_names():
    dashboard = json.loads((DOCS / "grafana.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    asked += [item["query"] for item in dashboard["templating"]["list"] if item["type"] == "query"]
    used = {name for query in asked for name in re.findall(r"evenkeel_\w+", query)}
    assert used <= set(METRICS)
    assert len(used) > 15
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
