"""A state as Prometheus metrics. Their names are an interface: docs/metrics.md lists them, and a test compares."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

__all__ = ["METRICS", "exposition"]

_STAGE = ("stage",)
_CHANNEL = ("stage", "channel")

METRICS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "evenkeel_up": ("gauge", (), "1 if the last look at the checkpoint succeeded, else 0."),
    "evenkeel_running": ("gauge", (), "1 while a query holds the checkpoint and was heard of in the last minute."),
    "evenkeel_last_batch": ("gauge", (), "Number of the last committed batch."),
    "evenkeel_last_commit_timestamp_seconds": ("gauge", (), "When the last batch was committed."),
    "evenkeel_skewness": ("gauge", _STAGE, "Rows of the fullest channel over the average, in the last loaded batch."),
    "evenkeel_predicted_skewness": ("gauge", _STAGE, "What the last plan that was judged had promised."),
    "evenkeel_achieved_skewness": ("gauge", _STAGE, "What that plan achieved, as the channels measured it."),
    "evenkeel_channels": ("gauge", _STAGE, "Number of channels."),
    "evenkeel_table_epoch": ("gauge", _STAGE, "Number of the routing table in force."),
    "evenkeel_table_pins": ("gauge", _STAGE, "Keys with a place of their own in the table."),
    "evenkeel_table_split_keys": ("gauge", _STAGE, "Keys that the table spreads over several channels."),
    "evenkeel_table_replicated_entries": ("gauge", _STAGE, "Slots and pins of the table that have backups."),
    "evenkeel_state_bytes": ("gauge", _STAGE, "State held, on all channels."),
    "evenkeel_state_keys": ("gauge", _STAGE, "Keys held, on all channels."),
    "evenkeel_watermark_timestamp_seconds": ("gauge", _STAGE, "The watermark, in event time."),
    "evenkeel_batch_duration_seconds": ("gauge", (), "How long the last batch took, where that is stored."),
    "evenkeel_busiest_channel_seconds": ("gauge", _STAGE, "How long the busiest channel worked in the last batch."),
    "evenkeel_channel_rows": ("gauge", _CHANNEL, "Rows of the channel in the last loaded batch."),
    "evenkeel_channel_busy_seconds": ("gauge", _CHANNEL, "How long the channel worked in the last loaded batch."),
    "evenkeel_channel_state_bytes": ("gauge", _CHANNEL, "State that the channel holds."),
    "evenkeel_batches_total": ("counter", _STAGE, "Batches read since this process started."),
    "evenkeel_rows_total": ("counter", _STAGE, "Rows that came to channels."),
    "evenkeel_tuples_total": ("counter", _STAGE, "Tuples that these rows stand for, if combined before the shuffle."),
    "evenkeel_late_tuples_total": ("counter", _STAGE, "Tuples that came after the watermark."),
    "evenkeel_results_total": ("counter", _STAGE, "Results given."),
    "evenkeel_moved_state_bytes_total": ("counter", _STAGE, "State that came to a channel from another."),
    "evenkeel_moved_items_total": ("counter", (*_STAGE, "action"), "Slots and keys that a new table moved."),
    "evenkeel_cold_openings_total": ("counter", _STAGE, "Times that a channel had to rebuild its state on a host."),
    "evenkeel_decisions_total": ("counter", (*_STAGE, "choice"), "Decisions of the controller, as far as remembered."),
}
"""Kind, labels and meaning of every metric."""

_TOTALS = {
    "batches": "evenkeel_batches_total",
    "rows": "evenkeel_rows_total",
    "tuples": "evenkeel_tuples_total",
    "late": "evenkeel_late_tuples_total",
    "results": "evenkeel_results_total",
    "moved_bytes": "evenkeel_moved_state_bytes_total",
    "cold": "evenkeel_cold_openings_total",
}


def exposition(state: dict[str, Any]) -> bytes:
    """Write a state in Prometheus' text format. Keys never become labels. O(channels)."""
    registry = CollectorRegistry()
    registry.register(_Collector(state))
    return generate_latest(registry)


class _Collector:
    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Give the metrics that have values."""
        families: dict[str, Metric] = {}
        for name, labels, value in _samples(self._state):
            if name not in families:
                kind, names, told = METRICS[name]
                made = GaugeMetricFamily if kind == "gauge" else CounterMetricFamily
                families[name] = made(name, told, labels=names)
            families[name].add_metric(labels, value)  # type: ignore[attr-defined]
        yield from families.values()


def _samples(state: dict[str, Any]) -> Iterator[tuple[str, list[str], float]]:
    yield "evenkeel_up", [], float(not state["trouble"])
    yield "evenkeel_running", [], float(state["query"]["status"] == "running")
    if state["batch"] is not None:
        yield "evenkeel_last_batch", [], float(state["batch"])
    if state["stages"]:
        last = state["stages"][0]["history"][-1]
        if last["ended"] is not None:
            yield "evenkeel_last_commit_timestamp_seconds", [], last["ended"]
        if last["took_ms"] is not None:
            yield "evenkeel_batch_duration_seconds", [], last["took_ms"] / 1000
    for stage in state["stages"]:
        for name, value in _of_stage(stage):
            yield name, [stage["name"]], value
        for channel in stage["channels"]:
            labels = [stage["name"], str(channel["channel"])]
            yield "evenkeel_channel_rows", labels, channel["rows"]
            yield "evenkeel_channel_busy_seconds", labels, channel["busy_ms"] / 1000
            yield "evenkeel_channel_state_bytes", labels, channel["state_bytes"]
        for action, number in stage["totals"]["items"].items():
            yield "evenkeel_moved_items_total", [stage["name"], action], number
        for choice, number in stage["totals"]["decisions"].items():
            yield "evenkeel_decisions_total", [stage["name"], choice], number


def _of_stage(stage: dict[str, Any]) -> Iterator[tuple[str, float]]:
    last, table = stage["history"][-1], stage["table"]
    yield "evenkeel_skewness", stage["skewness"]
    judged = next((item for item in reversed(stage["decisions"]) if item["achieved"] is not None), None)
    if judged is not None:
        yield "evenkeel_predicted_skewness", judged["predicted"]
        yield "evenkeel_achieved_skewness", judged["achieved"]
    yield "evenkeel_channels", len(stage["channels"])
    if table is not None:
        yield "evenkeel_table_epoch", table["epoch"]
        yield "evenkeel_table_pins", table["pins"]
        yield "evenkeel_table_split_keys", table["split_keys"]
        yield "evenkeel_table_replicated_entries", table["slots_with_backups"] + table["pins_with_backups"]
    yield "evenkeel_state_bytes", last["state_bytes"]
    yield "evenkeel_state_keys", sum(channel["keys"] for channel in stage["channels"])
    yield "evenkeel_busiest_channel_seconds", last["busiest_ms"] / 1000
    if stage["watermark"] is not None:
        yield "evenkeel_watermark_timestamp_seconds", datetime.fromisoformat(stage["watermark"]).timestamp()
    for part, name in _TOTALS.items():
        yield name, stage["totals"].get(part, 0)
